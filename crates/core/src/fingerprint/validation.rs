//! Validation errors: which rule failed at which path, however many items of a list it failed for.
//!
//! Validators report a list of errors in one message. The template is the sorted set of them, with list positions as
//! `*` and without the input, so that one missing field is one cause whether it is missing once or on every page.

use std::collections::BTreeSet;

use serde_json::Value;

use super::template::Template;
use super::vocabulary::COMPLAINTS;
use super::{Masked, message};

/// How many different errors of one message count.
const ERRORS_MAX: usize = 32;

/// Keywords that do not say what is wrong, so that the message has to.
const VAGUE: [&str; 4] = ["json_invalid", "value_error", "assertion_error", "custom"];

/// The template of a message, if it is a validator's.
pub(super) fn read(message: &str) -> Option<(String, Vec<Masked>)> {
    let message = message.trim_start();
    let told = match message.as_bytes().first()? {
        b'0'..=b'9' => pydantic(message),
        b'[' => objects(message),
        b'd' => ajv(message),
        _ => None,
    };
    told.or_else(|| located(message)).or_else(|| complaint(message))
}

fn report(subject: &str, errors: BTreeSet<String>) -> Option<(String, Vec<Masked>)> {
    if errors.is_empty() {
        return None;
    }
    let errors: Vec<String> = errors.into_iter().take(ERRORS_MAX).collect();
    Some((format!("validation{subject}: {}", errors.join("; ")), Vec::new()))
}

/// `2 validation errors for Page`, then for each a line with the path and an indented one with message and `[type=…]`.
fn pydantic(message: &str) -> Option<(String, Vec<Masked>)> {
    let (head, rest) = message.split_once('\n').unwrap_or((message, ""));
    let (_, model) = head.split_once(" for ").filter(|(count, _)| count.contains(" validation error"))?;
    let (mut path, mut errors) = ("", BTreeSet::new());
    for line in rest.lines() {
        if !line.starts_with(' ') {
            path = line;
        } else if let Some((text, keyword)) = typed(line) {
            let said = if VAGUE.contains(&keyword) { format!(" ({})", template(text)) } else { String::new() };
            errors.insert(format!("{}{keyword}{said}", prefix(path)));
        }
    }
    report(&format!(" of {}", model.trim()), errors)
}

/// The message and the keyword of `  Field required [type=missing, input_value=…` or, before version 2, `(type=…)`.
fn typed(line: &str) -> Option<(&str, &str)> {
    let (text, rest) = line.split_once("[type=").or_else(|| line.split_once("(type="))?;
    Some((text.trim(), rest.split([',', ']', ')', ';']).next()?))
}

/// Zod and ajv as JSON: a list of objects with a path and a code or keyword. The end may be cut off, so they are read
/// one by one.
fn objects(message: &str) -> Option<(String, Vec<Masked>)> {
    let (mut rest, mut errors) = (message.strip_prefix('[')?, BTreeSet::new());
    loop {
        let mut values = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
        let Some(Ok(error)) = values.next() else { break };
        errors.insert(object(&error)?);
        rest = rest[values.byte_offset()..].trim_start().trim_start_matches(',');
    }
    report("", errors)
}

fn object(error: &Value) -> Option<String> {
    let keyword = error.get("code").or_else(|| error.get("keyword"))?.as_str()?;
    let path = match error.get("path").or_else(|| error.get("instancePath"))? {
        Value::Array(steps) => steps.iter().map(|step| step.as_str().unwrap_or("0")).collect::<Vec<_>>().join("."),
        Value::String(path) => path.clone(),
        _ => return None,
    };
    let param = error.pointer("/params/missingProperty").or_else(|| error.get("expected")).and_then(Value::as_str);
    Some(format!("{}{keyword}{}", prefix(&path), param.map(|param| format!(" {param}")).unwrap_or_default()))
}

/// `data/items/0/price must be number, data/items/3/price must be number`
fn ajv(message: &str) -> Option<(String, Vec<Masked>)> {
    let mut errors = BTreeSet::new();
    for error in message.strip_prefix("data")?.split(", data") {
        let said = error.split_once(" must ").or_else(|| error.split_once(" should "));
        let Some((path, said)) = said.filter(|(path, _)| !path.contains(' ')) else { break };
        errors.insert(format!("{}{}", prefix(path), template(said)));
    }
    report("", errors)
}

/// Python's `'x' is not of type 'number'` with where that failed. For a missing property its name is told first.
fn located(message: &str) -> Option<(String, Vec<Masked>)> {
    let (said, rest) = message.split_once('\n')?;
    let rest = rest.strip_prefix("\nFailed validating ")?;
    let keyword = rest.split('\'').nth(1)?;
    let (_, instance) = rest.split_once("On instance")?;
    let path = instance.split(":\n").next()?;
    let property = said.split('\'').nth(1).filter(|_| matches!(keyword, "required" | "dependentRequired"));
    let name = property.map(|name| format!(" {name}")).unwrap_or_default();
    report("", BTreeSet::from([format!("{}{keyword}{name}", prefix(path))]))
}

/// The same alone, as other validators for JSON Schema say it too: what stands before is the input.
fn complaint(message: &str) -> Option<(String, Vec<Masked>)> {
    let literal = ["null", "None", "true", "True", "false", "False"].iter().any(|literal| message.starts_with(literal));
    if !literal && !message.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '\'' | '"' | '{' | '[' | '-')) {
        return None;
    }
    let at = [" is ", " does ", " has "].iter().filter_map(|verb| message.find(verb)).min()?;
    let (value, said) = message.split_at(at);
    if !is_value(value) || !COMPLAINTS.iter().any(|complaint| said.starts_with(complaint)) {
        return None;
    }
    let mut template = Template::with_capacity(message.len());
    template.mask("value", value, false);
    message::read_into(said, &mut template);
    Some(template.finish())
}

/// Whether this is one value as JSON or Python writes it.
fn is_value(text: &str) -> bool {
    let bytes = text.as_bytes();
    match (bytes.first(), bytes.last()) {
        (Some(b'{'), Some(b'}')) | (Some(b'['), Some(b']')) => true,
        (Some(quote @ (b'\'' | b'"')), Some(end)) => quote == end && bytes.len() > 1,
        _ => matches!(text, "null" | "None" | "true" | "false" | "True" | "False") || text.parse::<f64>().is_ok(),
    }
}

fn template(text: &str) -> String {
    message::read(text).0
}

/// `items.0.price`, `/items/0/price` and `['items'][0]['price']` are `items.*.price`.
fn prefix(path: &str) -> String {
    let steps = path.split(['.', '/', '[', ']', '\'', '"', '#']).map(str::trim).filter(|step| !step.is_empty());
    let steps = steps.map(|step| if step.bytes().all(|b| b.is_ascii_digit()) { "*" } else { step });
    let path = steps.collect::<Vec<_>>().join(".");
    if path.is_empty() { path } else { path + " " }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(message: &str) -> String {
        read(message).map(|(template, _)| template).unwrap_or_default()
    }

    #[test]
    fn errors_are_told_by_path_and_keyword() {
        let table = [
            (
                "2 validation errors for Page\nitems.3.price\n  Field required [type=missing, input_value={}, input_type=dict]\n    For \
                 further information visit https://x/\nitems.9.price\n  Field required [type=missing, input_value={'a': 1}]",
                "validation of Page: items.*.price missing",
            ),
            (
                "1 validation error for Page\n  Invalid JSON: EOF while parsing a string at line 1 column 26 [type=json_invalid, \
                 input_value='{', input_type=str]",
                "validation of Page: json_invalid (Invalid JSON: EOF while parsing a string at line <*> column <*>)",
            ),
            (
                "1 validation error for P\nprice\n  field required (type=value_error.missing)",
                "validation of P: price value_error.missing",
            ),
            (
                "[{\"code\":\"invalid_type\",\"expected\":\"string\",\"path\":[\"items\",4,\"sku\"],\"message\":\"Required\"}]",
                "validation: items.*.sku invalid_type string",
            ),
            (
                "[{\"code\":\"invalid_type\",\"path\":[\"items\",4,\"sku\"]}, {\"code\":\"invalid_type\",\"path\":[\"items\",5,\"sku\"]}, {\"co",
                "validation: items.*.sku invalid_type",
            ),
            (
                "[{\"instancePath\":\"/items/0\",\"keyword\":\"required\",\"params\":{\"missingProperty\":\"sku\"}}]",
                "validation: items.* required sku",
            ),
            (
                "data/items/0/price must be number, data/items/7/price must be number",
                "validation: items.*.price be number",
            ),
            (
                "'sku' is a required property\n\nFailed validating 'required' in schema['items']:\n    {}\n\nOn \
                 instance['items'][0]:\n    {'a': 1}",
                "validation: items.* required sku",
            ),
            ("'12,5' is not of type 'number'", "<*> is not of type 'number'"),
            ("null is not of type \"string\"", "<*> is not of type \"string\""),
            ("403 Forbidden: name is too long", ""),
            ("{'a': 'b'} is not of type 'array'", "<*> is not of type 'array'"),
            ("'price' is a required property", ""),
            ("[Errno 2] No such file", ""),
            ("3 items failed", ""),
        ];
        for (message, template) in table {
            assert_eq!(told(message), template, "{message}");
        }
    }
}
