//! XML becomes the same kind of tree as a page, so that one selector engine serves both.
//!
//! No external entity is ever loaded.

use std::collections::HashSet;

use html5ever::interface::{NodeOrText, TreeSink};
use html5ever::{Attribute, LocalName, Namespace, QualName};
use roxmltree::Error::{NoRootNode, NodesLimitReached, UnclosedRootNode, UnexpectedEndOfStream};
use scraper::{Html, HtmlTreeSink};
use tokio_util::sync::CancellationToken;

use super::caps::{ATTRIBUTE_BYTES_COPIED_MAX, ATTRIBUTES_MAX, ATTRIBUTES_PER_ELEMENT_MAX, Cap, DEPTH_MAX, NODES_MAX};
use super::{Format, Malformed, end_of, entities};

/// After how many nodes it is asked whether anybody still waits.
const ASKS_EVERY: usize = 256;

/// Parses XML and plants it node by node in the tree that selectors walk. Elements keep their case and their namespace. Once
/// `stop` is cancelled nobody wants it any more, and what there is of it is given.
pub(super) fn parse(text: &str, stop: &CancellationToken) -> Result<Html, Malformed> {
    check(text)?;
    // Old feeds declare a DTD; the expansion of its entities is bounded.
    let options = roxmltree::ParsingOptions {
        allow_dtd: true,
        nodes_limit: NODES_MAX as u32,
        ..roxmltree::ParsingOptions::default()
    };
    let document = roxmltree::Document::parse_with_options(text, options).map_err(|error| malformed(&error, text))?;
    let sink = HtmlTreeSink::new(Html::new_document());
    // In document order, so a parent's handle is there before its children ask for it; indexed by node id.
    let mut planted = vec![(sink.get_document(), 0)];
    let mut attribute_bytes = 0;
    for node in document.descendants().skip(1) {
        if planted.len() % ASKS_EVERY == 0 && stop.is_cancelled() {
            break;
        }
        let (parent, depth) = node.parent().map_or(planted[0], |parent| planted[parent.id().get_usize()]);
        let mut handle = parent;
        if depth > DEPTH_MAX {
            return Err(Cap::Depth.exceeded(Format::Xml, &text[..node.range().start]));
        } else if node.is_element() {
            let attributes = attributes(node);
            attribute_bytes += attributes.iter().map(|one| one.name.local.len() + one.value.len()).sum::<usize>();
            // Entities may stand in them, and become more.
            if attribute_bytes > text.len() + ATTRIBUTE_BYTES_COPIED_MAX {
                return Err(Cap::AttributeBytes.exceeded(Format::Xml, &text[..node.range().start]));
            }
            handle = sink.create_element(name(node), attributes, Default::default());
            sink.append(&parent, NodeOrText::AppendNode(handle));
        } else if let (true, Some(text)) = (node.is_text(), node.text()) {
            sink.append(&parent, NodeOrText::AppendText(text.into()));
        }
        planted.push((handle, depth + 1));
    }
    Ok(sink.finish())
}

/// Counts before anything is parsed: the parser compares each attribute with all others of its element.
///
/// A tag of XML has no `<` in it, not even in quotes. So what looks like a tag is counted up to the next `<`, wherever it
/// stands: nothing can hide one, and what is in a comment or a CDATA section counts too.
fn check(text: &str) -> Result<(), Malformed> {
    let refused = |cap: Cap, at: usize| cap.exceeded(Format::Xml, &text[..at]);
    let (mut at, mut all) = (0, 0);
    for piece in text.split('<') {
        let attributes = attributes_in(piece.as_bytes());
        (at, all) = (at + piece.len() + 1, all + attributes);
        if attributes > ATTRIBUTES_PER_ELEMENT_MAX {
            return Err(refused(Cap::ElementAttributes, at - 1));
        }
        if all > ATTRIBUTES_MAX {
            return Err(refused(Cap::Attributes, at - 1));
        }
    }
    entities::check(text).map_err(|cap| refused(cap, 0))
}

/// The attributes of what stands behind a `<`: each has one `=` that is not in quotes.
fn attributes_in(piece: &[u8]) -> usize {
    if piece.first().is_none_or(|byte| matches!(byte, b'!' | b'?' | b'/') || byte.is_ascii_whitespace()) {
        return 0;
    }
    let (mut count, mut quote) = (0, None);
    for byte in piece {
        match (quote, byte) {
            (Some(open), byte) if byte == open => quote = None,
            (Some(_), _) => {}
            (None, b'"' | b'\'') => quote = Some(byte),
            (None, b'=') => count += 1,
            (None, b'>') => break,
            (None, _) => {}
        }
    }
    count
}

fn malformed(error: &roxmltree::Error, text: &str) -> Malformed {
    if matches!(error, NodesLimitReached) {
        return Cap::Nodes.exceeded(Format::Xml, text);
    }
    let truncated = matches!(error, UnclosedRootNode | UnexpectedEndOfStream | NoRootNode);
    // The parser has no position for these: it is the end of the text.
    let (line, column) = if truncated { end_of(text) } else { (error.pos().row as usize, error.pos().col as usize) };
    let said = error.to_string();
    let message = said.rsplit_once(" at ").filter(|_| !truncated).map_or(said.as_str(), |(message, _)| message);
    Malformed { format: Format::Xml, truncated, cap: None, line, column, message: message.to_owned() }
}

fn name(node: roxmltree::Node<'_, '_>) -> QualName {
    let tag = node.tag_name();
    QualName::new(None, Namespace::from(tag.namespace().unwrap_or_default()), LocalName::from(tag.name()))
}

/// Attributes by their local names, as selectors write them; where two share one, the one without a prefix stays.
fn attributes(node: roxmltree::Node<'_, '_>) -> Vec<Attribute> {
    let plain = node.attributes().filter(|attribute| attribute.namespace().is_none());
    let plain: HashSet<&str> = plain.map(|attribute| attribute.name()).collect();
    node.attributes()
        .filter(|attribute| attribute.namespace().is_none() || !plain.contains(attribute.name()))
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

    fn texts(page: &Html, css: &str) -> Vec<String> {
        let selector = Selector::parse(css).expect("a selector");
        page.select(&selector).map(|element| element.text().collect()).collect()
    }

    fn parse(text: &str) -> Result<Html, Malformed> {
        super::parse(text, &CancellationToken::new())
    }

    fn broken(text: &str) -> Malformed {
        parse(text).expect_err("malformed")
    }

    #[test]
    fn xml_keeps_case_and_what_html_would_break() {
        let feed = "<?xml version=\"1.0\"?><rss xmlns:m=\"urn:m\"><channel><link>https://a.example/</link>\
                    <pubDate>today</pubDate><m:thumb m:url=\"x\" m:id=\"1\" id=\"2\"/><![CDATA[<raw>]]></channel></rss>";
        let page = parse(feed).expect("a feed");
        assert_eq!(texts(&page, "channel > link"), ["https://a.example/"]);
        assert_eq!(texts(&page, "pubDate"), ["today"]);
        assert_eq!(texts(&page, "pubdate"), [""; 0]);
        assert_eq!(texts(&page, "thumb[url=x][id='2']"), [""]);
        assert_eq!(texts(&page, "channel"), ["https://a.example/today<raw>"]);
    }

    #[test]
    fn broken_xml_says_where() {
        let error = broken("<a>\n<b></c></a>");
        assert_eq!((error.truncated, error.line, error.code()), (false, 2, "XmlInvalid"));
        assert_eq!(error.to_string(), "invalid XML at line 2 column 4: expected 'b' tag, not 'c'");
        let cut = broken("<a>\n<b>tex");
        assert_eq!((cut.truncated, cut.line, cut.column, cut.code()), (true, 2, 7, "XmlTruncated"));
        assert!(broken("<a>\n<b attr=\"x").truncated, "inside of a tag");
        assert!(broken("").truncated);
        assert_eq!(broken("<a>&nbsp;</a>").code(), "XmlInvalid");
    }

    #[test]
    fn many_attributes_are_refused_wherever_they_hide() {
        let attributes: String = (0..5_000).map(|n| format!(" x{n}='y'")).collect();
        for before in ["", "<?xml version='1.0'?>", "<!-- ' -->", "<!DOCTYPE a [<!ENTITY x \"<b c='\">]>"] {
            let error = broken(&format!("{before}<a{attributes}/>"));
            assert_eq!(error.code(), "TooManyAttributes", "{before}");
            assert!(error.message.ends_with("more than 1000 attributes on one element"), "{error}");
        }
        let text: String = (0..5_000).map(|n| format!("x{n}='y' ")).collect();
        assert!(parse(&format!("<a b='{}'>{text}</a>", text.replace('\'', ""))).is_ok(), "text is no attribute");
    }

    #[test]
    fn hostile_xml_neither_overflows_nor_explodes() {
        let deep = |levels: usize| format!("{}{}", "<a>".repeat(levels), "</a>".repeat(levels));
        assert!(parse(&deep(500)).is_ok());
        assert_eq!(broken(&deep(100_000)).code(), "XmlTooDeep");
        assert_eq!(broken(&format!("<a>{}</a>", "<b/>".repeat(NODES_MAX))).code(), "TooManyNodes");
        let laughs = "<!DOCTYPE l [<!ENTITY a \"ha\"><!ENTITY b \"&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;\">\
            <!ENTITY c \"&b;&b;&b;&b;&b;&b;&b;&b;&b;&b;\"><!ENTITY d \"&c;&c;&c;&c;&c;&c;&c;&c;&c;&c;\">]><l>&d;</l>";
        assert_eq!(broken(laughs).code(), "XmlInvalid");
        let quadratic = format!("<!DOCTYPE l [<!ENTITY a '{}'>]><l>{}</l>", "x".repeat(50_000), "&a;".repeat(50_000));
        assert_eq!(broken(&quadratic).code(), "TooManyEntities");
        let classes =
            format!("<!DOCTYPE l [<!ENTITY a '{}'>]><l>{}</l>", "a ".repeat(5_000), "<i class='&a;'/>".repeat(3_000));
        assert_eq!(broken(&classes).code(), "TooManyAttributes");
        let markup = "<!DOCTYPE l [<!ENTITY a '<b/>'>]><l>&a;</l>";
        assert_eq!(broken(markup).code(), "TooManyEntities");
        let file = "<!DOCTYPE l [<!ENTITY x SYSTEM \"file:///etc/passwd\">]><l>&x;</l>";
        assert_eq!(broken(file).code(), "XmlInvalid");
    }

    #[test]
    fn one_plain_attribute_stays_of_many_that_share_its_name() {
        let spaces: String = (0..200).map(|n| format!(" xmlns:p{n}='urn:{n}' p{n}:id='{n}'")).collect();
        let page = parse(&format!("<a{spaces} id='own' p1:other='1'/>")).expect("a document");
        assert_eq!(texts(&page, "a[id=own][other='1']"), [""]);
    }

    #[test]
    fn nobody_waits_for_what_is_given_up() {
        let stop = CancellationToken::new();
        stop.cancel();
        let page = super::parse(&format!("<a>{}</a>", "<b/>".repeat(10_000)), &stop).expect("a document");
        assert!(page.tree.nodes().len() < 2 * ASKS_EVERY);
    }
}
