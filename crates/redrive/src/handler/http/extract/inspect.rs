//! Looking at what rules find on a document, field by field: how often they match, what they give, and, where they give nothing, what
//! could be meant instead.

use scraper::{ElementRef, Html, Selector};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::convert::Kind;
use super::css::{Find, PageField, PageFields, Take};
use super::extractor::{Extractor, Source};
use super::miss::Miss;
use super::pointer::JsonFields;
use super::record::Partial;
use super::text::visible_text;
use crate::handler::http::document::Document;

/// The most matches that are counted.
pub const MATCHES_MAX: usize = 1_000;

/// The most places that are named which could be meant instead.
pub const CANDIDATES_MAX: usize = 5;

/// The most places that are looked at more closely.
const LOOKED_AT_MAX: usize = 40;

/// The longest text of a place that could be meant, in characters.
const TEXT_CHARS_MAX: usize = 80;

/// What a rule finds.
#[derive(Clone, Debug)]
pub struct Reading {
    /// The field.
    pub field: String,
    /// How often its rule matches, up to [`MATCHES_MAX`].
    pub matches: usize,
    /// What it gives, unless it gives nothing.
    pub value: Option<Value>,
    /// What is amiss.
    pub misses: Vec<Miss>,
}

/// A place on a page that could be meant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Candidate {
    /// The rule that finds it.
    pub rule: String,
    /// What it gives there.
    pub value: String,
}

/// What is known about a rule that is missed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Help {
    /// The longest part of its selector that still matches, and how often. It may be all of it: what it finds is not what it asks for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub still: Option<(String, usize)>,
    /// Places whose text can be read as the field's type.
    pub candidates: Vec<Candidate>,
}

impl Extractor {
    /// What each rule finds on a document, in their order.
    pub fn inspect(&self, document: &Document<'_>, stop: &CancellationToken) -> Vec<Reading> {
        match (&self.source, document) {
            (Source::Page(fields), Document::Page(page)) => {
                fields.0.iter().map(|field| of_page(field, Some(page), stop)).collect()
            }
            (Source::Page(fields), _) => fields.0.iter().map(|field| of_page(field, None, stop)).collect(),
            (Source::Json(fields), document) => {
                let value = if let Document::Json(value) = document { Some(value) } else { None };
                let one = |field: &super::pointer::JsonField| {
                    let read = JsonFields(vec![field.clone()]).extract(value);
                    reading(&field.head.name, value.map_or(0, |value| field.matches(value)), read)
                };
                fields.0.iter().map(one).collect()
            }
            (Source::Whole, _) => Vec::new(),
        }
    }

    /// The elements that the rule of a field finds on a page.
    pub fn elements<'a>(&self, page: &'a Html, field: &str) -> Vec<ElementRef<'a>> {
        let Source::Page(fields) = &self.source else { return Vec::new() };
        fields.0.iter().find(|known| known.head.name == field).map(|field| found(field, page)).unwrap_or_default()
    }

    /// What could be meant by the rule of a field that finds nothing on a page. `worked` is what it gave on a page that worked.
    pub fn help(&self, page: &Html, field: &str, worked: Option<&Value>, stop: &CancellationToken) -> Help {
        let Source::Page(fields) = &self.source else { return Help::default() };
        let Some(field) = fields.0.iter().find(|known| known.head.name == field) else { return Help::default() };
        let css = field.head.rule.split("::attr(").next().unwrap_or_default();
        let still = shortened(css).into_iter().find_map(|css| {
            let matches = page.select(&Selector::parse(&css).ok()?).take(MATCHES_MAX).count();
            (matches > 0).then_some((css, matches))
        });
        let kind = match &field.take {
            Take::Part(_, kind) => *kind,
            _ => return Help { still, candidates: Vec::new() },
        };
        Help { still, candidates: candidates(page, (&field.head.name, css), kind, worked, stop) }
    }
}

fn of_page(field: &PageField, page: Option<&Html>, stop: &CancellationToken) -> Reading {
    let matches = page.map_or(0, |page| found(field, page).len());
    reading(&field.head.name, matches, PageFields(vec![field.clone()]).extract(page, stop))
}

fn reading(name: &str, matches: usize, read: Result<serde_json::Map<String, Value>, Partial>) -> Reading {
    let (value, misses) = match read {
        Ok(mut found) => (found.remove(name).filter(|value| !value.is_null()), Vec::new()),
        Err(Partial { misses, .. }) => (None, std::iter::once(misses.first).chain(misses.others).collect()),
    };
    Reading { field: name.to_owned(), matches, value, misses }
}

fn found<'a>(field: &PageField, page: &'a Html) -> Vec<ElementRef<'a>> {
    match &field.find {
        Find::Scope => page.tree.root().children().find_map(ElementRef::wrap).into_iter().collect(),
        Find::Keyed(_, selector) | Find::Plain(selector) => page.select(selector).take(MATCHES_MAX).collect(),
    }
}

/// A selector, and the parts of it that are left when its end is taken away piece by piece, longest first.
pub(crate) fn shortened(css: &str) -> Vec<String> {
    let first = split_outside(css, |c| c == ',').into_iter().next().unwrap_or_default();
    let mut left = vec![css.trim().to_owned()];
    left.extend(Some(first.trim()).filter(|first| *first != css.trim()).map(ToOwned::to_owned));
    left.retain(|part| !part.is_empty());
    let mut rest = first.trim();
    while let Some(at) = last_piece(rest) {
        rest = rest[..at].trim_end_matches(|c: char| c.is_whitespace() || matches!(c, '>' | '+' | '~'));
        if rest.is_empty() {
            break;
        }
        left.push(rest.to_owned());
    }
    left
}

/// Where the last piece of a selector begins: a class, an id, a condition, or what follows a combinator.
fn last_piece(css: &str) -> Option<usize> {
    let is_start = |c: char| matches!(c, '.' | '#' | '[' | ':' | '>' | '+' | '~') || c.is_whitespace();
    let starts: Vec<usize> = outside(css).filter(|(_, c)| is_start(*c)).map(|(at, _)| at).collect();
    starts.into_iter().rev().find(|at| *at > 0)
}

/// The characters of a selector that are not inside of brackets or quotes; brackets themselves where they open.
fn outside(css: &str) -> impl Iterator<Item = (usize, char)> + '_ {
    let (mut depth, mut quote) = (0_u32, None);
    css.char_indices().filter(move |(_, c)| {
        let is_outside = depth == 0 && quote.is_none();
        match (quote, c) {
            (Some(open), c) if open == *c => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(*c),
            (None, '[' | '(') => depth += 1,
            (None, ']' | ')') => depth = depth.saturating_sub(1),
            (None, _) => {}
        }
        is_outside
    })
}

fn split_outside(css: &str, is_mark: impl Fn(char) -> bool) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut from = 0;
    for (at, c) in outside(css) {
        if is_mark(c) {
            parts.push(&css[from..at]);
            from = at + c.len_utf8();
        }
    }
    parts.push(&css[from..]);
    parts
}

/// A place that may be meant, before its rule is known.
struct Place<'a> {
    element: ElementRef<'a>,
    attribute: Option<String>,
    value: Value,
    likeness: usize,
}

/// Places whose text can be read as a type, those first whose names are like the field's.
fn candidates(
    page: &Html,
    (field, css): (&str, &str),
    kind: Kind,
    worked: Option<&Value>,
    stop: &CancellationToken,
) -> Vec<Candidate> {
    let wanted = words(&format!("{field} {css}"));
    let mut places: Vec<Place<'_>> = Vec::new();
    for element in page.root_element().descendent_elements() {
        if stop.is_cancelled() {
            return Vec::new();
        }
        if matches!(element.value().name(), "script" | "style" | "template" | "html" | "head" | "body") {
            continue;
        }
        let own = likeness(element, &wanted);
        let around = element.parent().and_then(ElementRef::wrap).map_or(0, |parent| likeness(parent, &wanted));
        let mut add = |attribute: Option<&str>, text: String, likeness: usize| {
            if text.is_empty() || text.chars().count() > TEXT_CHARS_MAX {
                return;
            }
            let Ok(value) = kind.of_text(text) else { return };
            let likeness = likeness + if worked == Some(&value) { 4 } else { 0 };
            // Any text is a text: only names tell.
            if likeness > 0 || !matches!(kind, Kind::Text | Kind::Html | Kind::Json) {
                places.push(Place { element, attribute: attribute.map(ToOwned::to_owned), value, likeness });
            }
        };
        let has_elements = element.children().any(|child| child.value().is_element());
        if !has_elements {
            add(None, visible_text(element), 2 * own + around);
        }
        for (name, text) in element.value().attrs() {
            if name == "value" || name == "content" || name.starts_with("data-") {
                let named = words(name).iter().filter(|word| wanted.contains(word)).count();
                add(Some(name), text.trim().to_owned(), 2 * own + around + 2 * named);
            }
        }
        if places.len() > 5_000 {
            break;
        }
    }
    // Of places that are alike the first on the page comes first.
    places.sort_by_key(|place| std::cmp::Reverse(place.likeness));
    let mut found: Vec<Candidate> = Vec::new();
    for place in places.into_iter().take(LOOKED_AT_MAX) {
        if found.len() == CANDIDATES_MAX || stop.is_cancelled() {
            break;
        }
        let Some(css) = selector_of(page, place.element) else { continue };
        let suffix = place.attribute.map_or("::text".to_owned(), |name| format!("::attr({name})"));
        let rule = css + &suffix;
        let value = place.value.as_str().map_or_else(|| place.value.to_string(), str::to_owned);
        if !found.iter().any(|known| known.rule == rule) {
            found.push(Candidate { rule, value });
        }
    }
    found
}

/// How many words the names of an element share with those that are wanted.
fn likeness(element: ElementRef<'_>, wanted: &[String]) -> usize {
    let attributes = element.value().attrs().filter(|(name, _)| matches!(*name, "class" | "id" | "itemprop" | "name"));
    let mut own = words(&attributes.map(|(_, value)| value).collect::<Vec<_>>().join(" "));
    own.extend(words(element.value().name()));
    own.iter().filter(|word| wanted.contains(word)).count().min(3)
}

fn words(text: &str) -> Vec<String> {
    let is_word = |word: &&str| word.len() >= 2 && !matches!(*word, "text" | "attr" | "div" | "span");
    let words = text.split(|c: char| !c.is_ascii_alphanumeric()).filter(is_word);
    let mut words: Vec<String> = words.map(str::to_ascii_lowercase).collect();
    words.dedup();
    words
}

/// A selector by which an element is the first that is found, if a short one does.
fn selector_of(page: &Html, element: ElementRef<'_>) -> Option<String> {
    let own = name_of(element, true);
    let ancestors = element.ancestors().filter_map(ElementRef::wrap).filter(|ancestor| has_name(*ancestor)).take(3);
    let ways =
        std::iter::once(own.clone()).chain(ancestors.map(|ancestor| format!("{} {own}", name_of(ancestor, false))));
    ways.into_iter().find(|css| {
        let Ok(selector) = Selector::parse(css) else { return false };
        page.select(&selector).next().is_some_and(|first| first.id() == element.id())
    })
}

fn has_name(element: ElementRef<'_>) -> bool {
    name_of(element, false) != element.value().name()
}

/// By what an element is named in a selector: its id, its first class, or its tag.
fn name_of(element: ElementRef<'_>, with_tag: bool) -> String {
    let is_name = |name: &&str| {
        name.starts_with(|c: char| c.is_ascii_alphabetic())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'))
            && name.chars().filter(char::is_ascii_digit).count() < 3
    };
    let tag = element.value().name();
    let id = element.value().id().filter(is_name).map(|id| format!("#{id}"));
    let class = element
        .value()
        .classes()
        .find(|class| is_name(class))
        .map(|class| if with_tag { format!("{tag}.{class}") } else { format!(".{class}") });
    id.or(class).unwrap_or_else(|| tag.to_owned())
}

#[cfg(test)]
mod tests {
    use super::super::Rules;
    use super::*;
    use crate::handler::http::document::Format;
    use serde_json::json;

    const RULES: &str = "[fields]
        title = \"h1.title::text\"
        price = { select = \"div.offer > p.price-box .price-tag-main::text\", type = \"number\" }
        tags = { select = \"ul.tags li\", list = true, required = false }";

    const PAGE: &str = "<h1 class=title>Board 7</h1><div class=offer><p class=price-box><small>incl. VAT</small></p>\
        <div class=price><data value=89.95>€ 89.95</data></div><i data-number=65>65</i></div><ul class=tags><li>a<li>b</ul>";

    fn with<T>(run: impl FnOnce(&Extractor, &Document<'_>) -> T) -> T {
        let extractor = toml::from_str::<Rules>(RULES).expect("rules").compile().expect("rules");
        let document = Document::parse(Format::Html, PAGE).expect("a page");
        run(&extractor, &document)
    }

    #[test]
    fn each_rule_says_how_often_it_matches_and_what_it_gives() {
        let stop = CancellationToken::new();
        let readings = with(|extractor, document| extractor.inspect(document, &stop));
        let told: Vec<_> =
            readings.iter().map(|r| (r.field.as_str(), r.matches, r.value.clone(), r.misses.len())).collect();
        assert_eq!(told[0], ("title", 1, Some(json!("Board 7")), 0));
        assert_eq!(told[1], ("price", 0, None, 1));
        assert_eq!(told[2], ("tags", 2, Some(json!(["a", "b"])), 0));
    }

    #[test]
    fn a_miss_shows_what_still_matches_and_what_could_be_meant() {
        let stop = CancellationToken::new();
        let help = with(|extractor, document| {
            let Document::Page(page) = document else { panic!("a page") };
            extractor.help(page, "price", Some(&json!(70.5)), &stop)
        });
        assert_eq!(help.still, Some(("div.offer > p.price-box".to_owned(), 1)));
        let rules: Vec<_> = help.candidates.iter().map(|c| (c.rule.as_str(), c.value.as_str())).collect();
        assert_eq!(rules[0].1, "89.95");
        assert!(rules[..2].iter().any(|(rule, _)| *rule == "data::attr(value)"), "{rules:?}");
        assert!(rules.contains(&("i::attr(data-number)", "65")), "{rules:?}");
        assert!(rules.len() <= CANDIDATES_MAX);
        for (rule, value) in rules {
            let toml = format!("[fields]\nx = {{ select = {rule:?}, type = \"number\" }}");
            let extractor = toml::from_str::<Rules>(&toml).expect("rules").compile().expect("it can be used as it is");
            let document = Document::parse(Format::Html, PAGE).expect("a page");
            assert_eq!(extractor.extract(&document).expect("found")["x"].to_string(), value, "{rule}");
        }
    }

    #[test]
    fn selectors_are_shortened_from_their_end() {
        assert_eq!(
            shortened("div.a > p.b.c .d"),
            ["div.a > p.b.c .d", "div.a > p.b.c", "div.a > p.b", "div.a > p", "div.a", "div"]
        );
        assert_eq!(shortened(".price-tag-main"), [".price-tag-main"]);
        assert_eq!(
            shortened("a[title=\"x > .y\"]:not(.b c) i"),
            ["a[title=\"x > .y\"]:not(.b c) i", "a[title=\"x > .y\"]:not(.b c)", "a[title=\"x > .y\"]", "a"]
        );
        assert_eq!(shortened("h1 b, h2"), ["h1 b, h2", "h1 b", "h1"]);
        assert_eq!(shortened(""), [] as [&str; 0]);
    }

    #[test]
    fn pointers_match_where_something_is() {
        let rules = "format = \"json\"\n[fields]\nname = { pointer = \"/name\" }\n\
            price = { pointer = \"/price\", type = \"number\" }\n\
            tags = { pointer = \"/tags\", list = true }\nnote = { pointer = \"/note\", required = false }";
        let extractor = toml::from_str::<Rules>(rules).expect("rules").compile().expect("rules");
        let text = "{\"name\": \"a\", \"price\": \"sold out\", \"tags\": [1, 2]}";
        let document = Document::parse(Format::Json, text).expect("JSON");
        let readings = extractor.inspect(&document, &CancellationToken::new());
        let told: Vec<_> = readings.iter().map(|one| (one.field.as_str(), one.matches, one.misses.len())).collect();
        assert_eq!(told, [("name", 1, 0), ("price", 1, 1), ("tags", 2, 0), ("note", 0, 0)]);
    }
}
