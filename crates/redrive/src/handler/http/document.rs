//! A response's body, parsed once so that every rule can read it.
//!
//! HTML always parses, as in a browser; JSON and XML either are well-formed or are refused with the spot that broke. An
//! XML document becomes the same kind of tree as a page, so that one selector engine serves both. A document is not
//! `Send`: parse it, read it and drop it between two awaits.

use html5ever::driver::{ParseOpts, parse_document};
use html5ever::interface::{NodeOrText, TreeSink};
use html5ever::tendril::TendrilSink;
use html5ever::tree_builder::TreeBuilderOpts;
use html5ever::{Attribute, LocalName, Namespace, QualName};
use scraper::{Html, HtmlTreeSink};
use serde::Deserialize;
use serde_json::Value;
use std::fmt;

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
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        match format {
            Format::Html => Ok(Self::Page(html(text))),
            Format::Json => serde_json::from_str(text).map(Self::Json).map_err(|error| Malformed::json(&error)),
            Format::Xml => xml(text).map(Self::Page).map_err(|error| Malformed::xml(&error, text)),
            Format::Text => Ok(Self::Text(text)),
        }
    }
}

/// Whether a page opens `<html` and never closes it. Only a hint: the closing tag may be left out by right.
pub fn is_truncated_html(text: &str) -> bool {
    let bytes = text.as_bytes();
    let closed = bytes.windows(6).rev().any(|window| window.eq_ignore_ascii_case(b"</html"));
    !closed && bytes.windows(5).any(|window| window.eq_ignore_ascii_case(b"<html"))
}

/// Why a body is not what it should be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} {format} at line {line} column {column}: {message}", if *.truncated { "truncated" } else { "invalid" })]
pub struct Malformed {
    /// What it should have been.
    pub format: Format,
    /// Whether it simply stops too early.
    pub truncated: bool,
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
        match (self.format, self.truncated) {
            (Format::Xml, true) => "XmlTruncated",
            (Format::Xml, false) => "XmlInvalid",
            (_, true) => "JsonTruncated",
            (_, false) => "JsonInvalid",
        }
    }

    fn json(error: &serde_json::Error) -> Self {
        let (line, column) = (error.line().max(1), error.column().max(1));
        let text = error.to_string();
        let message = text.rsplit_once(" at line ").map_or(text.as_str(), |(message, _)| message).to_owned();
        Self { format: Format::Json, truncated: error.is_eof(), line, column, message }
    }

    fn xml(error: &roxmltree::Error, text: &str) -> Self {
        use roxmltree::Error::{NoRootNode, UnclosedRootNode, UnexpectedEndOfStream};
        let truncated = matches!(error, UnclosedRootNode | UnexpectedEndOfStream | NoRootNode);
        // The parser has no position for these: it is the end of the text.
        let (line, column) = if truncated {
            let last = text.rsplit('\n').next().unwrap_or_default();
            (text.matches('\n').count() + 1, last.chars().count() + 1)
        } else {
            (error.pos().row as usize, error.pos().col as usize)
        };
        let text = error.to_string();
        let message = text.rsplit_once(" at ").filter(|_| !truncated).map_or(text.as_str(), |(message, _)| message);
        Self { format: Format::Xml, truncated, line, column, message: message.to_owned() }
    }
}

/// Parses a page as a browser without scripts does: what stands in `<noscript>` is part of it.
fn html(text: &str) -> Html {
    let tree_builder = TreeBuilderOpts { scripting_enabled: false, ..TreeBuilderOpts::default() };
    let options = ParseOpts { tree_builder, ..ParseOpts::default() };
    parse_document(HtmlTreeSink::new(Html::new_document()), options).one(text)
}

/// Parses XML and plants it node by node in the tree that selectors walk. Elements keep their case and their namespace.
fn xml(text: &str) -> Result<Html, roxmltree::Error> {
    // Old feeds declare a DTD. No external entity is ever loaded, and expansion of internal ones is bounded.
    let options = roxmltree::ParsingOptions { allow_dtd: true, ..roxmltree::ParsingOptions::default() };
    let document = roxmltree::Document::parse_with_options(text, options)?;
    let sink = HtmlTreeSink::new(Html::new_document());
    // In document order, so a parent's handle is there before its children ask for it; indexed by node id.
    let mut handles = vec![sink.get_document()];
    for node in document.descendants().skip(1) {
        let parent = node.parent().map_or(handles[0], |parent| handles[parent.id().get_usize()]);
        let mut handle = parent;
        if node.is_element() {
            handle = sink.create_element(name(node), attributes(node), Default::default());
            sink.append(&parent, NodeOrText::AppendNode(handle));
        } else if let (true, Some(text)) = (node.is_text(), node.text()) {
            sink.append(&parent, NodeOrText::AppendText(text.into()));
        }
        handles.push(handle);
    }
    Ok(sink.finish())
}

fn name(node: roxmltree::Node<'_, '_>) -> QualName {
    let tag = node.tag_name();
    QualName::new(None, Namespace::from(tag.namespace().unwrap_or_default()), LocalName::from(tag.name()))
}

/// Attributes by their local names, as selectors write them; where two share one, the one without a prefix stays.
fn attributes(node: roxmltree::Node<'_, '_>) -> Vec<Attribute> {
    let is_plain = |name: &str| node.attributes().any(|other| other.namespace().is_none() && other.name() == name);
    node.attributes()
        .filter(|attribute| attribute.namespace().is_none() || !is_plain(attribute.name()))
        .map(|attribute| Attribute {
            name: QualName::new(None, Namespace::default(), LocalName::from(attribute.name())),
            value: attribute.value().into(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use scraper::Selector;

    fn texts(document: &Document<'_>, css: &str) -> Vec<String> {
        let Document::Page(page) = document else { panic!("a page, not {document:?}") };
        let selector = Selector::parse(css).expect("a selector");
        page.select(&selector).map(|element| element.text().collect()).collect()
    }

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
    fn html_always_parses() {
        for text in ["", "\u{0}<<<>", "<p>half a par", "</html>", "plain"] {
            assert!(Document::parse(Format::Html, text).is_ok(), "{text:?}");
        }
    }

    #[test]
    fn what_stands_in_noscript_is_part_of_a_page() {
        let page = Document::parse(Format::Html, "<body><noscript><b>here</b></noscript>").expect("a page");
        assert_eq!(texts(&page, "noscript b"), ["here"]);
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

    #[test]
    fn xml_keeps_case_and_what_html_would_break() {
        let feed = "<?xml version=\"1.0\"?><rss xmlns:m=\"urn:m\"><channel><link>https://a.example/</link>\
                    <pubDate>today</pubDate><m:thumb m:url=\"x\" m:id=\"1\" id=\"2\"/><![CDATA[<raw>]]></channel></rss>";
        let document = Document::parse(Format::Xml, feed).expect("a feed");
        assert_eq!(texts(&document, "channel > link"), ["https://a.example/"]);
        assert_eq!(texts(&document, "pubDate"), ["today"]);
        assert_eq!(texts(&document, "pubdate"), [""; 0]);
        assert_eq!(texts(&document, "thumb[url=x][id='2']"), [""]);
        assert_eq!(texts(&document, "channel"), ["https://a.example/today<raw>"]);
    }

    #[test]
    fn broken_xml_says_where() {
        let error = broken(Format::Xml, "<a>\n<b></c></a>");
        assert_eq!((error.truncated, error.line, error.code()), (false, 2, "XmlInvalid"));
        assert_eq!(error.to_string(), "invalid XML at line 2 column 4: expected 'b' tag, not 'c'");
        let cut = broken(Format::Xml, "<a>\n<b>tex");
        assert_eq!((cut.truncated, cut.line, cut.column, cut.code()), (true, 2, 7, "XmlTruncated"));
        assert!(broken(Format::Xml, "<a>\n<b attr=\"x").truncated, "inside of a tag");
        assert!(broken(Format::Xml, "").truncated);
        assert_eq!(broken(Format::Xml, "<a>&nbsp;</a>").code(), "XmlInvalid");
    }

    #[test]
    fn hostile_xml_neither_overflows_nor_explodes() {
        let deep = format!("{}{}", "<a>".repeat(100_000), "</a>".repeat(100_000));
        assert!(Document::parse(Format::Xml, &deep).is_ok());
        let laughs = "<!DOCTYPE l [<!ENTITY a \"ha\"><!ENTITY b \"&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;\">\
            <!ENTITY c \"&b;&b;&b;&b;&b;&b;&b;&b;&b;&b;\"><!ENTITY d \"&c;&c;&c;&c;&c;&c;&c;&c;&c;&c;\">]><l>&d;</l>";
        assert_eq!(broken(Format::Xml, laughs).code(), "XmlInvalid");
        let file = "<!DOCTYPE l [<!ENTITY x SYSTEM \"file:///etc/passwd\">]><l>&x;</l>";
        assert_eq!(broken(Format::Xml, file).code(), "XmlInvalid");
    }

    #[test]
    fn a_page_that_never_closes_is_suspect() {
        assert!(is_truncated_html("<!doctype html><HTML lang=en><body><p>half"));
        assert!(!is_truncated_html("<html><body></body></HTML >"));
        assert!(!is_truncated_html("<p>a fragment"));
        assert!(!is_truncated_html(""));
    }
}
