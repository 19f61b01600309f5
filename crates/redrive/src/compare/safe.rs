//! A page made harmless: written anew from what is known to do nothing, by a list of what may stay. Scripts, links, frames, forms and
//! whatever else could reach out are left away; addresses become text.

use std::collections::HashMap;

use scraper::{ElementRef, Html, Node};

use super::lines::NodeId;

/// Elements that stay, with no attribute but those below.
const STAY: &[&str] = &[
    "a",
    "abbr",
    "address",
    "article",
    "aside",
    "b",
    "bdi",
    "bdo",
    "blockquote",
    "br",
    "button",
    "caption",
    "center",
    "cite",
    "code",
    "col",
    "colgroup",
    "data",
    "dd",
    "del",
    "details",
    "dfn",
    "div",
    "dl",
    "dt",
    "em",
    "fieldset",
    "figcaption",
    "figure",
    "font",
    "footer",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "header",
    "hgroup",
    "hr",
    "i",
    "ins",
    "kbd",
    "label",
    "legend",
    "li",
    "main",
    "mark",
    "nav",
    "ol",
    "output",
    "p",
    "pre",
    "q",
    "rp",
    "rt",
    "ruby",
    "s",
    "samp",
    "section",
    "small",
    "span",
    "strike",
    "strong",
    "sub",
    "summary",
    "sup",
    "table",
    "tbody",
    "td",
    "tfoot",
    "th",
    "thead",
    "time",
    "tr",
    "tt",
    "u",
    "ul",
    "var",
    "wbr",
];

/// Elements that go with all that is inside of them.
const GO_WHOLE: &[&str] = &[
    "applet", "audio", "canvas", "embed", "frame", "frameset", "head", "iframe", "math", "noembed", "noframes",
    "object", "param", "picture", "portal", "script", "select", "source", "style", "svg", "template", "textarea",
    "title", "track", "video",
];

/// Attributes that stay on any element that does, if their values are plain numbers or words.
const PLAIN: &[&str] = &["align", "class", "colspan", "dir", "id", "lang", "rowspan", "valign"];

/// Elements without an end.
const VOID: &[&str] = &["br", "col", "hr", "wbr"];

/// The most nodes that are written.
const NODES_MAX: usize = 50_000;

/// The longest image that is written inside of a page, in bytes.
const IMAGE_BYTES_MAX: usize = 100_000;

/// What is around the page.
const HEAD: &str = "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>A saved page, without scripts and images</title>\
<style>body{font:14px/1.5 system-ui,sans-serif;margin:16px;color:#1c2733;background:#fff;overflow-wrap:anywhere}\
table{border-collapse:collapse}td,th{padding:2px 8px;text-align:left}.redrive-note{color:#5c6773;font-size:12px}\
.redrive-found{outline:3px solid #b3261e;outline-offset:2px}</style><body>";

/// The page without anything that could do something, where elements that rules find are outlined, each with the name of its field.
pub(super) fn harmless(page: &Html, outlined: &HashMap<NodeId, String>) -> String {
    let mut out = String::from(HEAD);
    // Ends are on the same stack, so that depth costs no recursion.
    let mut open: Vec<Step> = page.tree.root().children().rev().map(|node| Step::Node(node.id())).collect();
    let mut written = 0;
    while let Some(step) = open.pop() {
        let id = match step {
            Step::End(name) => {
                out.push_str(&format!("</{name}>"));
                continue;
            }
            Step::Node(_) if written >= NODES_MAX => continue,
            Step::Node(id) => id,
        };
        written += 1;
        let Some(node) = page.tree.get(id) else { continue };
        match node.value() {
            Node::Text(text) => escape(text, &mut out),
            Node::Element(_) => {
                let Some(element) = ElementRef::wrap(node) else { continue };
                let name = element.value().name();
                if GO_WHOLE.contains(&name) || !is_html(element) {
                    continue;
                }
                match name {
                    "img" => image(element, &mut out),
                    "input" => note(&format!("[field {}]", element.attr("value").unwrap_or_default()), &mut out),
                    _ => {}
                }
                if STAY.contains(&name) {
                    begin(element, outlined.get(&id), &mut out);
                    if !VOID.contains(&name) {
                        open.push(Step::End(STAY.iter().find(|known| **known == name).copied().unwrap_or("span")));
                    }
                }
                open.extend(node.children().rev().map(|child| Step::Node(child.id())));
            }
            _ => {}
        }
    }
    if written >= NODES_MAX {
        note("the rest of this page is not shown", &mut out);
    }
    out
}

enum Step {
    Node(NodeId),
    End(&'static str),
}

/// Whether an element is of HTML: what is of SVG or MathML may do more than its name says.
fn is_html(element: ElementRef<'_>) -> bool {
    element.value().name.ns == html5ever::ns!(html)
}

fn begin(element: ElementRef<'_>, field: Option<&String>, out: &mut String) {
    out.push('<');
    out.push_str(element.value().name());
    for (name, value) in element.value().attrs() {
        if PLAIN.contains(&name) && !(name == "class" && field.is_some()) {
            out.push_str(&format!(" {name}=\""));
            escape(value, out);
            out.push('"');
        }
    }
    let title = match (field, element.attr("href")) {
        (Some(field), _) => Some(format!("found by the rule of {field}")),
        (None, Some(href)) => Some(href.chars().take(300).collect()),
        (None, None) => None,
    };
    if field.is_some() {
        out.push_str(" class=\"redrive-found\"");
    }
    if let Some(title) = title {
        out.push_str(" title=\"");
        escape(&title, out);
        out.push('"');
    }
    out.push('>');
}

/// An image that is inside of the page stays; of others the text and the address are written.
fn image(element: ElementRef<'_>, out: &mut String) {
    let (source, alt) = (element.attr("src").unwrap_or_default(), element.attr("alt").unwrap_or_default());
    let is_inside =
        ["data:image/png;base64,", "data:image/jpeg;base64,", "data:image/gif;base64,", "data:image/webp;base64,"]
            .iter()
            .any(|kind| source.get(..kind.len()).is_some_and(|start| start.eq_ignore_ascii_case(kind)));
    let is_plain = source.len() <= IMAGE_BYTES_MAX
        && source.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, ':' | '/' | ';' | ',' | '+' | '='));
    if is_inside && is_plain {
        out.push_str("<img alt=\"");
        escape(alt, out);
        out.push_str("\" src=\"");
        out.push_str(source);
        out.push_str("\">");
        return;
    }
    let address: String = source.chars().take(120).collect();
    note(&format!("[image {alt} {address}]"), out);
}

fn note(text: &str, out: &mut String) {
    out.push_str("<span class=\"redrive-note\">");
    escape(text, out);
    out.push_str("</span>");
}

fn escape(text: &str, out: &mut String) {
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\0' => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(html: &str) -> String {
        let whole = harmless(&Html::parse_document(html), &HashMap::new());
        whole.strip_prefix(HEAD).expect("its head").to_owned()
    }

    #[test]
    fn what_could_do_something_is_gone() {
        for hostile in [
            "<script>fetch('//evil')</script>",
            "<link rel=preconnect href=//evil>",
            "<link rel=dns-prefetch href=//evil>",
            "<meta http-equiv=refresh content='0;url=//evil'>",
            "<base href=//evil>",
            "<iframe src=//evil></iframe>",
            "<object data=//evil></object>",
            "<embed src=//evil>",
            "<svg onload=alert(1)><image href=//evil /><style>@import '//evil'</style></svg>",
            "<math><mtext><style><img src=//evil></style></mtext></math>",
            "<style>@import url(//evil)</style>",
            "<p style=\"background:url(//evil)\">",
            "<video src=//evil poster=//evil></video>",
            "<body background=//evil onload=alert(1)>",
            "<form action=//evil><input type=image src=//evil autofocus onfocus=alert(1)></form>",
            "<template><img src=//evil></template>",
            "<noscript><img src=//evil></noscript>",
            "<div srcdoc='<script>' srcset=//evil onclick=alert(1) ping=//evil>",
        ] {
            let out = made(hostile);
            for word in [
                "script", "evil\"", "src=", "href", "style=", "on", "action", "<form", "<link", "<meta", "<base",
                "poster",
            ] {
                let is_note = out.contains("redrive-note");
                assert!(is_note || !out.contains(word), "{hostile} left {word} in {out}");
            }
            assert!(!out.contains("<img") && !out.contains("evil>"), "{hostile} left {out}");
        }
    }

    #[test]
    fn addresses_become_text() {
        assert_eq!(made("<a href='javascript:alert(1)' target=x>go</a>"), "<a title=\"javascript:alert(1)\">go</a>");
        assert_eq!(
            made("<img src='//evil/a.png' alt='a \"b\"'>"),
            "<span class=\"redrive-note\">[image a &quot;b&quot; //evil/a.png]</span>"
        );
        assert!(made("<img src='data:image/png;base64,AAAA'>").contains("src=\"data:image/png;base64,AAAA\""));
        assert!(!made("<img src='data:image/svg+xml;base64,AAAA'>").contains("<img"));
        assert!(!made("<img src='data:image/png;base64,AA\" onerror=alert(1)'>").contains("<img"));
    }

    #[test]
    fn text_and_attributes_cannot_leave_their_place() {
        assert_eq!(
            made("<p id='a\"><script>'>1 &lt;script&gt; 2</p>"),
            "<p id=\"a&quot;&gt;&lt;script&gt;\">1 &lt;script&gt; 2</p>"
        );
        assert_eq!(made("<p>a<!-- --!><script>x</script> -->b</p>"), "<p>a</p>".replace("</p>", " --&gt;b</p>"));
    }

    #[test]
    fn what_rules_find_is_outlined() {
        let page = Html::parse_document("<b class=x>1</b><b>2</b>");
        let first = page.select(&scraper::Selector::parse("b").expect("CSS")).next().expect("there");
        let out = harmless(&page, &HashMap::from([(first.id(), "price".to_owned())]));
        assert!(
            out.ends_with("<b class=\"redrive-found\" title=\"found by the rule of price\">1</b><b>2</b>"),
            "{out}"
        );
    }

    #[test]
    fn a_page_of_any_depth_and_length_has_its_bound() {
        assert!(harmless(&Html::parse_document(&"<b>".repeat(20_000)), &HashMap::new()).len() > 1_000);
        let long = harmless(&Html::parse_document(&"<p>x".repeat(60_000)), &HashMap::new());
        assert!(long.contains("the rest of this page is not shown"));
    }
}
