//! A response's body, parsed once so that every rule can read it.
//!
//! HTML parses as in a browser, whatever it is; JSON and XML either are well-formed or are refused with the spot that
//! broke. Everything that a hostile document could have without bound is capped, see `caps`. A document is not `Send`: parse it, read it and drop it between two
//! awaits.

mod caps;
mod entities;
mod html;
mod tags;
mod xml;

use std::fmt;

use scraper::Html;
use serde::Deserialize;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

pub use self::caps::Cap;

/// How a body is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// A page; it always parses.
    Html,
    /// One JSON value.
    Json,
    /// A well-formed XML document.
    Xml,
    /// Text without structure.
    Text,
}

impl Format {
    /// What a `Content-Type` header says, without its parameters; `None` if it names nothing that can be read.
    pub fn of_content_type(header: &str) -> Option<Self> {
        let essence = header.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        match essence.as_str() {
            "text/html" | "application/xhtml+xml" => Some(Self::Html),
            "application/json" | "text/json" => Some(Self::Json),
            "application/xml" | "text/xml" => Some(Self::Xml),
            other if other.ends_with("+json") => Some(Self::Json),
            other if other.ends_with("+xml") => Some(Self::Xml),
            other if other.starts_with("text/") => Some(Self::Text),
            _ => None,
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Html => "HTML",
            Self::Json => "JSON",
            Self::Xml => "XML",
            Self::Text => "text",
        })
    }
}

/// A parsed body.
#[derive(Debug)]
pub enum Document<'a> {
    /// HTML or XML: a tree of elements.
    Page(Html),
    /// A JSON value.
    Json(Value),
    /// Text as it came.
    Text(&'a str),
}

impl<'a> Document<'a> {
    /// Parses a body whose charset is already decoded.
    pub fn parse(format: Format, text: &'a str) -> Result<Self, Malformed> {
        Self::parse_until(format, text, &CancellationToken::new())
    }

    /// The same, given up once nobody wants the document any more; what is given back then is not whole.
    pub(crate) fn parse_until(format: Format, text: &'a str, stop: &CancellationToken) -> Result<Self, Malformed> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        match format {
            Format::Html => html::parse(text, stop).map(Self::Page),
            Format::Json => serde_json::from_str(text).map(Self::Json).map_err(|error| Malformed::json(&error)),
            Format::Xml => xml::parse(text, stop).map(Self::Page),
            Format::Text => Ok(Self::Text(text)),
        }
    }
}

/// Why a body is not what it should be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} {format} at line {line} column {column}: {message}", if *.truncated { "truncated" } else { "invalid" })]
pub struct Malformed {
    /// What it should have been.
    pub format: Format,
    /// Whether it simply stops too early.
    pub truncated: bool,
    /// The cap that it is above, if that is what is wrong.
    pub cap: Option<Cap>,
    /// The line that broke it, from 1.
    pub line: usize,
    /// The column that broke it, from 1.
    pub column: usize,
    /// What the parser says.
    pub message: String,
}

impl Malformed {
    /// A stable name to group failures by.
    pub const fn code(&self) -> &'static str {
        match (self.cap, self.format, self.truncated) {
            (Some(cap), format, _) => cap.code(format),
            (None, Format::Xml, true) => "XmlTruncated",
            (None, Format::Xml, false) => "XmlInvalid",
            (None, _, true) => "JsonTruncated",
            (None, _, false) => "JsonInvalid",
        }
    }

    fn json(error: &serde_json::Error) -> Self {
        let (line, column) = (error.line().max(1), error.column().max(1));
        let text = error.to_string();
        let message = text.rsplit_once(" at line ").map_or(text.as_str(), |(message, _)| message).to_owned();
        Self { format: Format::Json, truncated: error.is_eof(), cap: None, line, column, message }
    }
}

/// The line and column after a text, from 1.
fn end_of(text: &str) -> (usize, usize) {
    let last = text.rsplit('\n').next().unwrap_or_default();
    (text.matches('\n').count() + 1, last.chars().count() + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn broken(format: Format, text: &str) -> Malformed {
        Document::parse(format, text).expect_err("malformed")
    }

    #[test]
    fn content_types_name_formats() {
        let of = Format::of_content_type;
        assert_eq!(of("text/html; charset=utf-8"), Some(Format::Html));
        assert_eq!(of("Application/XHTML+xml"), Some(Format::Html));
        assert_eq!(of("application/ld+json"), Some(Format::Json));
        assert_eq!(of("application/json;charset=UTF-8"), Some(Format::Json));
        assert_eq!(of("application/rss+xml"), Some(Format::Xml));
        assert_eq!(of("text/csv"), Some(Format::Text));
        assert_eq!(of("application/octet-stream"), None);
        assert_eq!(of(""), None);
    }

    #[test]
    fn truncated_json_says_where_it_stops() {
        let error = broken(Format::Json, "{\n  \"a\": [1, 2");
        assert_eq!((error.truncated, error.line, error.column), (true, 2, 12));
        assert_eq!(error.code(), "JsonTruncated");
        assert_eq!(error.to_string(), "truncated JSON at line 2 column 12: EOF while parsing a list");
        let empty = broken(Format::Json, "");
        assert_eq!((empty.truncated, empty.line, empty.column), (true, 1, 1));
    }

    #[test]
    fn invalid_json_says_where() {
        let error = broken(Format::Json, "<!doctype html><p>Sorry");
        assert_eq!(error.to_string(), "invalid JSON at line 1 column 1: expected value");
        assert_eq!(error.code(), "JsonInvalid");
        assert!(broken(Format::Json, "{} trailing").message.contains("trailing"));
        let deep = "[".repeat(100_000);
        assert!(!broken(Format::Json, &deep).message.is_empty(), "depth is bounded");
    }

    #[test]
    fn numbers_keep_their_digits() {
        let Ok(Document::Json(value)) =
            Document::parse(Format::Json, "\u{feff}[12.50, 123456789012345678901234567890]")
        else {
            panic!("JSON")
        };
        assert_eq!(value.to_string(), "[12.50,123456789012345678901234567890]");
    }
}
