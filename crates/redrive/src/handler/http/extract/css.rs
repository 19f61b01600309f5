//! Reading pages by CSS selectors.
//!
//! All plain selectors of a record are found in one walk over the page: the last part of each (an id, a class or a tag
//! that the element itself must have) sorts out nearly every element before the selector engine has to look. Selectors
//! with more to them (`:nth-child`, `[attr]`, lists) get a walk of their own, where the engine can use its caches.

use scraper::{ElementRef, Html, Selector};
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use super::convert::Kind;
use super::miss::{Head, Lack, MissKind};
use super::mistakes;
use super::pointer::JsonFields;
use super::record::{self, Partial};
use super::text::visible_text;

/// Which elements a field is about.
#[derive(Clone, Debug)]
pub(super) enum Find {
    /// The element that the fields are relative to.
    Scope,
    /// Those with the key for which the selector holds too.
    Keyed(Key, Selector),
    /// Those for which the selector holds.
    Plain(Selector),
}

/// What an element must have for a selector to hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Key {
    Id(String),
    Class(String),
    Tag(String),
}

impl Key {
    /// The key of a selector of only names, `.`, `#` and combinators; others have none that is easily seen.
    fn of(css: &str) -> Option<Self> {
        let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        let is_combinator = |c: char| matches!(c, '>' | '+' | '~') || c.is_ascii_whitespace();
        if !css.chars().all(|c| is_name(c) || is_combinator(c) || matches!(c, '.' | '#')) {
            return None;
        }
        let last = css.trim().rsplit(is_combinator).next()?;
        let name_after = |mark: char| {
            let (_, rest) = last.split_once(mark)?;
            rest.split(['.', '#']).next().map(ToOwned::to_owned)
        };
        let tag = || last.split(['.', '#']).next().filter(|tag| !tag.is_empty()).map(ToOwned::to_owned);
        name_after('#').map(Self::Id).or_else(|| name_after('.').map(Self::Class)).or_else(|| tag().map(Self::Tag))
    }

    fn fits(&self, names: &Names<'_>) -> bool {
        match self {
            Self::Id(id) => names.id == Some(id),
            Self::Class(class) => names.class.split_ascii_whitespace().any(|name| name == class),
            Self::Tag(tag) => names.tag.eq_ignore_ascii_case(tag),
        }
    }
}

/// What keys look at, read once per element.
struct Names<'a> {
    tag: &'a str,
    id: Option<&'a str>,
    class: &'a str,
}

impl<'a> Names<'a> {
    fn of(element: ElementRef<'a>) -> Self {
        let mut names = Self { tag: element.value().name(), id: None, class: "" };
        for (name, value) in element.value().attrs() {
            match name {
                "id" => names.id = Some(value),
                "class" => names.class = value,
                _ => {}
            }
        }
        names
    }
}

impl Find {
    /// Reads a selector without its suffix; nothing, or `:scope`, is the element itself.
    pub(super) fn parse(css: &str) -> Result<Self, String> {
        if css.is_empty() || css == ":scope" {
            return Ok(Self::Scope);
        }
        let selector = Selector::parse(css).map_err(|error| mistakes::explain(css, &error))?;
        Ok(match Key::of(css) {
            Some(key) => Self::Keyed(key, selector),
            None => Self::Plain(selector),
        })
    }
}

/// What of an element is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Text,
    Attribute(String),
}

/// What an element becomes.
#[derive(Clone, Debug)]
pub(super) enum Take {
    /// One of its parts, as one of the types.
    Part(Part, Kind),
    /// The markup inside of it.
    Html,
    /// An object made of what these find inside of it.
    Fields(PageFields),
    /// An object made of what these find in the JSON that one of its parts holds.
    JsonFields(Part, JsonFields),
}

/// A field that a selector finds.
#[derive(Clone, Debug)]
pub(super) struct PageField {
    pub(super) head: Head,
    pub(super) find: Find,
    pub(super) take: Take,
}

impl PageField {
    /// Takes an element that its selector found; says whether it looks for more.
    ///
    /// A list takes all, others the first. If an attribute is asked for, that is the first that has it; until one comes,
    /// the first without it stands in, so that the failure can say what is missing.
    fn wants_more<'a>(&self, found: &mut Vec<ElementRef<'a>>, element: ElementRef<'a>) -> bool {
        let part = match &self.take {
            Take::Part(part, _) | Take::JsonFields(part, _) => Some(part),
            Take::Html | Take::Fields(_) => None,
        };
        let has_it = match part {
            Some(Part::Attribute(name)) => attribute(element, name).is_some(),
            Some(Part::Text) | None => true,
        };
        if self.head.list {
            found.push(element);
        } else if has_it || found.is_empty() {
            *found = vec![element];
        }
        self.head.list || !has_it
    }
}

/// The fields of an object.
#[derive(Clone, Debug)]
pub(super) struct PageFields(pub(super) Vec<PageField>);

impl PageFields {
    /// The record that a page gives; `None` stands for a document that is no page. Once `stop` is cancelled nobody wants
    /// it any more, and the search ends.
    pub(super) fn extract(&self, page: Option<&Html>, stop: &CancellationToken) -> Result<Map<String, Value>, Partial> {
        let root = page.and_then(|page| page.tree.root().children().find_map(ElementRef::wrap));
        match root {
            Some(root) => self.read(root, true, stop),
            None => self.collect(self.0.iter().map(|_| Vec::new()), stop),
        }
    }

    fn read(
        &self,
        scope: ElementRef<'_>,
        is_root: bool,
        stop: &CancellationToken,
    ) -> Result<Map<String, Value>, Partial> {
        self.collect(self.find(scope, is_root, stop).into_iter(), stop)
    }

    fn collect<'a>(
        &self,
        found: impl Iterator<Item = Vec<ElementRef<'a>>>,
        stop: &CancellationToken,
    ) -> Result<Map<String, Value>, Partial> {
        let fields = self.0.iter().zip(found).map(|(field, elements)| {
            let wanted = elements.into_iter().take_while(|_| !stop.is_cancelled());
            let values = wanted.map(|element| field.take.value(element, stop));
            (field.head.name.as_str(), field.head.settle(values, MissKind::SelectorNotFound))
        });
        record::collect(fields)
    }

    /// The elements of each field, in the order of the page: all for a list, or else at most one.
    fn find<'a>(&self, scope: ElementRef<'a>, is_root: bool, stop: &CancellationToken) -> Vec<Vec<ElementRef<'a>>> {
        let mut found: Vec<Vec<ElementRef<'a>>> = Vec::with_capacity(self.0.len());
        let mut open = Vec::new();
        for (index, field) in self.0.iter().enumerate() {
            found.push(match &field.find {
                Find::Scope => vec![scope],
                Find::Plain(selector) => {
                    // A page's rules may be about `<html>` itself, those of an element are about what is in it.
                    let own = (is_root && selector.matches(&scope)).then_some(scope);
                    let mut elements = Vec::new();
                    for element in own.into_iter().chain(scope.select(selector)) {
                        if stop.is_cancelled() || !field.wants_more(&mut elements, element) {
                            break;
                        }
                    }
                    elements
                }
                Find::Keyed(key, selector) => {
                    open.push((index, field, key, selector));
                    Vec::new()
                }
            });
        }
        for element in scope.descendent_elements().skip(usize::from(!is_root)) {
            if open.is_empty() || stop.is_cancelled() {
                break;
            }
            let names = Names::of(element);
            open.retain(|(index, field, key, selector)| {
                let holds = key.fits(&names) && selector.matches_with_scope(&element, Some(scope));
                !holds || field.wants_more(&mut found[*index], element)
            });
        }
        found
    }
}

impl Take {
    fn value(&self, element: ElementRef<'_>, stop: &CancellationToken) -> Result<Value, Lack> {
        match self {
            Self::Part(part, kind) => kind.of_text(part.read(element, *kind)?),
            Self::Html => Kind::Html.of_text(element.inner_html().trim().to_owned()),
            Self::Fields(fields) => fields.read(element, false, stop).map(Value::Object).map_err(Lack::from),
            Self::JsonFields(part, fields) => {
                let json = Kind::Json.of_text(part.read(element, Kind::Json)?)?;
                fields.extract(Some(&json)).map(Value::Object).map_err(Lack::from)
            }
        }
    }
}

impl Part {
    fn read(&self, element: ElementRef<'_>, kind: Kind) -> Result<String, Lack> {
        match self {
            // Blanks inside of JSON's own texts must stay.
            Self::Text if kind == Kind::Json => Ok(element.text().collect()),
            Self::Text => Ok(visible_text(element)),
            Self::Attribute(name) => {
                let value = attribute(element, name).ok_or(Lack::Absent(MissKind::AttributeNotFound))?;
                Ok(value.trim().to_owned())
            }
        }
    }
}

fn attribute<'a>(element: ElementRef<'a>, name: &str) -> Option<&'a str> {
    let mut attributes = element.value().attrs();
    attributes.find(|(other, _)| other.eq_ignore_ascii_case(name)).map(|(_, value)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_the_last_part_of_plain_selectors() {
        let key = Key::of;
        assert_eq!(key("h1"), Some(Key::Tag("h1".into())));
        assert_eq!(key("div > .offer .p"), Some(Key::Class("p".into())));
        assert_eq!(key("a img.main.big"), Some(Key::Class("main".into())));
        assert_eq!(key("p.x#top.y"), Some(Key::Id("top".into())));
        assert_eq!(key("ul.tags>li"), Some(Key::Tag("li".into())));
        for css in ["*", "a, b", "[href]", "p:first-child", ".a\\.b", ".é", ":is(a .b", "[title=\"a .b", "h1 /**/"] {
            assert_eq!(key(css), None, "{css}");
        }
    }

    #[test]
    fn keys_never_lose_an_element() {
        let html = "<html id=r><body class='a b'><div id=x class=\"offer  big\"><P CLASS='p Q'>1</P><svg><linearGradient id=g>\
                    </linearGradient></svg></div><p class=p id=y>2<b><i class='p'>3</i></b></p>";
        let page = Html::parse_document(html);
        let css = [
            "p",
            "P",
            ".p",
            ".P",
            ".q",
            ".Q",
            "#x",
            "#X",
            "div p",
            "div > p",
            ".offer.big .p",
            "p.p#y",
            "div ~ p",
            "div+p",
            "b i.p",
            "html",
            "#r",
            "body.a",
            "linearGradient",
            "lineargradient",
            ".offer  >  .Q",
        ];
        for css in css {
            let Ok(Find::Keyed(key, selector)) = Find::parse(css) else { panic!("{css} has a key") };
            let all: Vec<_> = page.select(&selector).collect();
            let fit: Vec<_> = all.iter().filter(|element| key.fits(&Names::of(**element))).collect();
            assert_eq!(all.len(), fit.len(), "{css}");
        }
    }
}
