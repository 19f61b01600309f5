//! Two pages beside each other, read by the same rules.

use std::collections::{BTreeSet, HashMap};

use scraper::Html;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::hunks::{Hunk, Side, hunks};
use super::lines::{Lines, NodeId};
use super::safe;
use crate::handler::http::document::{Document, Format};
use crate::handler::http::extract::{Extractor, Help, Reading};

/// The most of a value that is told, in characters.
const VALUE_CHARS_MAX: usize = 300;

/// What a rule finds on one page.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Found {
    /// How often it matches.
    pub matches: u64,
    /// What it gives, as text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// What is amiss, if something is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub miss: Option<String>,
    /// What was expected, where something else is there.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub why: Option<String>,
    /// What is there instead, or its beginning.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub instead: Option<String>,
}

/// A field on both pages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ComparedField {
    /// Its name.
    pub field: String,
    /// Its rule.
    pub rule: String,
    /// Its type.
    pub kind: String,
    /// What the rule finds on the page that broke.
    pub broke: Found,
    /// And on the one that worked, by the rules that it was saved under; nothing if there is none, or if that is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worked: Option<Found>,
    /// The rule that the page that worked was read by, if it is another.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub worked_rule: Option<String>,
    /// What could be meant, where it finds nothing on the page that broke.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub help: Option<Help>,
}

/// A rule as it is shown.
#[derive(Clone, Debug)]
pub(super) struct Shown {
    pub(super) field: String,
    pub(super) rule: String,
    pub(super) kind: String,
}

/// What two pages have to say.
#[derive(Clone, Debug, Default)]
pub(super) struct Beside {
    pub(super) fields: Vec<ComparedField>,
    pub(super) hunks: Vec<Hunk>,
    pub(super) hunks_count: u64,
    /// Why the page that broke cannot be read, if it cannot.
    pub(super) broken: Option<String>,
    /// Why it is not told what differs, though it was asked for and there is a page that worked.
    pub(super) no_diff: Option<String>,
}

/// A page as it came.
#[derive(Clone, Debug)]
pub(super) struct Body {
    pub(super) text: String,
    pub(super) content_type: Option<String>,
}

/// What is wanted of pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    /// What rules find.
    Fields,
    /// That, and what differs.
    All,
}

/// Rules, ready and as they are shown.
type Known<'a> = Option<(&'a Extractor, &'a [Shown])>;

/// The rules that the page that worked is read by.
#[derive(Clone, Copy)]
pub(super) struct Then<'a> {
    pub(super) rules: Known<'a>,
    /// Whether it was saved under them: by others it may lack what nobody asked of it.
    pub(super) is_own: bool,
}

fn parse<'a>(rules: Known<'_>, body: &'a Body, stop: &CancellationToken) -> Result<(Format, Document<'a>), String> {
    let content_type = body.content_type.as_deref();
    // Rules that take an answer whole read a page as text; people want to see what it is.
    let by_rules = rules.map(|(extractor, _)| extractor.format(content_type)).filter(|format| *format != Format::Text);
    let format = by_rules.unwrap_or_else(|| guessed(content_type));
    let document = Document::parse_until(format, &body.text, stop).map_err(|error| error.to_string())?;
    Ok((format, document))
}

/// Compares two pages; of the one that worked there may be no more than why it cannot be read. Runs on a thread of its own: a page may
/// keep it busy until it is told to stop.
pub(super) fn compare(
    (rules, then): (Known<'_>, Then<'_>),
    broke: &Body,
    worked: Option<&Result<Body, String>>,
    wanted: Wanted,
    stop: &CancellationToken,
) -> Beside {
    let broke = match parse(rules, broke, stop) {
        Ok(read) => read,
        Err(why) => return Beside { broken: Some(why), ..Beside::default() },
    };
    let worked = match worked {
        None => Ok(None),
        Some(Ok(body)) => parse(then.rules, body, stop).map(Some),
        Some(Err(why)) => Err(why.clone()),
    };
    let of_worked = worked.as_ref().ok().and_then(|worked| Some(&worked.as_ref()?.1));
    let fields =
        rules.map_or_else(Vec::new, |(extractor, shown)| fields((extractor, shown, then), (&broke.1, of_worked), stop));
    let mut beside = Beside { fields, ..Beside::default() };
    match (wanted, worked) {
        (_, Err(why)) => beside.no_diff = Some(format!("the page that worked cannot be read: {why}")),
        (Wanted::All, Ok(Some(worked))) => match sides((rules, &broke), (then.rules, &worked), &beside.fields, stop) {
            Ok((first, second)) => {
                let missed = beside.fields.iter().filter(|field| field.broke.miss.is_some());
                let missed: BTreeSet<&str> = missed.map(|field| field.field.as_str()).collect();
                let (hunks, count) = hunks(&first, &second, &missed);
                (beside.hunks, beside.hunks_count) = (hunks, count);
            }
            Err(why) => beside.no_diff = Some(why),
        },
        (Wanted::Fields, Ok(_)) | (_, Ok(None)) => {}
    }
    beside
}

/// Both pages as lines; says why not if they have none that can be compared.
fn sides(
    (rules, (format, broke)): (Known<'_>, &(Format, Document<'_>)),
    (then, (other, worked)): (Known<'_>, &(Format, Document<'_>)),
    fields: &[ComparedField],
    stop: &CancellationToken,
) -> Result<(Side, Side), String> {
    let of_page = |rules: Known<'_>, page: &Html| {
        let places = rules.map_or_else(HashMap::new, |(extractor, _)| places(extractor, page, fields));
        (Lines::of(page, stop), places)
    };
    match (broke, worked) {
        (Document::Page(broke), Document::Page(worked)) => Ok((of_page(rules, broke), of_page(then, worked))),
        (Document::Json(broke), Document::Json(worked)) => {
            let of_json = |value| (Lines::of_json(value, stop), HashMap::new());
            Ok((of_json(broke), of_json(worked)))
        }
        (Document::Text(_), Document::Text(_)) => {
            Err("both are plain text, which has no structure to compare".to_owned())
        }
        _ => Err(format!("the page that broke is {format}, the one that worked is {other}")),
    }
}

/// A page made harmless, with what rules find outlined; or why it cannot be shown.
pub(super) fn rendered(rules: Known<'_>, body: &Body, stop: &CancellationToken) -> Result<String, String> {
    let page = match parse(rules, body, stop)? {
        (Format::Html, Document::Page(page)) => page,
        (format, _) => return Err(format!("it is {format}, which has no looks of its own")),
    };
    let mut outlined = HashMap::new();
    if let Some((extractor, shown)) = rules {
        for Shown { field, .. } in shown {
            for element in extractor.elements(&page, field).into_iter().take(20) {
                outlined.entry(element.id()).or_insert_with(|| field.clone());
            }
        }
    }
    Ok(safe::harmless(&page, &outlined, stop))
}

/// The fields that two extractors read differently; nothing if the first gives no record.
pub(super) fn differ(
    (before, after): (&Extractor, &Extractor),
    body: &Body,
    stop: &CancellationToken,
) -> Option<Vec<String>> {
    let format = before.format(body.content_type.as_deref());
    let document = Document::parse_until(format, &body.text, stop).ok()?;
    let record = before.extract_until(&document, stop).ok()?;
    Some(match after.extract_until(&document, stop) {
        Ok(other) => record
            .iter()
            .filter(|(name, value)| other.get(*name) != Some(value))
            .map(|(name, _)| name.clone())
            .collect(),
        Err(partial) => {
            let misses = std::iter::once(&partial.misses.first).chain(&partial.misses.others);
            misses.map(|miss| miss.field.split(['.', '[']).next().unwrap_or_default().to_owned()).collect()
        }
    })
}

fn guessed(content_type: Option<&str>) -> Format {
    content_type.and_then(Format::of_content_type).unwrap_or(Format::Html)
}

fn fields(
    (extractor, shown, then): (&Extractor, &[Shown], Then<'_>),
    (broke, worked): (&Document<'_>, Option<&Document<'_>>),
    stop: &CancellationToken,
) -> Vec<ComparedField> {
    let of_broke = extractor.inspect(broke, stop);
    let of_worked = worked.zip(then.rules).map(|(document, (extractor, _))| extractor.inspect(document, stop));
    let on_worked = |field: &str| {
        let reading = of_worked.as_ref()?.iter().find(|reading| reading.field == field)?;
        (then.is_own || reading.misses.is_empty()).then_some(reading)
    };
    let rule_of = |shown: &[Shown], field: &str| Some(shown.iter().find(|known| known.field == field)?.rule.clone());
    of_broke
        .into_iter()
        .map(|reading| {
            let known = shown.iter().find(|known| known.field == reading.field);
            let (rule, kind) = known.map(|known| (known.rule.clone(), known.kind.clone())).unwrap_or_default();
            let worked = on_worked(&reading.field);
            let help = match (reading.misses.is_empty(), broke) {
                (false, Document::Page(page)) => {
                    let value = worked.and_then(|reading| reading.value.as_ref());
                    Some(extractor.help(page, &reading.field, value, stop))
                }
                _ => None,
            };
            let worked_rule = worked.zip(then.rules).and_then(|(_, (_, shown))| rule_of(shown, &reading.field));
            let worked_rule = worked_rule.filter(|then| *then != rule);
            let (field, worked) = (reading.field.clone(), worked.map(found));
            ComparedField { field, rule, kind, broke: found(&reading), worked, worked_rule, help }
        })
        .collect()
}

fn found(reading: &Reading) -> Found {
    let (matches, value) = (reading.matches as u64, reading.value.as_ref().map(told));
    let Some(miss) = reading.misses.first() else { return Found { matches, value, ..Found::default() } };
    let kept = miss.kept();
    Found { matches, value, miss: Some(kept.code), why: kept.why, instead: kept.found }
}

/// A value as text, cut.
fn told(value: &Value) -> String {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(told).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    };
    match text.char_indices().nth(VALUE_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// The fields that find each element.
fn places(extractor: &Extractor, page: &Html, fields: &[ComparedField]) -> HashMap<NodeId, Vec<String>> {
    let mut places: HashMap<NodeId, Vec<String>> = HashMap::new();
    for field in fields {
        for element in extractor.elements(page, &field.field).into_iter().take(50) {
            places.entry(element.id()).or_default().push(field.field.clone());
        }
    }
    places
}

#[cfg(test)]
mod tests {
    use super::super::hunks::{HunkLine, HunkRow};
    use super::*;
    use crate::handler::http::extract::Rules;

    const WORKED: &str = "<body><h1 class=title>Lamp</h1><i>1</i><i>2</i><i>3</i><i>4</i><i>5</i><ul class=tags><li>a<li>b</ul><p class=description>Nice</p>\
        <p class=price-box><span class=currency>€</span><span class=price-tag-main>70.50</span></p><button>Buy</button>";
    const BROKE: &str = "<body><div class=banner>New!</div><h1 class=title>Board</h1><i>1</i><i>2</i><i>3</i><i>4</i><i>5</i><ul class=tags><li>c<li>d</ul><div class=price><data value=89.95>€ 89.95</data></div>\
        <p class=description>Good</p><button>Buy</button>";

    const RULES: &str = "[fields]\ntitle = \"h1.title::text\"\nprice = { select = \".price-tag-main::text\", type = \"number\" }\n\
         tags = { select = \".none\", list = true, required = false }";

    fn body(text: &str, content_type: Option<&str>) -> Body {
        Body { text: text.to_owned(), content_type: content_type.map(ToOwned::to_owned) }
    }

    fn beside(worked: Option<&str>) -> Beside {
        by(RULES, (BROKE, None), worked.map(|text| Ok(body(text, None))))
    }

    fn by(rules: &str, (broke, content_type): (&str, Option<&str>), worked: Option<Result<Body, String>>) -> Beside {
        let rules = toml::from_str::<Rules>(rules).expect("rules");
        let one = |(field, _): &(String, _)| Shown { field: field.clone(), rule: "r".into(), kind: "text".into() };
        let shown: Vec<Shown> = rules.fields.0.iter().map(one).collect();
        let extractor = rules.compile().expect("rules");
        let broke = body(broke, content_type);
        let rules = Some((&extractor, shown.as_slice()));
        compare((rules, Then { rules, is_own: true }), &broke, worked.as_ref(), Wanted::All, &CancellationToken::new())
    }

    #[test]
    fn fields_say_what_they_find_on_both_pages() {
        let fields = beside(Some(WORKED)).fields;
        assert_eq!((fields[0].broke.value.as_deref(), fields[0].help.as_ref()), (Some("Board"), None));
        let price = &fields[1];
        assert_eq!((price.broke.matches, price.broke.miss.as_deref()), (0, Some("SelectorNotFound")));
        assert_eq!(price.worked.as_ref().and_then(|found| found.value.as_deref()), Some("70.50"));
        assert_eq!(price.help.as_ref().expect("help").candidates[0].value, "89.95");
    }

    #[test]
    fn hunks_near_a_rule_that_finds_nothing_come_first() {
        let Beside { hunks, hunks_count, .. } = beside(Some(WORKED));
        assert_eq!(hunks_count as usize, hunks.len());
        assert!(hunks.len() >= 2, "the banner is another: {hunks:#?}");
        assert_eq!(hunks[0].near, ["price"]);
        let gone: Vec<_> =
            hunks[0].rows.iter().filter(|row| row.broke.is_none()).filter_map(|row| row.worked.as_ref()).collect();
        assert!(gone.iter().any(|line| line.text.contains("price-tag-main") && line.fields == ["price"]), "{gone:?}");
    }

    #[test]
    fn without_a_page_that_worked_there_is_nothing_beside_it() {
        let alone = beside(None);
        assert!(alone.hunks.is_empty() && alone.fields.iter().all(|field| field.worked.is_none()));
    }

    #[test]
    fn an_optional_field_that_is_absent_is_not_missed() {
        let fields = beside(Some(WORKED)).fields;
        assert_eq!((fields[2].broke.miss.as_ref(), fields[2].help.as_ref()), (None, None));
    }

    #[test]
    fn what_is_there_instead_is_told() {
        let found = &by(RULES, ("<h1 class=title>a</h1><b class=price-tag-main>Sold out</b>", None), None).fields[1];
        assert_eq!((found.broke.matches, found.broke.miss.as_deref()), (1, Some("WrongType")));
        assert_eq!(
            (found.broke.why.as_deref(), found.broke.instead.as_deref()),
            (Some("expected number"), Some("Sold out"))
        );
        assert_eq!(found.help.as_ref().expect("help").still, Some((".price-tag-main".to_owned(), 1)));
    }

    #[test]
    fn json_is_compared_by_its_lines() {
        let (json, pointers) =
            (Some("application/json"), "format = \"json\"\n[fields]\nprice = { pointer = \"/price\" }");
        let worked = Some(Ok(body("{\"id\": 1, \"price\": 5, \"name\": \"a\"}", json)));
        let compared = by(pointers, ("{\"id\": 2, \"cost\": 5, \"name\": \"b\"}", json), worked);
        let told = |row: &HunkRow| {
            let text = |line: &Option<HunkLine>| line.as_ref().map(|line| line.text.clone()).unwrap_or_default();
            (text(&row.broke), text(&row.worked))
        };
        let rows: Vec<_> = compared.hunks[0]
            .rows
            .iter()
            .map(told)
            .filter(|(broke, worked)| broke.is_empty() != worked.is_empty())
            .collect();
        assert_eq!(rows, [("\"cost\": 5".to_owned(), String::new()), (String::new(), "\"price\": 5".to_owned())]);
        assert_eq!(compared.no_diff, None);
    }

    #[test]
    fn why_there_is_nothing_to_tell_of_the_difference_is_told() {
        let lost = by(RULES, (BROKE, None), Some(Err("it is lost".to_owned())));
        assert_eq!(lost.no_diff.as_deref(), Some("the page that worked cannot be read: it is lost"));
        let compare = |broke: &Body, worked: &str, kind: &str| {
            let worked = Ok(body(worked, Some(kind)));
            let none = (None, Then { rules: None, is_own: false });
            super::compare(none, broke, Some(&worked), Wanted::All, &CancellationToken::new()).no_diff
        };
        let json = body("{}", Some("application/json"));
        assert_eq!(
            compare(&json, "<p>", "text/html").as_deref(),
            Some("the page that broke is JSON, the one that worked is HTML")
        );
        assert!(
            compare(&body("a", Some("text/plain")), "b", "text/plain").is_some_and(|why| why.contains("plain text"))
        );
    }

    #[test]
    fn what_has_no_looks_says_so() {
        let stop = CancellationToken::new();
        for (text, kind, says) in [
            ("{}", "application/json", "it is JSON"),
            ("a", "text/plain", "it is text"),
            ("<a/>", "application/xml", "it is XML"),
            ("{", "application/json", "truncated JSON"),
        ] {
            let why = rendered(None, &body(text, Some(kind)), &stop).expect_err("it is no page");
            assert!(why.contains(says), "{why}");
        }
        assert!(rendered(None, &body("<p>x", None), &stop).is_ok_and(|page| page.contains("<p>x</p>")));
        let deep = rendered(None, &body(&"<div>".repeat(2_000), None), &stop);
        assert!(deep.is_err_and(|why| why.contains("nested more than 512 deep")));
    }
}
