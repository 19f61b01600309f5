//! The text of an element as a reader sees it.

use scraper::{ElementRef, Node};

/// An element's whole text, with blanks collapsed and trimmed. Scripts and styles inside of it are no text, and where a
/// block or a line ends there is a blank: `<li>a</li><li>b</li>` is `a b`, and `H<sub>2</sub>O` is `H2O`. Digits that are
/// raised or lowered do not go on with those beside them: `12<sup>99</sup>` is not `1299`, there is [`RAISED`] between.
pub(super) fn visible_text(element: ElementRef<'_>) -> String {
    let mut text = Collapsed::default();
    let mut next = element.first_child();
    // By hand and not recursive: a hostile page may be nested as deep as it is long.
    while let Some(mut node) = next {
        let mut is_open = true;
        match node.value() {
            Node::Text(piece) => text.push(piece),
            Node::Element(inner) if is_unseen(inner.name()) => is_open = false,
            Node::Element(inner) => text.pass(inner.name()),
            _ => {}
        }
        next = node.first_child().filter(|_| is_open);
        while next.is_none() {
            if let Some(inner) = node.value().as_element() {
                text.pass(inner.name());
            }
            next = node.next_sibling();
            match node.parent() {
                Some(parent) if next.is_none() && parent != *element => node = parent,
                _ => break,
            }
        }
    }
    text.text
}

/// The hair space between digits of which some are raised. No country groups digits by it, so that numbers with it are
/// refused; in a text that is kept it is a blank.
pub(super) const RAISED: char = '\u{200a}';

fn is_digit(c: char) -> bool {
    c.is_ascii_digit()
}

/// Text in which a run of blanks is one space.
#[derive(Default)]
struct Collapsed {
    text: String,
    gap: bool,
    /// Whether what comes next stands higher or lower than what came before.
    moved: bool,
}

impl Collapsed {
    /// An element begins or ends.
    fn pass(&mut self, tag: &str) {
        self.gap |= is_block(tag);
        self.moved |= matches!(tag, "sup" | "sub");
    }

    fn push(&mut self, piece: &str) {
        self.gap |= piece.starts_with(char::is_whitespace);
        for word in piece.split_whitespace() {
            if self.gap && !self.text.is_empty() {
                self.text.push(' ');
            } else if self.moved && self.text.ends_with(is_digit) && word.starts_with(is_digit) {
                self.text.push(RAISED);
            }
            self.moved = false;
            self.text.push_str(word);
            self.gap = true;
        }
        if !piece.is_empty() {
            self.gap = piece.ends_with(char::is_whitespace);
        }
    }
}

fn is_unseen(tag: &str) -> bool {
    matches!(tag, "script" | "style" | "noscript" | "template")
}

#[rustfmt::skip]
fn is_block(tag: &str) -> bool {
    matches!(
        tag,
        "address" | "article" | "aside" | "blockquote" | "br" | "caption" | "dd" | "details" | "div" | "dl" | "dt"
            | "fieldset" | "figcaption" | "figure" | "footer" | "form" | "h1" | "h2" | "h3" | "h4" | "h5" | "h6"
            | "header" | "hr" | "legend" | "li" | "main" | "nav" | "ol" | "option" | "p" | "pre" | "section" | "summary"
            | "table" | "tbody" | "td" | "tfoot" | "th" | "thead" | "tr" | "ul"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use scraper::{Html, Selector};

    fn text(html: &str) -> String {
        visible_text(Html::parse_document(html).root_element())
    }

    #[test]
    fn text_is_collapsed_and_trimmed() {
        assert_eq!(text("<p>\n  A\u{a0} <b>big</b>\t lamp </p>"), "A big lamp");
        assert_eq!(text("H<sub>2</sub>O"), "H2O");
        assert_eq!(text("<b>a </b><i> b</i>"), "a b");
        assert_eq!(text("<b>a</b> <i></i>b"), "a b");
        assert_eq!(text("  "), "");
    }

    #[test]
    fn raised_digits_stand_apart() {
        assert_eq!(text("<span>12<sup>99</sup></span>"), "12\u{200a}99");
        assert_eq!(text("<b>12</b><sup><i>99</i></sup> €"), "12\u{200a}99 €");
        assert_eq!(text("<sup>1</sup>299"), "1\u{200a}299");
        assert_eq!(text("12<sup>,99</sup>"), "12,99");
        assert_eq!(text("12 <sup>99</sup>"), "12 99");
        assert_eq!(text("1<sup>st</sup> 5 m<sup>2</sup>"), "1st 5 m2");
    }

    #[test]
    fn blocks_and_lines_part_words() {
        assert_eq!(text("<ul><li>One</li><li>Two</li></ul>"), "One Two");
        assert_eq!(text("one<br>two"), "one two");
        assert_eq!(text("<table><tr><td>1</td><td>2</td></tr></table>3"), "1 2 3");
        assert_eq!(text("a<div></div>b"), "a b");
    }

    #[test]
    fn scripts_are_no_text_unless_asked_for() {
        assert_eq!(text("<p>a<script>var x;</script><style>p{}</style>b</p>"), "ab");
        let page = Html::parse_document("<script>var x;</script>");
        let script = page.select(&Selector::parse("script").expect("a selector")).next().expect("a script");
        assert_eq!(visible_text(script), "var x;");
    }

    #[test]
    fn deep_pages_do_not_overflow() {
        let page = format!("{}x", "<b><div>".repeat(3_000));
        assert_eq!(text(&page), "x");
    }
}
