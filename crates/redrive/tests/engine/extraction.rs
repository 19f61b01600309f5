//! Every example of the page on extraction: the rules make of the page what stands below it.

use redrive::handler::http::document::{Document, Format};
use redrive::handler::http::extract::{Extractor, Rules};
use redrive::handler::http::validate::Validator;
use serde_json::Value;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/extraction.md");

/// The fenced blocks of a text: what stands behind the fence, and what is in it.
fn blocks(text: &str) -> Vec<(String, String)> {
    let mut blocks = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if let Some(info) = line.strip_prefix("```") {
            let inside: Vec<&str> = lines.by_ref().take_while(|line| !line.starts_with("```")).collect();
            blocks.push((info.to_owned(), inside.join("\n")));
        }
    }
    blocks
}

fn extractor(fields: &str) -> Extractor {
    let rules: Rules =
        toml::from_str(&format!("[fields]\n{fields}")).unwrap_or_else(|error| panic!("{fields}\n{error}"));
    rules.compile().unwrap_or_else(|error| panic!("{fields}\n{error}"))
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{text}\n{error}"))
}

#[test]
#[cfg_attr(not(feature = "json-schema"), ignore = "needs the feature json-schema")]
fn the_examples_are_what_comes_of_them() {
    let text = std::fs::read_to_string(PAGE).expect("the page");
    let (mut page, mut fields, mut schema, mut examples) = ((String::new(), String::new()), String::new(), None, 0);
    for (info, block) in blocks(&text) {
        let Some((language, role)) = info.split_once(' ') else { panic!("a block says what it is: {info}") };
        if role == "page" {
            page = (language.to_owned(), block);
            continue;
        }
        if role == "fields" {
            (fields, schema) = (block, None);
            continue;
        }
        if role == "schema" {
            schema = Some(Validator::compile(&json(&block)).expect("a schema"));
            continue;
        }
        let content_type = if page.0 == "xml" { "text/xml" } else { "text/html" };
        let extractor = extractor(&fields);
        let document = Document::parse(extractor.format(Some(content_type)), &page.1).expect("a document");
        let made = extractor.extract(&document).map(Value::Object).map_err(|partial| partial.misses.to_string());
        let made = made.and_then(|record| match &schema {
            Some(schema) => schema.validate(&record).map(|()| record).map_err(|violation| violation.to_string()),
            None => Ok(record),
        });
        let expected = match role {
            "record" => Ok(json(&block)),
            "failure" => Err(block),
            other => panic!("no such block: {other}"),
        };
        assert_eq!(made, expected, "{fields}");
        examples += 1;
    }
    assert!(examples >= 10, "{examples}");
}

#[test]
fn without_fields_the_document_is_the_record() {
    let made = |rules: &str, content_type: &str, body: &str| {
        let extractor = toml::from_str::<Rules>(rules).expect("rules").compile().expect("compiled");
        let document = Document::parse(extractor.format(Some(content_type)), body).expect("a document");
        extractor.extract(&document).map(Value::Object).map_err(|partial| partial.misses.to_string())
    };
    let json = |text: &str| Ok(json(text));
    assert_eq!(made("", "application/json", "{\"a\": 1}"), json("{\"a\": 1}"));
    assert_eq!(made("", "application/json", "[1]"), json("{\"json\": [1]}"));
    assert_eq!(made("", "text/html", "<p>a"), json("{\"text\": \"<p>a\"}"));
    assert_eq!(made("", "text/xml", "<a>b</a>"), json("{\"html\": \"<a>b</a>\"}"));
    let html = made("format = \"html\"", "text/html", "<p>a").expect("a record")["html"].clone();
    assert!(html.as_str().is_some_and(|html| html.contains("<p>a</p>")), "{html}");
    assert!(made("", "text/plain", " ").is_err());
    assert_eq!(Format::of_content_type("text/plain"), Some(Format::Text));
}
