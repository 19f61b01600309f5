//! The request, made from a job's input by templates.
//!
//! `{field}` and `{a.b}` stand for values of the input. A template that is nothing but one placeholder gives the value as it
//! is; within other text of an address, values are percent-encoded. `{+field}` keeps what has a meaning in addresses, as
//! in RFC 6570: slashes, question marks and so on; but it does not move a request to another host.

use std::collections::BTreeMap;

use redrive_core::failures::{FailureReport, Reason};
use redrive_core::jobs::Input;
use redrive_core::secrets::{MASK, Secrets, percent_encode};
use serde_json::Value;

use super::authority::Place;
use crate::export::HttpRequest;

/// What stands for a placeholder in an outline: a character that no configuration has a use for.
pub(super) const FIELD: char = '\u{fffc}';

/// A text with placeholders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template(Vec<Part>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(String),
    Field(String),
    /// A field whose value is part of an address as it is.
    Reserved(String),
}

impl Template {
    /// Reads a template; `{{` and `}}` stand for the braces themselves.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut parts = Vec::new();
        let mut literal = String::new();
        let mut rest = text;
        while let Some(at) = rest.find(['{', '}']) {
            literal.push_str(&rest[..at]);
            let brace = &rest[at..=at];
            rest = &rest[at + 1..];
            if let Some(after) = rest.strip_prefix(brace) {
                literal.push_str(brace);
                rest = after;
                continue;
            }
            let end = rest.find('}').filter(|_| brace == "{");
            let end =
                end.ok_or_else(|| format!("{text:?} has a brace without its other: write {{{{ for the brace itself"))?;
            let name = rest[..end].trim();
            if name.is_empty() {
                return Err(format!("{text:?} has a placeholder without a name"));
            }
            if !literal.is_empty() {
                parts.push(Part::Text(std::mem::take(&mut literal)));
            }
            parts.push(match name.strip_prefix('+') {
                Some(name) if !name.is_empty() => Part::Reserved(name.to_owned()),
                Some(_) => return Err(format!("{text:?} has a placeholder without a name")),
                None => Part::Field(name.to_owned()),
            });
            rest = &rest[end + 1..];
        }
        literal.push_str(rest);
        if !literal.is_empty() {
            parts.push(Part::Text(literal));
        }
        Ok(Self(parts))
    }

    /// Fills the placeholders in. A field that is missing means that the input cannot be worked on.
    pub fn fill(&self, input: &Input) -> Result<String, FailureReport> {
        self.fill_with(input, str::to_owned, str::to_owned)
    }

    /// The same for an address: values within other text are percent-encoded, some of them only where they must be.
    pub fn fill_url(&self, input: &Input) -> Result<String, FailureReport> {
        match self.0.as_slice() {
            [Part::Field(_) | Part::Reserved(_)] => self.fill(input),
            _ => {
                self.check_host(input)?;
                self.fill_with(input, percent_encode, encode_reserved)
            }
        }
    }

    /// The text with [`FIELD`] for each placeholder.
    pub(super) fn outline(&self) -> String {
        let part = |part: &Part| match part {
            Part::Text(text) => text.clone(),
            Part::Field(_) | Part::Reserved(_) => FIELD.to_string(),
        };
        self.0.iter().map(part).collect()
    }

    /// Whether its first placeholder keeps what has a meaning in addresses, and so cannot be part of a host.
    pub(super) fn is_reserved_first(&self) -> bool {
        let first = self.0.iter().find(|part| !matches!(part, Part::Text(_)));
        matches!(first, Some(Part::Reserved(_)))
    }

    fn fill_with(
        &self,
        input: &Input,
        encode: fn(&str) -> String,
        reserved: fn(&str) -> String,
    ) -> Result<String, FailureReport> {
        let part = |part: &Part| match part {
            Part::Text(text) => Ok(text.clone()),
            Part::Field(name) => field(input, name).map(|value| encode(&value)),
            Part::Reserved(name) => field(input, name).map(|value| reserved(&value)),
        };
        self.0.iter().map(part).collect()
    }

    /// No value may move a request to another host than the one that is written out.
    fn check_host(&self, input: &Input) -> Result<(), FailureReport> {
        let mut before = String::new();
        for (index, part) in self.0.iter().enumerate() {
            let (name, reserved) = match part {
                Part::Text(text) => {
                    before.push_str(text);
                    continue;
                }
                Part::Field(name) => (name, false),
                Part::Reserved(name) => (name, true),
            };
            let value = field(input, name)?;
            let text = |part: &Part| if let Part::Text(text) = part { text.clone() } else { String::new() };
            let after: String = self.0[index + 1..].iter().map(text).collect();
            if let Some(why) = (Place { before: &before, after: &after, reserved }).refusal(&value) {
                let sign = if reserved { "+" } else { "" };
                let message = format!("{value:?} would change the host of {before}{{{sign}{name}}}: {why}");
                let report = FailureReport::new(Reason::RejectedInput, message).with_code("InvalidUrl");
                return Err(FailureReport { stage: Some("request".into()), ..report });
            }
            before.push_str(&if reserved { encode_reserved(&value) } else { percent_encode(&value) });
        }
        Ok(())
    }

    /// What to write if an address is none because the slashes of a value were encoded.
    fn hint(&self, input: &Input) -> String {
        let has_slash = |part: &&Part| matches!(part, Part::Field(name) if field(input, name).is_ok_and(|value| value.contains('/')));
        match self.0.iter().find(has_slash).filter(|_| self.0.len() > 1) {
            Some(Part::Field(name)) => format!(": write {{+{name}}} to keep the slashes of its value"),
            _ => String::new(),
        }
    }
}

/// Percent-encodes what no address has, and leaves what has a meaning in addresses.
fn encode_reserved(value: &str) -> String {
    let is_reserved = |c: char| ":/?#[]@!$&'()*+,;=%".contains(c);
    let mut encoded = String::with_capacity(value.len());
    for c in value.chars() {
        match is_reserved(c) {
            true => encoded.push(c),
            false => encoded.push_str(&percent_encode(c.encode_utf8(&mut [0; 4]))),
        }
    }
    encoded
}

/// What a placeholder stands for: a field of the input, or `a.b` for one inside of another.
fn value<'i>(input: &'i Input, name: &str) -> Option<&'i Value> {
    let mut steps = name.split(['.', '/']);
    let first = steps.next().and_then(|step| input.get(step))?;
    steps.try_fold(first, |value, step| value.get(step)).filter(|value| !value.is_null())
}

fn field(input: &Input, name: &str) -> Result<String, FailureReport> {
    match value(input, name) {
        Some(Value::String(text)) => Ok(text.clone()),
        None => {
            let message = format!("the input has no field {name:?}, which the request needs");
            Err(FailureReport { stage: Some("request".into()), ..FailureReport::new(Reason::RejectedInput, message) }
                .with_code("MissingField"))
        }
        Some(other) => Ok(other.to_string()),
    }
}

/// What is sent with a request.
#[derive(Clone, Debug, Default)]
pub enum Body {
    /// Nothing.
    #[default]
    None,
    /// A text.
    Text(Template),
    /// Form fields.
    Form(BTreeMap<String, Template>),
    /// JSON whose texts are templates.
    Json(Value),
}

/// A request with placeholders.
#[derive(Clone, Debug)]
pub struct Request {
    /// GET, POST and so on.
    pub method: reqwest::Method,
    /// The address.
    pub url: Template,
    /// Parameters added to the address.
    pub query: BTreeMap<String, Template>,
    /// Headers.
    pub headers: BTreeMap<String, Template>,
    /// What is sent.
    pub body: Body,
}

/// A request that is ready to go.
#[derive(Clone, Debug)]
pub struct Filled {
    pub(super) method: reqwest::Method,
    pub(super) url: url::Url,
    pub(super) headers: Vec<(String, String)>,
    pub(super) form: Option<Vec<(String, String)>>,
    pub(super) body: Option<String>,
}

impl Filled {
    /// The host it goes to.
    pub fn host(&self) -> String {
        self.url.host_str().unwrap_or_default().to_ascii_lowercase()
    }

    /// The request as others may see it.
    pub(crate) fn masked(&self, secrets: &Secrets) -> HttpRequest {
        let pair = |(name, value): &(String, String)| (name.clone(), secrets.mask_header(name, value));
        let mut headers: Vec<_> = self.headers.iter().map(pair).collect();
        let form = self.form.as_ref().map(|fields| {
            headers.push(("Content-Type".into(), "application/x-www-form-urlencoded".into()));
            let fields = fields.iter().map(pair).map(|(name, value)| match value == MASK {
                true => format!("{}={MASK}", percent_encode(&name)),
                false => format!("{}={}", percent_encode(&name), percent_encode(&value)),
            });
            fields.collect::<Vec<_>>().join("&")
        });
        let body = form.or_else(|| self.body.as_ref().map(|body| secrets.mask_text(body)));
        HttpRequest {
            method: self.method.to_string(),
            url: secrets.mask(self.url.as_str()),
            headers,
            body: body.map(String::into_bytes),
        }
    }
}

impl Request {
    /// Fills the placeholders in.
    pub fn fill(&self, input: &Input) -> Result<Filled, FailureReport> {
        let address = self.url.fill_url(input)?;
        let mut url = url::Url::parse(&address).map_err(|error| {
            let message = format!("{address:?} is not an address: {error}{}", self.url.hint(input));
            FailureReport { stage: Some("request".into()), ..FailureReport::new(Reason::RejectedInput, message) }
                .with_code("InvalidUrl")
        })?;
        let query = fill_all(&self.query, input)?;
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        let mut headers = fill_all(&self.headers, input)?;
        let (mut form, mut body) = (None, None);
        match &self.body {
            Body::None => {}
            Body::Text(text) => body = Some(text.fill(input)?),
            Body::Form(fields) => form = Some(fill_all(fields, input)?),
            Body::Json(value) => {
                body = Some(fill_json(value, input)?.to_string());
                if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type")) {
                    headers.push(("Content-Type".into(), "application/json".into()));
                }
            }
        }
        Ok(Filled { method: self.method.clone(), url, headers, form, body })
    }
}

fn fill_all(templates: &BTreeMap<String, Template>, input: &Input) -> Result<Vec<(String, String)>, FailureReport> {
    templates.iter().map(|(name, template)| Ok((name.clone(), template.fill(input)?))).collect()
}

/// Fills the placeholders of every text in a JSON value. A text that is one placeholder takes the value as it is.
pub fn fill_json(value: &Value, input: &Input) -> Result<Value, FailureReport> {
    Ok(match value {
        Value::String(text) => {
            let template = Template::parse(text).map_err(FailureReport::message)?;
            let whole = match template.0.as_slice() {
                [Part::Field(name) | Part::Reserved(name)] => self::value(input, name).cloned(),
                _ => None,
            };
            whole.map_or_else(|| template.fill(input).map(Value::String), Ok)?
        }
        Value::Array(items) => Value::Array(items.iter().map(|item| fill_json(item, input)).collect::<Result<_, _>>()?),
        Value::Object(fields) => {
            let filled = fields.iter().map(|(name, field)| Ok((name.clone(), fill_json(field, input)?)));
            Value::Object(filled.collect::<Result<_, FailureReport>>()?)
        }
        other => other.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn input(value: Value) -> Input {
        match value {
            Value::Object(input) => input,
            other => panic!("{other} is no input"),
        }
    }

    fn filled(template: &str, value: Value) -> Result<String, FailureReport> {
        Template::parse(template).expect("a template").fill_url(&input(value))
    }

    #[test]
    fn a_lone_placeholder_is_taken_as_it_is_and_others_are_encoded() {
        assert_eq!(filled("{url}", json!({"url": "https://a/b?c=d e"})).ok().as_deref(), Some("https://a/b?c=d e"));
        let path = filled("https://shop/{id}?q={a.b}", json!({"id": 7, "a": {"b": "x&y z"}}));
        assert_eq!(path.ok().as_deref(), Some("https://shop/7?q=x%26y%20z"));
        assert_eq!(filled("{{{x}}}", json!({"x": "1"})).ok().as_deref(), Some("{1}"));
    }

    #[test]
    fn a_reserved_placeholder_keeps_its_slashes_but_not_the_host() {
        let path =
            |template: &str, path: &str| filled(template, json!({"path": path})).map_err(|report| report.message);
        assert_eq!(path("http://h{+path}", "/a b/c?d=é%20#x").as_deref(), Ok("http://h/a%20b/c?d=%C3%A9%20#x"));
        assert_eq!(path("http://h/{+path}", "a/b").as_deref(), Ok("http://h/a/b"));
        assert_eq!(path("http://h/{path}", "a/b").as_deref(), Ok("http://h/a%2Fb"));
        assert_eq!(path("{+path}", "https://a/b?c=d e").as_deref(), Ok("https://a/b?c=d e"));
        assert_eq!(path("http://{+path}/x", "h:80").as_deref(), Ok("http://h:80/x"));
        for elsewhere in [".evil.example/", "@evil.example", ":1@evil.example", "\\evil"] {
            let said = path("http://h{+path}", elsewhere).expect_err("refused");
            assert!(said.ends_with("would change the host of http://h{+path}: it must begin with a slash"), "{said}");
        }
        assert!(Template::parse("{+}").is_err());
        let plain = Template::parse("a {+path}").expect("a template").fill(&input(json!({"path": "x/y z"})));
        assert_eq!(plain.ok().as_deref(), Some("a x/y z"));
    }

    #[test]
    fn an_address_that_is_none_says_what_to_write() {
        let request = Request {
            method: reqwest::Method::GET,
            url: Template::parse("http://127.0.0.1:80{path}").expect("a template"),
            query: BTreeMap::new(),
            headers: BTreeMap::new(),
            body: Body::None,
        };
        let said = request.fill(&input(json!({"path": "/products/1"}))).expect_err("refused").message;
        assert_eq!(
            said,
            "\"http://127.0.0.1:80%2Fproducts%2F1\" is not an address: invalid port number: write {+path} to keep the \
             slashes of its value"
        );
    }

    #[test]
    fn what_is_missing_is_the_inputs_fault() {
        let report = filled("{nothing}", json!({"x": 1})).expect_err("missing");
        assert_eq!(report.reason, Some(Reason::RejectedInput));
        assert!(report.message.contains("\"nothing\""), "{}", report.message);
        for broken in ["{", "a } b", "{ }", "x{y"] {
            assert!(Template::parse(broken).is_err(), "{broken}");
        }
    }

    #[test]
    fn json_keeps_the_types_of_the_input() {
        let template = json!({"id": "{id}", "list": ["n {id}", true], "deep": {"o": "{o}", "k": "{o.k}"}});
        let value = fill_json(&template, &input(json!({"id": 7, "o": {"k": [1]}}))).expect("filled");
        assert_eq!(value, json!({"id": 7, "list": ["n 7", true], "deep": {"o": {"k": [1]}, "k": [1]}}));
        let missing = fill_json(&template, &input(json!({"id": 7, "o": {"k": null}}))).expect_err("it has no o.k");
        assert_eq!(missing.code.as_deref(), Some("MissingField"));
    }
}
