//! From rules as data to rules that run.
//!
//! All that can be wrong with them is said here, before the first request, with the field and its selector.

use crate::handler::http::document::Format;

use super::convert::Kind;
use super::css::{self, Find, PageField, PageFields, Part};
use super::extractor::{Extractor, Source};
use super::field::{Field, Fields, Rules};
use super::miss::Head;
use super::number::Mark;
use super::pointer::{self, JsonField, JsonFields, Pointer};

/// A rule that cannot work.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("field {field}{}: {problem}", if .rule.is_empty() { String::new() } else { format!(" ({rule})") })]
pub struct RuleError {
    /// The field, with its path: `offers.price`.
    pub field: String,
    /// Its selector or pointer, as it is written.
    pub rule: String,
    /// What is wrong.
    pub problem: Problem,
}

/// What is wrong with a rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// The selector is not CSS, or not of the CSS that can be matched on a page at rest.
    #[error("not a CSS selector: {0}")]
    Selector(String),
    /// A suffix in the wrong place, twice, or without a name.
    #[error("`::text` or `::attr(name)` comes once, at the end of the selector")]
    Suffix,
    /// The pointer is none.
    #[error("not a JSON pointer: it starts with `/`, and `~` is written `~0`")]
    Pointer,
    /// Both a selector and a pointer.
    #[error("`select` and `pointer` exclude each other")]
    TwoSources,
    /// Neither a selector nor a pointer.
    #[error("`select` or `pointer` is missing")]
    NoSource,
    /// A selector for JSON, or a pointer for a page.
    #[error("a selector reads HTML or XML, a pointer reads JSON: here it is {0}")]
    WrongSource(&'static str),
    /// Fields, but the format is text.
    #[error("text has no fields: leave them out, and the record is `{{\"text\": …}}`")]
    FieldsOfText,
    /// There is no such type.
    #[error("unknown type {0:?}: one of {names}", names = Kind::NAMES.join(", "))]
    Type(String),
    /// A decimal mark that is none, or without a number.
    #[error("`decimal` is \".\" or \",\", with type number or integer")]
    Decimal,
    /// Markup of what has none.
    #[error("type html takes an element: without `::text`, `::attr(name)` or a pointer")]
    HtmlOfText,
    /// Both a type and fields.
    #[error("with `fields` it is an object: no type but json fits, for JSON inside of a text")]
    TypeOfFields,
    /// Fields of a text or an attribute.
    #[error("`fields` are relative to an element: without `::text` or `::attr(name)`, unless its type is json")]
    FieldsOfPart,
    /// Fields, but none in them.
    #[error("`fields` is empty")]
    NoFields,
}

impl Rules {
    /// Checks the rules and makes them ready for use.
    pub fn compile(self) -> Result<Extractor, RuleError> {
        let rules = format!("{self:?}");
        let source = match (self.format, self.fields.0.first()) {
            (_, None) => Source::Whole,
            (Some(Format::Text), Some((name, field))) => return Err(field.refuse(name, Problem::FieldsOfText)),
            (Some(Format::Json), _) => Source::Json(json_fields(self.fields)?),
            (Some(Format::Html | Format::Xml), _) => Source::Page(page_fields(self.fields)?),
            (None, Some((_, first))) if first.pointer.is_some() => Source::Json(json_fields(self.fields)?),
            (None, Some(_)) => Source::Page(page_fields(self.fields)?),
        };
        Ok(Extractor::new(self.format, source, &rules))
    }
}

fn page_fields(fields: Fields) -> Result<PageFields, RuleError> {
    compile_all(fields, page_field).map(PageFields)
}

fn json_fields(fields: Fields) -> Result<JsonFields, RuleError> {
    compile_all(fields, json_field).map(JsonFields)
}

fn compile_all<T>(fields: Fields, one: fn(&str, Field) -> Result<T, Refusal>) -> Result<Vec<T>, RuleError> {
    let compile = |(name, field): (String, Field)| {
        let rule = field.rule().to_owned();
        one(&name, field).map_err(|refusal| match refusal {
            Refusal::Own(problem) => RuleError { field: name, rule, problem },
            Refusal::Inner(inner) => RuleError { field: format!("{name}.{}", inner.field), ..inner },
        })
    };
    fields.0.into_iter().map(compile).collect()
}

/// A problem of a field itself, or of one of its own fields.
enum Refusal {
    Own(Problem),
    Inner(RuleError),
}

impl From<Problem> for Refusal {
    fn from(problem: Problem) -> Self {
        Self::Own(problem)
    }
}

impl From<RuleError> for Refusal {
    fn from(error: RuleError) -> Self {
        Self::Inner(error)
    }
}

fn page_field(name: &str, field: Field) -> Result<PageField, Refusal> {
    let kind = field.kind()?;
    let select = match (&field.select, &field.pointer) {
        (Some(_), Some(_)) => return Err(Problem::TwoSources.into()),
        (None, None) => return Err(Problem::NoSource.into()),
        (None, Some(_)) => return Err(Problem::WrongSource("a page").into()),
        (Some(select), None) => select.trim(),
    };
    let (css, part) = split_suffix(select)?;
    let find = Find::parse(css).map_err(|error| selector_problem(css, error))?;
    let rule = match (&part, css) {
        (Some(Part::Attribute(_)), _) => select,
        (_, "") => ":scope",
        (_, css) => css,
    };
    let head = Head { name: name.to_owned(), rule: rule.to_owned(), required: field.required, list: field.list };
    let take = match (field.fields, kind, part) {
        (Some(fields), _, _) if fields.0.is_empty() => return Err(Problem::NoFields.into()),
        (Some(fields), Some(Kind::Json), part) => {
            css::Take::JsonFields(part.unwrap_or(Part::Text), json_fields(fields)?)
        }
        (Some(_), Some(_), _) => return Err(Problem::TypeOfFields.into()),
        (Some(_), None, Some(_)) => return Err(Problem::FieldsOfPart.into()),
        (Some(fields), None, None) => css::Take::Fields(page_fields(fields)?),
        (None, Some(Kind::Html), Some(_)) => return Err(Problem::HtmlOfText.into()),
        (None, Some(Kind::Html), None) => css::Take::Html,
        (None, kind, part) => css::Take::Part(part.unwrap_or(Part::Text), kind.unwrap_or(Kind::Text)),
    };
    Ok(PageField { head, find, take })
}

fn json_field(name: &str, field: Field) -> Result<JsonField, Refusal> {
    let kind = field.kind()?;
    let rule = match (&field.select, &field.pointer) {
        (Some(_), Some(_)) => return Err(Problem::TwoSources.into()),
        (None, None) => return Err(Problem::NoSource.into()),
        (Some(_), None) => return Err(Problem::WrongSource("JSON").into()),
        (None, Some(pointer)) => pointer.clone(),
    };
    let pointer = Pointer::parse(&rule).ok_or(Problem::Pointer)?;
    let head = Head { name: name.to_owned(), rule, required: field.required, list: field.list };
    let take = match (field.fields, kind) {
        (_, Some(Kind::Html)) => return Err(Problem::HtmlOfText.into()),
        (Some(fields), _) if fields.0.is_empty() => return Err(Problem::NoFields.into()),
        (Some(fields), None) => pointer::Take::Fields(json_fields(fields)?),
        (Some(fields), Some(Kind::Json)) => pointer::Take::TextFields(json_fields(fields)?),
        (Some(_), Some(_)) => return Err(Problem::TypeOfFields.into()),
        (None, Some(kind)) => pointer::Take::Kind(kind),
        (None, None) => pointer::Take::Value,
    };
    Ok(JsonField { head, pointer, take })
}

/// Parts a selector from its suffix; without one the part is left open.
fn split_suffix(select: &str) -> Result<(&str, Option<Part>), Problem> {
    if let Some(css) = select.strip_suffix("::text") {
        return Ok((css.trim_end(), Some(Part::Text)));
    }
    let Some((css, name)) = select.strip_suffix(')').and_then(|rest| rest.rsplit_once("::attr(")) else {
        return if select.is_empty() { Err(Problem::Selector("it is empty".into())) } else { Ok((select, None)) };
    };
    let name = name.trim();
    let is_name = !name.is_empty() && !name.contains(|c: char| c.is_whitespace() || "\"'()[]<>=".contains(c));
    is_name.then(|| (css.trim_end(), Some(Part::Attribute(name.to_owned())))).ok_or(Problem::Suffix)
}

fn selector_problem(css: &str, error: String) -> Problem {
    let has_suffix = css.contains("::text") || css.contains("::attr");
    if has_suffix { Problem::Suffix } else { Problem::Selector(error) }
}

impl Field {
    fn rule(&self) -> &str {
        self.select.as_deref().or(self.pointer.as_deref()).unwrap_or_default()
    }

    fn refuse(&self, name: &str, problem: Problem) -> RuleError {
        RuleError { field: name.to_owned(), rule: self.rule().to_owned(), problem }
    }

    fn kind(&self) -> Result<Option<Kind>, Problem> {
        let mark = match self.decimal.as_deref() {
            None => Mark::Unstated,
            Some(".") => Mark::Point,
            Some(",") => Mark::Comma,
            Some(_) => return Err(Problem::Decimal),
        };
        let named = |name: &String| Kind::named(name, mark).ok_or_else(|| Problem::Type(name.clone()));
        let kind = self.kind.as_ref().map(named).transpose()?;
        let is_number = matches!(kind, Some(Kind::Number(_) | Kind::Integer(_)));
        if self.decimal.is_some() && !is_number { Err(Problem::Decimal) } else { Ok(kind) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(toml: &str) -> RuleError {
        let rules: Rules = toml::from_str(toml).expect("rules");
        rules.compile().expect_err("refused")
    }

    fn problem(field: &str) -> Problem {
        let error = refused(&format!("[fields]\nx = {field}"));
        assert_eq!(error.field, "x");
        error.problem
    }

    #[test]
    fn errors_name_the_field_and_the_selector() {
        let error = refused("[fields]\nprice = \".price[::text\"");
        assert_eq!((error.field.as_str(), error.rule.as_str()), ("price", ".price[::text"));
        assert!(error.to_string().starts_with("field price (.price[::text): not a CSS selector: "), "{error}");
        let error = refused(
            "[fields]\noffers = { select = \".o\", fields = { price = { select = \".p\", type = \"flot\" } } }",
        );
        assert_eq!(
            error.to_string(),
            "field offers.price (.p): unknown type \"flot\": one of string, number, integer, boolean, json, html"
        );
        assert_eq!(refused("[fields]\nx = {}").to_string(), "field x: `select` or `pointer` is missing");
    }

    #[test]
    fn selectors_that_are_none() {
        for css in ["", "   ", "p >", "..a", "p::before", "a:hover", "p:nth-child(", "div[", "{}", "a,,b"] {
            let problem = problem(&format!("{css:?}"));
            assert!(matches!(problem, Problem::Selector(_)), "{css}: {problem:?}");
        }
        for css in ["h1::text, h2::text", "h1::text b", "a::attr()", "a::attr(a b)", "a::attr(href)::text", "a::attr(x"]
        {
            assert_eq!(problem(&format!("{css:?}")), Problem::Suffix, "{css}");
        }
        assert!(matches!(problem("{ select = \"/a/b\" }"), Problem::Selector(_)));
        let xpath = refused("[fields]\ntitle = \"//h1\"").to_string();
        assert_eq!(xpath, "field title (//h1): not a CSS selector: it is XPath; in CSS it is `h1`");
    }

    #[test]
    fn pointers_that_are_none() {
        assert_eq!(problem("{ pointer = \"a/b\" }"), Problem::Pointer);
        assert_eq!(problem("\"/a~b\""), Problem::Pointer);
    }

    #[test]
    fn sources_exclude_each_other() {
        assert_eq!(problem("{ select = \"a\", pointer = \"/a\" }"), Problem::TwoSources);
        assert_eq!(problem("{ list = true }"), Problem::NoSource);
        assert_eq!(refused("[fields]\na = \"h1\"\nb = \"/b\"").problem, Problem::WrongSource("a page"));
        assert_eq!(refused("[fields]\na = \"/a\"\nb = \"h1\"").problem, Problem::WrongSource("JSON"));
        assert_eq!(refused("format = \"json\"\nfields = { a = \"h1\" }").problem, Problem::WrongSource("JSON"));
        assert_eq!(refused("format = \"xml\"\nfields = { a = \"/h1\" }").problem, Problem::WrongSource("a page"));
        assert_eq!(refused("format = \"text\"\nfields = { a = \"h1\" }").problem, Problem::FieldsOfText);
        let nested = refused("[fields]\na = { pointer = \"/a\", fields = { b = \"h1\" } }");
        assert_eq!((nested.field.as_str(), nested.rule.as_str()), ("a.b", "h1"));
    }

    #[test]
    fn types_must_fit() {
        assert_eq!(problem("{ select = \"a\", type = \"Number\" }"), Problem::Type("Number".into()));
        assert_eq!(problem("{ select = \"a\", decimal = \",\" }"), Problem::Decimal);
        assert_eq!(problem("{ select = \"a\", type = \"number\", decimal = \";\" }"), Problem::Decimal);
        assert_eq!(problem("{ select = \"a::attr(b)\", type = \"html\" }"), Problem::HtmlOfText);
        assert_eq!(problem("{ pointer = \"/a\", type = \"html\" }"), Problem::HtmlOfText);
        assert_eq!(problem("{ select = \"a\", type = \"number\", fields = { b = \"i\" } }"), Problem::TypeOfFields);
        assert_eq!(problem("{ pointer = \"/a\", type = \"number\", fields = { b = \"/i\" } }"), Problem::TypeOfFields);
        assert_eq!(problem("{ select = \"a::text\", fields = { b = \"i\" } }"), Problem::FieldsOfPart);
        assert_eq!(problem("{ select = \"a\", fields = {} }"), Problem::NoFields);
    }

    #[test]
    fn suffixes_are_parted() {
        let attribute = |name: &str| Some(Part::Attribute(name.into()));
        assert_eq!(split_suffix("h1 b::text"), Ok(("h1 b", Some(Part::Text))));
        assert_eq!(split_suffix("h1 ::text"), Ok(("h1", Some(Part::Text))));
        assert_eq!(split_suffix("a[x=')']::attr( data-id )"), Ok(("a[x=')']", attribute("data-id"))));
        assert_eq!(split_suffix("::attr(href)"), Ok(("", attribute("href"))));
        assert_eq!(split_suffix("p:not(.a)"), Ok(("p:not(.a)", None)));
    }
}
