//! Two pages beside each other, read by the same rules.

use std::collections::{BTreeSet, HashMap};

use redrive_core::diff::{Edit, diff};
use scraper::Html;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::lines::{Lines, NodeId};
use super::safe;
use crate::handler::http::document::{Document, Format};
use crate::handler::http::extract::{Extractor, Help, Reading};

/// Lines around what differs.
const AROUND: usize = 2;

/// The most hunks, and the most lines of one, that are told.
const HUNKS_MAX: usize = 60;
const HUNK_LINES_MAX: usize = 120;

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
    /// And on the one that worked, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worked: Option<Found>,
    /// What could be meant, where it finds nothing on the page that broke.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub help: Option<Help>,
}

/// A line of one of the pages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HunkLine {
    /// Its number, from 1.
    pub number: u64,
    /// How deep it is.
    pub depth: u64,
    /// Its text.
    pub text: String,
    /// The fields whose rules find it.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub fields: Vec<String>,
}

/// A line of either page, or of both beside each other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HunkRow {
    /// Of the page that broke.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub broke: Option<HunkLine>,
    /// Of the page that worked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worked: Option<HunkLine>,
}

/// Lines that differ, with some around them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hunk {
    /// The fields that are missed and whose rules find something here on the page that worked.
    pub near: Vec<String>,
    /// The lines.
    pub rows: Vec<HunkRow>,
    /// Whether there are more.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub is_cut: bool,
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
    /// Why a page cannot be read, if one cannot.
    pub(super) broken: Option<String>,
}

/// What is wanted of pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    /// What rules find.
    Fields,
    /// That, and what differs.
    All,
}

/// Compares two pages. Runs on a thread of its own: a page may keep it busy until it is told to stop.
pub(super) fn compare(
    rules: Option<(&Extractor, &[Shown])>,
    (broke, worked): (&str, Option<&str>),
    (content_type, wanted): (Option<&str>, Wanted),
    stop: &CancellationToken,
) -> Beside {
    let format = rules.map_or_else(|| guessed(content_type), |(extractor, _)| extractor.format(content_type));
    let parse = |text| Document::parse_until(format, text, stop);
    let broke = match parse(broke) {
        Ok(document) => document,
        Err(error) => return Beside { broken: Some(error.to_string()), ..Beside::default() },
    };
    let worked = worked.and_then(|text| parse(text).ok());
    let fields =
        rules.map_or_else(Vec::new, |(extractor, shown)| fields(extractor, shown, (&broke, worked.as_ref()), stop));
    let mut beside = Beside { fields, ..Beside::default() };
    if let (Wanted::All, Document::Page(broke), Some(Document::Page(worked))) = (wanted, &broke, &worked) {
        let missed: BTreeSet<&str> =
            beside.fields.iter().filter(|field| field.broke.miss.is_some()).map(|field| field.field.as_str()).collect();
        let places =
            |page: &Html| rules.map_or_else(HashMap::new, |(extractor, _)| places(extractor, page, &beside.fields));
        let (hunks, count) = hunks((broke, &places(broke)), (worked, &places(worked)), &missed);
        (beside.hunks, beside.hunks_count) = (hunks, count);
    }
    beside
}

/// A page made harmless, with what rules find outlined; nothing if it is none.
pub(super) fn rendered(
    rules: Option<(&Extractor, &[Shown])>,
    text: &str,
    content_type: Option<&str>,
    stop: &CancellationToken,
) -> Option<String> {
    let format = rules.map_or_else(|| guessed(content_type), |(extractor, _)| extractor.format(content_type));
    let Ok(Document::Page(page)) = Document::parse_until(format, text, stop) else { return None };
    let mut outlined = HashMap::new();
    if let Some((extractor, shown)) = rules {
        for Shown { field, .. } in shown {
            for element in extractor.elements(&page, field).into_iter().take(20) {
                outlined.entry(element.id()).or_insert_with(|| field.clone());
            }
        }
    }
    Some(safe::harmless(&page, &outlined))
}

/// The fields that two extractors read differently; nothing if the first gives no record.
pub(super) fn differ(
    (before, after): (&Extractor, &Extractor),
    text: &str,
    content_type: Option<&str>,
    stop: &CancellationToken,
) -> Option<Vec<String>> {
    let document = Document::parse_until(before.format(content_type), text, stop).ok()?;
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
    extractor: &Extractor,
    shown: &[Shown],
    (broke, worked): (&Document<'_>, Option<&Document<'_>>),
    stop: &CancellationToken,
) -> Vec<ComparedField> {
    let of_broke = extractor.inspect(broke, stop);
    let of_worked = worked.map(|document| extractor.inspect(document, stop));
    let on_worked = |field: &str| of_worked.as_ref()?.iter().find(|reading| reading.field == field);
    of_broke
        .into_iter()
        .map(|reading| {
            let known = shown.iter().find(|known| known.field == reading.field);
            let (rule, kind) = known.map(|known| (known.rule.clone(), known.kind.clone())).unwrap_or_default();
            let worked = on_worked(&reading.field);
            let help = match (reading.value.is_none(), broke) {
                (true, Document::Page(page)) => {
                    let value = worked.and_then(|reading| reading.value.as_ref());
                    Some(extractor.help(page, &reading.field, value, stop))
                }
                _ => None,
            };
            let worked = worked.map(found);
            ComparedField { field: reading.field.clone(), rule, kind, broke: found(&reading), worked, help }
        })
        .collect()
}

fn found(reading: &Reading) -> Found {
    let miss = reading.misses.first().map(|miss| miss.code().to_owned());
    Found { matches: reading.matches as u64, value: reading.value.as_ref().map(told), miss }
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

type Side<'a> = (&'a Html, &'a HashMap<NodeId, Vec<String>>);

/// What differs between two pages: hunks near rules that find nothing any more first; and how many there are in all.
fn hunks(broke: Side<'_>, worked: Side<'_>, missed: &BTreeSet<&str>) -> (Vec<Hunk>, u64) {
    let (first, second) = (Lines::of(broke.0), Lines::of(worked.0));
    let keys = |lines: &Lines| {
        lines.lines.iter().map(|line| format!("{} {}", line.depth.min(60), line.key)).collect::<Vec<_>>()
    };
    let (a, b) = (keys(&first), keys(&second));
    let (a, b): (Vec<&str>, Vec<&str>) =
        (a.iter().map(String::as_str).collect(), b.iter().map(String::as_str).collect());
    let edits = diff(&a, &b);
    let marks = |lines: &Lines, places: &HashMap<NodeId, Vec<String>>| -> HashMap<usize, Vec<String>> {
        places.iter().filter_map(|(node, fields)| Some((*lines.places.get(node)?, fields.clone()))).collect()
    };
    let (marks_a, marks_b) = (marks(&first, broke.1), marks(&second, worked.1));
    let line = |lines: &Lines, at: usize, marks: &HashMap<usize, Vec<String>>| {
        let known = &lines.lines[at];
        let fields = marks.get(&at).cloned().unwrap_or_default();
        HunkLine { number: at as u64 + 1, depth: known.depth as u64, text: known.text.clone(), fields }
    };
    let row = |edit: &Edit| match *edit {
        Edit::Same(x, y) => {
            HunkRow { broke: Some(line(&first, x, &marks_a)), worked: Some(line(&second, y, &marks_b)) }
        }
        Edit::First(x) => HunkRow { broke: Some(line(&first, x, &marks_a)), worked: None },
        Edit::Second(y) => HunkRow { broke: None, worked: Some(line(&second, y, &marks_b)) },
    };
    let mut hunks: Vec<Hunk> = ranges(&edits)
        .into_iter()
        .map(|range| {
            let (cut, is_cut) =
                (range.start..range.end.min(range.start + HUNK_LINES_MAX), range.len() > HUNK_LINES_MAX);
            let rows: Vec<HunkRow> = edits[cut].iter().map(row).collect();
            let fields = rows.iter().filter(|row| row.broke.is_none()).filter_map(|row| row.worked.as_ref());
            let fields: BTreeSet<&String> = fields.flat_map(|line| &line.fields).collect();
            let near = fields.into_iter().filter(|field| missed.contains(field.as_str())).cloned().collect();
            Hunk { near, rows, is_cut }
        })
        .collect();
    let count = hunks.len() as u64;
    hunks.sort_by_key(|hunk| hunk.near.is_empty());
    hunks.truncate(HUNKS_MAX);
    (hunks, count)
}

/// The places of edits that belong together: those that differ, with some around them.
fn ranges(edits: &[Edit]) -> Vec<std::ops::Range<usize>> {
    let mut ranges: Vec<std::ops::Range<usize>> = Vec::new();
    for (at, edit) in edits.iter().enumerate() {
        if matches!(edit, Edit::Same(..)) {
            continue;
        }
        let range = at.saturating_sub(AROUND)..(at + AROUND + 1).min(edits.len());
        match ranges.last_mut() {
            Some(last) if last.end >= range.start => last.end = range.end,
            _ => ranges.push(range),
        }
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::handler::http::extract::Rules;

    const WORKED: &str = "<body><h1 class=title>Lamp</h1><i>1</i><i>2</i><i>3</i><i>4</i><i>5</i><ul class=tags><li>a<li>b</ul><p class=description>Nice</p>\
        <p class=price-box><span class=currency>€</span><span class=price-tag-main>70.50</span></p><button>Buy</button>";
    const BROKE: &str = "<body><div class=banner>New!</div><h1 class=title>Board</h1><i>1</i><i>2</i><i>3</i><i>4</i><i>5</i><ul class=tags><li>c<li>d</ul><div class=price><data value=89.95>€ 89.95</data></div>\
        <p class=description>Good</p><button>Buy</button>";

    fn beside(worked: Option<&str>) -> Beside {
        let rules =
            "[fields]\ntitle = \"h1.title::text\"\nprice = { select = \".price-tag-main::text\", type = \"number\" }";
        let extractor = toml::from_str::<Rules>(rules).expect("rules").compile().expect("rules");
        let shown =
            ["title", "price"].map(|field| Shown { field: field.into(), rule: "r".into(), kind: "text".into() });
        compare(Some((&extractor, &shown)), (BROKE, worked), (None, Wanted::All), &CancellationToken::new())
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
}
