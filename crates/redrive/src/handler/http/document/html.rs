//! Pages, read as a browser without scripts reads them.
//!
//! The parser needs quadratic time for deep nesting (servo/html5ever#788) and knows no limit: a megabyte of `<div>`
//! takes minutes. So it is fed in small pieces, and given up on when the tree grows too deep.

use html5ever::driver::{ParseOpts, parse_document};
use html5ever::tendril::{StrTendril, TendrilSink};
use html5ever::tree_builder::TreeBuilderOpts;
use scraper::{Html, HtmlTreeSink};

use super::{DEPTH_MAX, Format, Malformed};

/// How much is parsed between two looks at the depth.
const PIECE_BYTES: usize = 4096;

/// Of the nodes of a piece, one in so many is looked at.
const SAMPLE: usize = 16;

/// Parses a page. What stands in `<noscript>` is part of it.
pub(super) fn parse(text: &str) -> Result<Html, Malformed> {
    let tree_builder = TreeBuilderOpts { scripting_enabled: false, ..TreeBuilderOpts::default() };
    let options = ParseOpts { tree_builder, ..ParseOpts::default() };
    let mut parser = parse_document(HtmlTreeSink::new(Html::new_document()), options);
    let (mut start, mut seen) = (0, 0);
    while start < text.len() {
        let end = piece_end(text, start);
        parser.process(StrTendril::from_slice(&text[start..end]));
        if is_too_deep(&parser.tokenizer.sink.sink.0.borrow(), &mut seen) {
            return Err(Malformed::too_deep(Format::Html, &text[..end]));
        }
        start = end;
    }
    Ok(parser.finish())
}

fn piece_end(text: &str, start: usize) -> usize {
    let least = text.len().min(start + PIECE_BYTES);
    (least..text.len()).find(|end| text.is_char_boundary(*end)).unwrap_or(text.len())
}

/// Looks at some of the nodes that are new since the last time.
fn is_too_deep(page: &Html, seen: &mut usize) -> bool {
    let nodes = page.tree.nodes();
    let new = nodes.len() - std::mem::replace(seen, nodes.len());
    nodes.rev().take(new).step_by(SAMPLE).any(|node| node.ancestors().nth(DEPTH_MAX).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;
    use scraper::Selector;

    fn texts(page: &Html, css: &str) -> Vec<String> {
        let selector = Selector::parse(css).expect("a selector");
        page.select(&selector).map(|element| element.text().collect()).collect()
    }

    #[test]
    fn html_always_parses() {
        for text in ["", "\u{0}<<<>", "<p>half a par", "</html>", "plain"] {
            assert!(parse(text).is_ok(), "{text:?}");
        }
    }

    #[test]
    fn what_stands_in_noscript_is_part_of_a_page() {
        let page = parse("<body><noscript><b>here</b></noscript>").expect("a page");
        assert_eq!(texts(&page, "noscript b"), ["here"]);
    }

    #[test]
    fn pieces_make_the_same_page_as_the_whole() {
        let text: String = (0..2_000).map(|n| format!("<p class='é{n}'>&amp;ü € {n}\r\n<!-- {n} -->")).collect();
        assert_eq!(parse(&text).expect("a page"), Html::parse_document(&text));
    }

    #[test]
    fn nesting_without_bound_is_refused_soon() {
        for tag in ["<div>", "<ul><li>", "<b><div>", "<span>", "<svg><g>", "</body><!-- --><div>"] {
            let error = parse(&tag.repeat(200_000)).expect_err("refused");
            assert_eq!(error.code(), "HtmlTooDeep", "{tag}");
        }
        let error = parse(&"<p><div>\n".repeat(9_000)).expect_err("refused");
        assert!(error.to_string().ends_with("nested more than 1024 deep"), "{error}");
        assert!(error.line > 100 && error.column > 0);
        assert!(parse(&"<div>".repeat(1_000)).is_ok());
    }
}
