//! Rules that are ready to read documents.
//!
//! They say themselves how a body must be parsed; a document of another kind simply lacks all of their fields.

use redrive_core::traffic::Coverage;
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use crate::handler::http::document::{Document, Format};

use super::css::PageFields;
use super::miss::{Miss, MissKind};
use super::pointer::JsonFields;
use super::record::Partial;

/// Makes a record out of a document. It holds no document and can be shared between threads.
#[derive(Clone, Debug)]
pub struct Extractor {
    format: Option<Format>,
    pub(super) source: Source,
    /// The beginning of the hash of the rules.
    version: String,
}

/// What kind of document the rules are for.
#[derive(Clone, Debug)]
pub(super) enum Source {
    /// A tree of elements.
    Page(PageFields),
    /// JSON.
    Json(JsonFields),
    /// Any: there are no rules.
    Whole,
}

impl Extractor {
    pub(super) fn new(format: Option<Format>, source: Source, rules: &str) -> Self {
        let version = blake3::hash(rules.as_bytes()).to_hex()[..8].to_owned();
        Self { format, source, version }
    }

    /// How a body is to be read: as the rules state it, or else as they need it, or else as its `Content-Type` says.
    ///
    /// Pointers need JSON whatever a header claims: servers label JSON as text or HTML, and an HTML error page instead
    /// of JSON should be a malformed document, not a missing field.
    pub fn format(&self, content_type: Option<&str>) -> Format {
        let named = content_type.and_then(Format::of_content_type);
        match (self.format, &self.source, named) {
            (Some(format), _, _) => format,
            (None, Source::Json(_), _) => Format::Json,
            (None, Source::Page(_), Some(Format::Xml)) => Format::Xml,
            (None, Source::Page(_), _) => Format::Html,
            (None, Source::Whole, Some(Format::Json)) => Format::Json,
            (None, Source::Whole, Some(Format::Xml)) => Format::Xml,
            (None, Source::Whole, _) => Format::Text,
        }
    }

    /// The record, with its fields in the order of the rules. Without rules a JSON object is the record itself, and
    /// anything else is its one field: `json`, `html` or `text`.
    pub fn extract(&self, document: &Document<'_>) -> Result<Map<String, Value>, Partial> {
        self.extract_until(document, &CancellationToken::new())
    }

    /// The same, given up once nobody wants the record any more; what is given back then means nothing.
    pub(crate) fn extract_until(
        &self,
        document: &Document<'_>,
        stop: &CancellationToken,
    ) -> Result<Map<String, Value>, Partial> {
        match (&self.source, document) {
            (Source::Page(fields), Document::Page(page)) => fields.extract(Some(page), stop),
            (Source::Page(fields), _) => fields.extract(None, stop),
            (Source::Json(fields), Document::Json(value)) => fields.extract(Some(value)),
            (Source::Json(fields), _) => fields.extract(None),
            (Source::Whole, document) => whole(document),
        }
    }
}

impl Extractor {
    /// Which fields were found and which not.
    pub fn coverage(&self, read: &Result<Map<String, Value>, Partial>) -> Option<Coverage> {
        let is_found = |value: &Value| match value {
            Value::Null => false,
            Value::Array(items) => !items.is_empty(),
            _ => true,
        };
        if matches!(self.source, Source::Whole) {
            return None;
        }
        let record = read.as_ref().unwrap_or_else(|partial| &partial.found);
        let mut fields: Vec<_> = record.iter().map(|(name, value)| (name.clone(), is_found(value))).collect();
        for miss in read.as_ref().err().into_iter().flat_map(|partial| partial.misses.iter()) {
            let name = miss.field.split(['.', '[']).next().unwrap_or_default();
            if !fields.iter().any(|(known, _)| known == name) {
                fields.push((name.to_owned(), false));
            }
        }
        Some(Coverage { version: self.version.clone(), fields })
    }
}

fn whole(document: &Document<'_>) -> Result<Map<String, Value>, Partial> {
    let (name, value) = match document {
        Document::Json(Value::Object(fields)) => return Ok(fields.clone()),
        Document::Json(value) => ("json", value.clone()),
        Document::Page(page) => ("html", Value::String(page.html())),
        Document::Text(text) => ("text", Value::String((*text).to_owned())),
    };
    let is_blank = value.is_null() || value.as_str().is_some_and(|text| text.trim().is_empty());
    if is_blank {
        let misses = Miss { field: name.into(), rule: String::new(), kind: MissKind::Empty }.into();
        return Err(Partial { misses, found: Map::new() });
    }
    Ok(Map::from_iter([(name.to_owned(), value)]))
}

#[cfg(test)]
mod tests {
    use super::super::{Misses, Rules};
    use super::*;
    use serde_json::json;

    fn extractor(toml: &str) -> Extractor {
        toml::from_str::<Rules>(toml).expect("rules").compile().unwrap_or_else(|error| panic!("{error}"))
    }

    fn read(toml: &str, text: &str) -> Result<Value, Misses> {
        let extractor = extractor(toml);
        let document = Document::parse(extractor.format(None), text).expect("a document");
        extractor.extract(&document).map(Value::Object).map_err(|partial| partial.misses)
    }

    fn exact(text: &str) -> Value {
        serde_json::from_str(text).expect("JSON")
    }

    const RULES: &str = r#"
        [fields]
        title = "h1.title::text"
        price = { select = ".price-tag-main::text", type = "number", required = true }
        image = { select = "img.main::attr(src)", required = false }
        tags = { select = "ul.tags li::text", list = true }
        notes = { select = ".note", list = true, required = false }
        [fields.offers]
        select = ".offer"
        list = true
        fields = { seller = ".seller::text", price = { select = ".p::text", type = "number" }, id = "::attr(data-id)" }
    "#;

    const PAGE: &str = r#"<!doctype html><html lang="en"><body>
        <h1 class="big title">
            A  <em>lamp</em></h1>
        <div class="price-tag-main">€ 1,234.50</div>
        <img class="main" SRC=" /lamp.jpg ">
        <ul class="tags"><li>new<li> <li>sale &amp; more</ul>
        <div class="offer" data-id="7"><b class="seller">Ann</b><i class="p">12,99 €</i></div>
        <div class="offer" data-id="8"><b class="seller">Bob</b><i class="p">13</i></div>
        </body></html>"#;

    #[test]
    fn a_page_becomes_a_record() {
        let expected = exact(
            r#"{"title": "A lamp", "price": 1234.50, "image": "/lamp.jpg", "tags": ["new", "sale & more"], "notes": [],
                "offers": [{"seller": "Ann", "price": 12.99, "id": "7"}, {"seller": "Bob", "price": 13, "id": "8"}]}"#,
        );
        assert_eq!(read(RULES, PAGE), Ok(expected));
    }

    #[test]
    fn a_changed_layout_names_the_selector() {
        let changed = PAGE.replace("price-tag-main", "price-v2");
        let miss = read(RULES, &changed).expect_err("a miss");
        assert_eq!(miss.to_string(), "SelectorNotFound: .price-tag-main (field price)");
        let miss = read(RULES, &PAGE.replace(">13<", "><")).expect_err("a miss");
        assert_eq!(miss.to_string(), "FieldEmpty: .p (field offers[1].price)");
        let miss = read(RULES, &PAGE.replace("€ 1,234.50", "Sold out")).expect_err("a miss");
        assert_eq!(miss.to_string(), "WrongType: .price-tag-main (field price): expected number, found \"Sold out\"");
        let miss = read(RULES, &PAGE.replace("€ 1,234.50", "1.299 €")).expect_err("a miss");
        assert_eq!(
            miss.to_string(),
            "AmbiguousNumber: .price-tag-main (field price): \"1.299 €\" is 1.299 with decimal = \".\" and 1299 with \
             decimal = \",\": say which for this field"
        );
        let miss = read(RULES, &PAGE.replace("data-id=\"8\"", "")).expect_err("a miss");
        assert_eq!(miss.to_string(), "AttributeNotFound: ::attr(data-id) (field offers[1].id)");
        let misses = read(RULES, "").expect_err("misses");
        let fields: Vec<_> = misses.iter().map(|miss| miss.field.as_str()).collect();
        assert_eq!((misses.first.code(), fields), ("SelectorNotFound", vec!["title", "price", "tags", "offers"]));
    }

    #[test]
    fn optional_fields_are_null() {
        let record = read(RULES, &PAGE.replace("class=\"main\"", "")).expect("a record");
        assert_eq!(record["image"], Value::Null);
        let object = "fields = { a = { select = \".a\", required = false, fields = { b = \".b\" } } }";
        assert_eq!(read(object, "<p>"), Ok(json!({"a": null})));
        assert_eq!(read(object, "<p class=a>").expect_err("a miss").first.field, "a.b");
    }

    #[test]
    fn all_that_is_missing_is_told_and_counted() {
        let rules = r#"fields = { title = "h1", price = { select = "b", type = "number" }, sku = "i", note = { select = "u", required = false } }"#;
        let extractor = extractor(rules);
        let document = Document::parse(Format::Html, "<b>Sold out</b><i>7</i>").expect("a page");
        let read = extractor.extract(&document);
        let fields = extractor.coverage(&read).map(|coverage| coverage.fields).unwrap_or_default();
        let counted: Vec<_> = fields.iter().map(|(name, found)| (name.as_str(), *found)).collect();
        assert_eq!(counted, [("sku", true), ("note", false), ("title", false), ("price", false)]);
        assert_eq!(
            read.expect_err("misses").misses.to_string(),
            "SelectorNotFound: h1 (field title)\n\
             DETAIL: also WrongType: b (field price): expected number, found \"Sold out\""
        );
    }

    #[test]
    fn the_first_with_the_attribute_is_taken() {
        let page = "<time>now</time><time datetime='2024-01-02'>then</time><time datetime='2025-01-02'></time>";
        for select in ["time", "time:not(.x)"] {
            let rules = format!("fields = {{ at = \"{select}::attr(datetime)\", text = \"{select}\" }}");
            assert_eq!(read(&rules, page), Ok(json!({"at": "2024-01-02", "text": "now"})));
        }
        let list = "fields = { at = { select = \"time::attr(datetime)\", list = true } }";
        assert_eq!(read(list, page), Ok(json!({"at": ["2024-01-02", "2025-01-02"]})));
        let rules = "fields = { at = \"time::attr(datetime)\" }";
        let miss = |page: &str| read(rules, page).expect_err("a miss").to_string();
        assert_eq!(miss("<time>now</time><time></time>"), "AttributeNotFound: time::attr(datetime) (field at)");
        assert_eq!(miss("<p>"), "SelectorNotFound: time::attr(datetime) (field at)");
    }

    #[test]
    fn the_first_in_the_order_of_the_page_is_taken() {
        let rules = "fields = { plain = \"p\", engine = \"p:not(.x)\", root = \"html::attr(lang)\", any = \":root::attr(lang)\" }";
        let page = "<html lang=en><table><p>moved out</p><tr><td><p>inside</p></table>";
        let expected = json!({"plain": "moved out", "engine": "moved out", "root": "en", "any": "en"});
        assert_eq!(read(rules, page), Ok(expected));
    }

    #[test]
    fn nested_rules_see_only_their_element() {
        let rules = r#"fields = { rows = { select = "tr", list = true, fields = { a = "td", b = "td:nth-child(2)", c = ":scope > td + td" } } }"#;
        let page = "<table><tr><td>1<td>2<tr><td>3<td>4</table>";
        let expected = json!({"rows": [{"a": "1", "b": "2", "c": "2"}, {"a": "3", "b": "4", "c": "4"}]});
        assert_eq!(read(rules, page), Ok(expected));
    }

    #[test]
    fn json_inside_of_a_page_is_read_by_pointers() {
        let rules = r#"
            [fields]
            product = { select = "script#ld", type = "json", fields = { sku = "/sku", price = "/offers/0/price" } }
            all = { select = "script#ld", type = "json" }
            box = { select = ".box::attr(data-j)", type = "json", fields = { id = "/id" } }
        "#;
        let page =
            r#"<script id=ld>{"sku": "a  b", "offers": [{"price": 1.50}]}</script><p class=box data-j='{"id": 3}'>"#;
        let record = read(rules, page).expect("a record");
        assert_eq!(record["product"], exact(r#"{"sku": "a  b", "price": 1.50}"#));
        assert_eq!(record["all"]["sku"], "a  b");
        assert_eq!(record["box"], json!({"id": 3}));
        let miss = read(rules, &page.replace("\"sku\"", "\"mpn\"")).expect_err("a miss");
        assert_eq!(miss.to_string(), "PointerNotFound: /sku (field product.sku)");
        let miss = read(rules, &page.replace("{\"sku", "x{\"sku")).expect_err("a miss");
        assert_eq!((miss.first.code(), miss.first.rule.as_str()), ("WrongType", "script#ld"));
    }

    #[test]
    fn markup_can_be_kept() {
        let rules = "fields = { body = { select = \".body\", type = \"html\" } }";
        assert_eq!(read(rules, "<div class=body> <p>a<br>b </div>"), Ok(json!({"body": "<p>a<br>b </p>"})));
        assert_eq!(read(rules, "<div class=body> </div>").expect_err("a miss").first.code(), "FieldEmpty");
    }

    const JSON_RULES: &str = r#"
        [fields]
        sku = { pointer = "/product/sku" }
        price = { pointer = "/product/price", type = "number" }
        stock = "/product/stock"
        tags = { pointer = "/product/tags", list = true, required = false }
        first = { pointer = "/offers/0/seller", required = false }
        [fields.offers]
        pointer = "/offers"
        list = true
        fields = { seller = "/seller", price = { pointer = "/price", type = "number" }, whole = { pointer = "", type = "json" } }
    "#;

    #[test]
    fn json_becomes_a_record() {
        let text = r#"{"product": {"sku": 12, "price": "1,234.50", "stock": false, "tags": null},
                       "offers": [{"seller": "Ann", "price": 1.20}]}"#;
        let expected = exact(
            r#"{"sku": 12, "price": 1234.50, "stock": false, "tags": [], "first": "Ann",
                "offers": [{"seller": "Ann", "price": 1.20, "whole": {"seller": "Ann", "price": 1.20}}]}"#,
        );
        assert_eq!(read(JSON_RULES, text), Ok(expected));
    }

    #[test]
    fn what_json_lacks_names_the_pointer() {
        let miss = |text: &str| read(JSON_RULES, text).expect_err("a miss").to_string();
        let rules = r#"fields = { sku = "/product/sku", offers = { pointer = "/offers", list = true, fields = { p = { pointer = "/p", type = "number" } } } }"#;
        let of = |text: &str| read(rules, text).expect_err("a miss").to_string();
        assert!(miss("[]").starts_with("PointerNotFound: /"));
        assert_eq!(of(r#"{"product": {"sku": ""}, "offers": [{"p": 1}]}"#), "FieldEmpty: /product/sku (field sku)");
        assert_eq!(of(r#"{"product": {"sku": null}, "offers": [{"p": 1}]}"#), "FieldEmpty: /product/sku (field sku)");
        let product = r#"{"product": {"sku": 1}, "offers": "#;
        assert_eq!(of(&format!("{product}[]}}")), "FieldEmpty: /offers (field offers)");
        assert_eq!(of(&format!("{product}{{}}}}")), "WrongType: /offers (field offers): expected list, found \"{}\"");
        assert_eq!(of(&format!("{product}[{{\"p\": 1}}, {{}}]}}")), "PointerNotFound: /p (field offers[1].p)");
        assert_eq!(
            of(&format!("{product}[{{\"p\": [2]}}]}}")),
            "WrongType: /p (field offers[0].p): expected number, found \"[2]\""
        );
    }

    #[test]
    fn xml_is_read_by_selectors() {
        let rules = r#"
            format = "xml"
            [fields.items]
            select = "item"
            list = true
            fields = { link = "link", date = "pubDate", image = "thumbnail::attr(url)", body = { select = "encoded", type = "html" } }
        "#;
        let feed = r#"<?xml version="1.0"?><rss xmlns:media="urn:media" xmlns:c="urn:c"><channel><item><link>https://a.example/1</link>
            <pubDate>today</pubDate><media:thumbnail url="t.jpg"/><c:encoded><link>x</link>&lt;b&gt;</c:encoded></item></channel></rss>"#;
        let item = json!({"link": "https://a.example/1", "date": "today", "image": "t.jpg", "body": "<link>x</link>&lt;b&gt;"});
        assert_eq!(read(rules, feed), Ok(json!({"items": [item]})));
    }

    #[test]
    fn rules_and_header_choose_the_format() {
        let format = |rules: &str, header: Option<&str>| extractor(rules).format(header);
        assert_eq!(format("fields = { a = \"p\" }", None), Format::Html);
        assert_eq!(format("fields = { a = \"p\" }", Some("application/rss+xml")), Format::Xml);
        assert_eq!(format("fields = { a = \"p\" }", Some("text/plain")), Format::Html);
        assert_eq!(format("fields = { a = \"/p\" }", Some("text/html")), Format::Json);
        assert_eq!(format("format = \"xml\"\nfields = { a = \"p\" }", Some("text/html")), Format::Xml);
        assert_eq!(format("", Some("application/json")), Format::Json);
        assert_eq!(format("", Some("text/html")), Format::Text);
    }

    #[test]
    fn without_rules_the_document_is_the_record() {
        assert_eq!(read("format = \"json\"", r#"{"b": 1, "a": 2}"#).expect("a record").to_string(), r#"{"b":1,"a":2}"#);
        assert_eq!(read("format = \"json\"", "[1]"), Ok(json!({"json": [1]})));
        assert_eq!(read("format = \"text\"", "a\nb"), Ok(json!({"text": "a\nb"})));
        assert_eq!(read("format = \"text\"", " \n").expect_err("a miss").to_string(), "FieldEmpty: \"\" (field text)");
    }

    #[test]
    fn rules_for_another_kind_of_document_find_nothing() {
        let page = extractor("fields = { a = \"p\" }");
        let miss = page.extract(&Document::Json(json!({}))).expect_err("a miss");
        assert_eq!(miss.misses.to_string(), "SelectorNotFound: p (field a)");
        let json = extractor("fields = { a = \"/p\" }");
        assert_eq!(json.extract(&Document::Text("x")).expect_err("a miss").misses.first.code(), "PointerNotFound");
    }

    #[test]
    fn one_extractor_serves_many_threads() {
        let extractor = extractor(RULES);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let document = Document::parse(Format::Html, PAGE).expect("a page");
                    assert_eq!(extractor.extract(&document).expect("a record")["title"], "A lamp");
                });
            }
        });
    }
}
