//! A page as lines, one tag each, so that two pages can be compared by their structure.
//!
//! What differs from page to page without meaning anything does not count: texts, addresses, tokens and numbers.

use std::collections::HashMap;

use html5ever::tree_builder::TreeSink;
use scraper::{ElementRef, Html, HtmlTreeSink, Node};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

/// Which node of a page.
pub(super) type NodeId = <HtmlTreeSink as TreeSink>::Handle;

/// The most lines of a page that are looked at.
pub(super) const LINES_MAX: usize = 20_000;

/// The most of a text or a value that is shown, in characters.
const SHOWN_CHARS_MAX: usize = 160;

/// Attributes whose values say what an element is for.
const TELLING: &[&str] = &["class", "id", "itemprop", "name", "property", "rel", "role", "type"];

/// One line of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) depth: usize,
    /// As it is shown.
    pub(super) text: String,
    /// As it is compared.
    pub(super) key: String,
}

/// The lines of a page, and on which of them its elements are.
#[derive(Debug, Default)]
pub(super) struct Lines {
    pub(super) lines: Vec<Line>,
    pub(super) places: HashMap<NodeId, usize>,
    /// Whether there are more.
    pub(super) is_cut: bool,
}

impl Lines {
    /// The lines of a page. Once `stop` is cancelled nobody wants them any more.
    pub(super) fn of(page: &Html, stop: &CancellationToken) -> Self {
        let mut lines = Self::default();
        // Not by recursion: how deep a page is, others decide.
        let mut open: Vec<(NodeId, usize)> = page.tree.root().children().rev().map(|node| (node.id(), 0)).collect();
        while let Some((id, depth)) = open.pop() {
            if lines.lines.len() >= LINES_MAX || stop.is_cancelled() {
                lines.is_cut = true;
                break;
            }
            let Some(node) = page.tree.get(id) else { continue };
            match node.value() {
                Node::Element(_) => {
                    let Some(element) = ElementRef::wrap(node) else { continue };
                    lines.places.insert(id, lines.lines.len());
                    lines.lines.push(tag(element, depth));
                    if !is_folded(element) {
                        let first_text =
                            node.first_child().filter(|child| child.value().is_text()).map(|child| child.id());
                        let rest = node.children().rev().filter(|child| Some(child.id()) != first_text);
                        open.extend(rest.map(|child| (child.id(), depth + 1)));
                    }
                }
                Node::Text(text) if !text.trim().is_empty() => {
                    let (text, key) = (shown(text), "text".to_owned());
                    lines.lines.push(Line { depth, text, key });
                }
                _ => {}
            }
        }
        lines
    }

    /// The lines of a JSON value, one for each value in it.
    pub(super) fn of_json(value: &Value, stop: &CancellationToken) -> Self {
        let mut lines = Self::default();
        let mut open = vec![(String::new(), value, 0)];
        while let Some((name, value, depth)) = open.pop() {
            if lines.lines.len() >= LINES_MAX || stop.is_cancelled() {
                lines.is_cut = true;
                break;
            }
            lines.lines.push(json_line(&name, value, depth));
            // One more than there is room for tells that there is more.
            let left = LINES_MAX - lines.lines.len() + 1;
            match value {
                Value::Array(items) => {
                    open.extend(items.iter().take(left).rev().map(|item| (String::new(), item, depth + 1)));
                }
                Value::Object(fields) => {
                    let inside = fields.iter().take(left).map(|(name, value)| (shown(name), value, depth + 1));
                    let from = open.len();
                    open.extend(inside);
                    open[from..].reverse();
                }
                _ => {}
            }
        }
        lines
    }
}

fn json_line(name: &str, value: &Value, depth: usize) -> Line {
    let (kind, text) = match value {
        Value::Null => ("null", "null".to_owned()),
        Value::Bool(is) => ("boolean", is.to_string()),
        Value::Number(number) => ("number", shown(&number.to_string())),
        Value::String(text) => ("text", format!("\"{}\"", shown(text))),
        Value::Array(items) => ("list", format!("[ {} ]", items.len())),
        Value::Object(fields) => ("object", format!("{{ {} }}", fields.len())),
    };
    let name = if name.is_empty() { String::new() } else { format!("\"{name}\": ") };
    Line { depth, text: format!("{name}{text}"), key: format!("{name}{kind}") }
}

/// Whether what is inside of an element is not looked at.
fn is_folded(element: ElementRef<'_>) -> bool {
    matches!(element.value().name(), "script" | "style" | "svg" | "template" | "noscript")
}

fn tag(element: ElementRef<'_>, depth: usize) -> Line {
    let name = element.value().name();
    let mut attributes: Vec<(&str, &str)> = element.value().attrs().collect();
    attributes.sort_unstable();
    let (mut text, mut key) = (format!("<{name}"), format!("<{name}"));
    for (attribute, value) in attributes {
        text.push_str(&format!(" {attribute}=\"{}\"", if is_nonce(value) { "…".to_owned() } else { shown(value) }));
        key.push_str(&format!(" {attribute}"));
        if TELLING.contains(&attribute) {
            key.push_str(&format!("={}", short(without_numbers(value))));
        }
    }
    (text, key) = (text + ">", key + ">");
    if is_folded(element) {
        text.push_str(" ⋯");
    } else if let Some(Node::Text(first)) = element.first_child().map(|child| child.value()) {
        text.push_str(&shown(first));
    }
    Line { depth, text, key }
}

/// A text on one line, cut.
fn shown(text: &str) -> String {
    let (mut words, mut chars) = (String::new(), 0);
    for word in text.split_whitespace() {
        let space = usize::from(!words.is_empty());
        words.push_str(&" "[..space]);
        // One more than there is room for tells that there is more.
        words.extend(word.chars().take(SHOWN_CHARS_MAX + 1));
        chars = words.chars().count();
        if chars > SHOWN_CHARS_MAX {
            break;
        }
    }
    if chars > SHOWN_CHARS_MAX {
        words = words.chars().take(SHOWN_CHARS_MAX).collect();
        words.push('…');
    }
    words
}

/// A value that is no longer than others: of a long one its checksum stands for the rest.
fn short(value: String) -> String {
    match value.char_indices().nth(SHOWN_CHARS_MAX) {
        Some((end, _)) => format!("{}{}", &value[..end], blake3::hash(value.as_bytes()).to_hex()),
        None => value,
    }
}

fn without_numbers(value: &str) -> String {
    let words = value.split_ascii_whitespace().filter(|word| !is_nonce(word));
    let masked = |word: &str| {
        let mut masked: Vec<char> = word.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
        masked.dedup_by(|a, b| *a == '0' && *b == '0');
        masked.into_iter().collect::<String>()
    };
    words.map(masked).collect::<Vec<_>>().join(" ")
}

/// Whether a value is made by a machine anew for every page.
fn is_nonce(value: &str) -> bool {
    let is_code = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '+' | '/' | '=');
    let digits = value.chars().filter(char::is_ascii_digit).count();
    value.len() >= 16 && digits >= 4 && value.chars().all(is_code)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(html: &str) -> Vec<String> {
        Lines::of(&Html::parse_document(html), &CancellationToken::new())
            .lines
            .into_iter()
            .map(|line| line.key)
            .collect()
    }

    #[test]
    fn what_differs_on_every_page_does_not_count() {
        let page = |n: u32, token: &str| {
            format!(
                "<body><meta name=csrf content={token}><script nonce={token}>var t = {n};</script>\
                 <a id=item-{n} href=/p/{n}>Thing {n}</a><p class='price big'>{n}.50"
            )
        };
        assert_eq!(keys(&page(1, "a8f3k2l9x7c4v1b6")), keys(&page(22, "z1y2x3w4v5u6t7s8r9")));
        assert_ne!(keys("<p class=a>"), keys("<p class=b>"));
    }

    #[test]
    fn elements_are_found_on_their_lines_with_their_texts() {
        let page = Html::parse_document("<div class=x><h1>Cork   board</h1>tail<ul><li>a<li>b</ul></div>");
        let lines = Lines::of(&page, &CancellationToken::new());
        let shown: Vec<_> = lines.lines.iter().map(|line| (line.depth, line.text.as_str())).collect();
        assert_eq!(
            shown[2..],
            [
                (1, "<body>"),
                (2, "<div class=\"x\">"),
                (3, "<h1>Cork board"),
                (3, "tail"),
                (3, "<ul>"),
                (4, "<li>a"),
                (4, "<li>b")
            ]
        );
        let h1 = page.select(&scraper::Selector::parse("h1").expect("CSS")).next().expect("there");
        assert_eq!(lines.places[&h1.id()], 4);
    }

    #[test]
    fn a_page_of_any_depth_and_length_has_its_bound() {
        let deep = Lines::of(&Html::parse_document(&"<b>".repeat(5_000)), &CancellationToken::new());
        assert!(!deep.lines.is_empty());
        let long = Lines::of(&Html::parse_document(&"<p>x".repeat(30_000)), &CancellationToken::new());
        assert_eq!((long.lines.len(), long.is_cut), (LINES_MAX, true));
    }

    #[test]
    fn long_values_count_whole_and_take_little_room() {
        let page = |last: char| format!("<p class='{}{last}'>", "x".repeat(10_000));
        assert_ne!(keys(&page('a')), keys(&page('b')));
        assert!(keys(&page('a')).iter().all(|key| key.len() < 300));
        assert_eq!(shown(&"x".repeat(161)), format!("{}…", "x".repeat(160)));
        assert_eq!(shown(&format!("  a\n{} ", "x".repeat(158))), format!("a {}", "x".repeat(158)));
    }

    #[test]
    fn json_is_lines_too() {
        let stop = CancellationToken::new();
        let value = serde_json::json!({ "a": { "price": 5, "tags": ["x", null] }, "b": true });
        let lines = Lines::of_json(&value, &stop);
        let shown: Vec<_> = lines.lines.iter().map(|line| (line.depth, line.text.as_str())).collect();
        assert_eq!(
            shown,
            [
                (0, "{ 2 }"),
                (1, "\"a\": { 2 }"),
                (2, "\"price\": 5"),
                (2, "\"tags\": [ 2 ]"),
                (3, "\"x\""),
                (3, "null"),
                (1, "\"b\": true")
            ]
        );
        assert_eq!(lines.lines[2].key, "\"price\": number", "what a value is does not count");
        let long = Lines::of_json(&serde_json::json!(vec![1; 30_000]), &stop);
        assert_eq!((long.lines.len(), long.is_cut), (LINES_MAX, true));
    }
}
