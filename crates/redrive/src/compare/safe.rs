//! A page made harmless: written anew from what is known to do nothing, by a list of what may stay. Scripts, links, frames, forms and
//! whatever else could reach out are left away; addresses become text.

use std::collections::HashMap;

use scraper::{ElementRef, Html, Node};
use tokio_util::sync::CancellationToken;

use super::allowed::{GO_WHOLE, PLAIN, STAY};
use super::lines::NodeId;

/// Elements without an end.
const VOID: &[&str] = &["br", "col", "hr", "wbr"];

/// The most nodes that are written.
const NODES_MAX: usize = 50_000;

/// The most that is written, in bytes; what is under way then is ended.
const BYTES_MAX: usize = 8 << 20;

/// The longest value of an attribute, in characters.
const VALUE_CHARS_MAX: usize = 300;

/// The most columns or rows that a cell may take.
const SPAN_MAX: u32 = 100;

/// The longest image that is written inside of a page, in bytes.
const IMAGE_BYTES_MAX: usize = 100_000;

/// Classes that begin so are ours: a page must not be able to say that a rule found something.
const OURS: &str = "redrive-";

/// What is around the page.
const HEAD: &str = "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>A saved page, without scripts and images</title>\
<style>body{font:14px/1.5 system-ui,sans-serif;margin:16px;color:#1c2733;background:#fff;overflow-wrap:anywhere}\
table{border-collapse:collapse}td,th{padding:2px 8px;text-align:left}.redrive-note{color:#5c6773;font-size:12px}\
.redrive-found{outline:3px solid #b3261e;outline-offset:2px}</style><body>";

/// What is said where the page goes on.
const REST: &str = "<span class=\"redrive-note\">the rest of this page is not shown</span>";

/// The page without anything that could do something, where elements that rules find are outlined, each with the name of its field.
/// Once `stop` is cancelled nobody wants it any more, and what there is of it is given back.
pub(super) fn harmless(page: &Html, outlined: &HashMap<NodeId, String>, stop: &CancellationToken) -> String {
    let mut out = String::from(HEAD);
    // Ends are on the same stack, so that depth costs no recursion.
    let mut open: Vec<Step> = page.tree.root().children().rev().map(|node| Step::Node(node.id())).collect();
    let (mut written, mut is_cut) = (0, false);
    while let Some(step) = open.pop() {
        let id = match step {
            Step::End(name) => {
                out.push_str(&format!("</{name}>"));
                continue;
            }
            Step::Node(_) if written >= NODES_MAX || out.len() >= BYTES_MAX || stop.is_cancelled() => {
                is_cut = true;
                continue;
            }
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
                    "input" => note(&format!("[field {}]", value(element, "value")), &mut out),
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
    if is_cut || out.len() >= BYTES_MAX {
        out.push_str(REST);
    }
    out
}

/// A page that says why there is none.
pub(super) fn why_none(why: &str) -> String {
    let mut out = String::from(HEAD);
    note(&format!("This page is not shown: {why}."), &mut out);
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

/// The beginning of an attribute's value.
fn value(element: ElementRef<'_>, name: &str) -> String {
    element.attr(name).unwrap_or_default().chars().take(VALUE_CHARS_MAX).collect()
}

fn begin(element: ElementRef<'_>, field: Option<&String>, out: &mut String) {
    out.push('<');
    out.push_str(element.value().name());
    for name in PLAIN {
        let Some(given) = element.attr(name) else { continue };
        let kept: Option<String> = match *name {
            "class" if field.is_some() => None,
            "class" => Some(classes(given)),
            "colspan" | "rowspan" => given.trim().parse::<u32>().ok().map(|span| span.clamp(1, SPAN_MAX).to_string()),
            _ => Some(value(element, name)),
        };
        if let Some(kept) = kept {
            attribute(name, &kept, out);
        }
    }
    if field.is_some() {
        attribute("class", "redrive-found", out);
    }
    match (field, element.attr("href")) {
        (Some(field), _) => attribute("title", &format!("found by the rule of {field}"), out),
        (None, Some(_)) => attribute("title", &value(element, "href"), out),
        (None, None) => {}
    }
    out.push('>');
}

/// The first classes of an element, without those that are ours.
fn classes(given: &str) -> String {
    let cut = given.char_indices().nth(VALUE_CHARS_MAX).map_or(given, |(end, _)| &given[..end]);
    cut.split_ascii_whitespace().filter(|class| !class.starts_with(OURS)).collect::<Vec<_>>().join(" ")
}

fn attribute(name: &str, value: &str, out: &mut String) {
    out.push_str(&format!(" {name}=\""));
    escape(value, out);
    out.push('"');
}

/// An image that is inside of the page stays; of others the text and the address are written.
fn image(element: ElementRef<'_>, out: &mut String) {
    let (source, alt) = (element.attr("src").unwrap_or_default(), value(element, "alt"));
    let is_inside =
        ["data:image/png;base64,", "data:image/jpeg;base64,", "data:image/gif;base64,", "data:image/webp;base64,"]
            .iter()
            .any(|kind| source.get(..kind.len()).is_some_and(|start| start.eq_ignore_ascii_case(kind)));
    let is_plain = source.len() <= IMAGE_BYTES_MAX
        && source.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, ':' | '/' | ';' | ',' | '+' | '='));
    if is_inside && is_plain {
        out.push_str("<img");
        attribute("alt", &alt, out);
        attribute("src", source, out);
        out.push('>');
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

/// Writes a text, as much of it as there is room for.
fn escape(text: &str, out: &mut String) {
    for c in text.chars() {
        if out.len() >= BYTES_MAX {
            break;
        }
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
    use crate::handler::http::document::{Document, Format};

    /// A page as it is read where pages are shown.
    fn page(html: &str) -> Html {
        let Ok(Document::Page(page)) = Document::parse(Format::Html, html) else { panic!("a page") };
        page
    }

    fn made(html: &str) -> String {
        let whole = harmless(&page(html), &HashMap::new(), &CancellationToken::new());
        whole.strip_prefix(HEAD).expect("its head").to_owned()
    }

    /// Elements and attributes of a page that are not on the list.
    fn strange(made: &str) -> Vec<String> {
        let again = page(made);
        let mut found = Vec::new();
        for node in again.tree.nodes() {
            let Some(element) = node.value().as_element() else { continue };
            let name = element.name();
            if !STAY.contains(&name) && !["html", "head", "body", "img"].contains(&name) {
                found.push(format!("<{name}>"));
            }
            for (attribute, value) in element.attrs() {
                let is_image = name == "img" && (attribute == "alt" || value.starts_with("data:image/"));
                if !is_image && attribute != "title" && !PLAIN.contains(&attribute) {
                    found.push(format!("{attribute} of <{name}>"));
                }
            }
        }
        found
    }

    #[test]
    fn nothing_stays_that_is_not_on_the_list() {
        for hostile in [
            "<script>fetch('//evil')</script>",
            "<link rel=preconnect href=//evil>",
            "<link rel=modulepreload href=//evil>",
            "<meta http-equiv=refresh content='0;url=//evil'>",
            "<base href=//evil>",
            "<iframe src=//evil></iframe>",
            "<iframe srcdoc='<img src=//evil>'>",
            "<object data=//evil></object>",
            "<embed src=//evil>",
            "<frameset onload=alert(1)><frame src=//evil></frameset>",
            "<svg onload=alert(1)><image href=//evil /><use xlink:href=//evil#x /><style>@import '//evil'</style></svg>",
            "<svg><a xlink:href='javascript:alert(1)'><text>x</text></a><foreignObject><img src=//evil></foreignObject></svg>",
            "<math><mtext><style><img src=//evil></style></mtext></math>",
            "<math><mtext><table><mglyph><style><!--</style><img title='--&gt;&lt;img src=//evil onerror=alert(1)&gt;'>",
            "<form><math><mtext></form><form><mglyph><style></math><img src=//evil onerror=alert(1)>",
            "<style>@import url(//evil)</style>",
            "<style>@font-face{font-family:x;src:url(//evil)}p{background:image-set('//evil' 1x)}</style>",
            "<p style=\"background:url(//evil)\">",
            "<p style=\"background:\\75rl(//evil)\">",
            "<table><tr><td background=//evil>",
            "<video src=//evil poster=//evil></video>",
            "<body background=//evil onload=alert(1)>",
            "<form action=//evil><input type=image src=//evil autofocus onfocus=alert(1)></form>",
            "<button formaction=//evil onclick=alert(1)>go</button>",
            "<template><img src=//evil></template>",
            "<noscript><img src=//evil></noscript>",
            "<noscript><p title='</noscript><img src=//evil onerror=alert(1)>'></noscript>",
            "<xmp><img src=//evil></xmp>",
            "<plaintext><img src=//evil>",
            "<title><img src=//evil></title><textarea></textarea><img src=//evil></textarea>",
            "<script type=speculationrules>{\"prefetch\":[{\"urls\":[\"//evil\"]}]}</script>",
            "<div srcdoc='<script>' srcset=//evil onclick=alert(1) ping=//evil>",
            "<!--><img src=//evil>--><![CDATA[<img src=//evil>]]>",
        ] {
            let out = made(hostile);
            assert_eq!(strange(&out), [] as [String; 0], "{hostile} left {out}");
        }
        assert_eq!(strange("<p onclick=x><link><img src=x>"), ["onclick of <p>", "<link>", "src of <img>"], "it sees");
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
    fn what_rules_find_is_outlined_and_no_page_can_say_so_itself() {
        let page = page("<b class=x>1</b><b>2</b>");
        let first = page.select(&scraper::Selector::parse("b").expect("CSS")).next().expect("there");
        let out = harmless(&page, &HashMap::from([(first.id(), "price".to_owned())]), &CancellationToken::new());
        assert!(
            out.ends_with("<b class=\"redrive-found\" title=\"found by the rule of price\">1</b><b>2</b>"),
            "{out}"
        );
        assert_eq!(made("<b class='a redrive-found redrive-note b'>1</b>"), "<b class=\"a b\">1</b>");
    }

    #[test]
    fn cells_are_as_wide_as_pages_are() {
        let cell = |given: &str| made(&format!("<table><tr><td colspan='{given}'>"));
        assert!(cell("3").contains("<td colspan=\"3\">"));
        assert!(cell("99999999").contains("<td colspan=\"100\">"));
        assert!(cell("x\" y").contains("<td>"));
    }

    #[test]
    fn a_page_of_any_depth_and_length_has_its_bound() {
        assert!(made(&"<b>".repeat(500)).len() > 1_000);
        let long = made(&"<p>x".repeat(60_000));
        assert!(long.ends_with(REST), "{}", &long[long.len() - 200..]);
        let wide = made(&format!("<p>{}{}", "x".repeat(BYTES_MAX - 1_000), "&amp;".repeat(1_000)));
        assert!(wide.len() <= BYTES_MAX + 1_000 && wide.ends_with(REST), "{}", wide.len());
        let copied = made(&format!("<p><b id='{}'>{}", "x".repeat(1 << 20), "<p>x".repeat(10)));
        assert!(copied.len() < 20_000, "values are cut: {}", copied.len());
        let stop = CancellationToken::new();
        stop.cancel();
        assert!(harmless(&page("<p>x"), &HashMap::new(), &stop).len() < HEAD.len() + 200);
    }
}
