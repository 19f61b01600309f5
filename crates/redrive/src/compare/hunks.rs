//! What differs between two pages that were made lines of: hunks near rules that find nothing any more first.

use std::collections::{BTreeSet, HashMap};

use redrive_core::diff::{Edit, diff};
use serde::{Deserialize, Serialize};

use super::lines::{Lines, NodeId};

/// Lines around what differs.
const AROUND: usize = 2;

/// The most hunks, and the most lines of one, that are told.
const HUNKS_MAX: usize = 60;
const HUNK_LINES_MAX: usize = 120;

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

/// A page as lines, and the fields that find each of its elements.
pub(super) type Side = (Lines, HashMap<NodeId, Vec<String>>);

/// What differs between the page that broke and the one that worked, and how many hunks there are in all. `missed` are fields that
/// find nothing any more.
pub(super) fn hunks((first, of_first): &Side, (second, of_second): &Side, missed: &BTreeSet<&str>) -> (Vec<Hunk>, u64) {
    let keys = |lines: &Lines| {
        lines.lines.iter().map(|line| format!("{} {}", line.depth.min(60), line.key)).collect::<Vec<_>>()
    };
    let (a, b) = (keys(first), keys(second));
    let (a, b): (Vec<&str>, Vec<&str>) =
        (a.iter().map(String::as_str).collect(), b.iter().map(String::as_str).collect());
    let edits = diff(&a, &b);
    let marks = |lines: &Lines, places: &HashMap<NodeId, Vec<String>>| -> HashMap<usize, Vec<String>> {
        places.iter().filter_map(|(node, fields)| Some((*lines.places.get(node)?, fields.clone()))).collect()
    };
    let (marks_a, marks_b) = (marks(first, of_first), marks(second, of_second));
    let line = |lines: &Lines, at: usize, marks: &HashMap<usize, Vec<String>>| {
        let known = &lines.lines[at];
        let fields = marks.get(&at).cloned().unwrap_or_default();
        HunkLine { number: at as u64 + 1, depth: known.depth as u64, text: known.text.clone(), fields }
    };
    let row = |edit: &Edit| match *edit {
        Edit::Same(x, y) => HunkRow { broke: Some(line(first, x, &marks_a)), worked: Some(line(second, y, &marks_b)) },
        Edit::First(x) => HunkRow { broke: Some(line(first, x, &marks_a)), worked: None },
        Edit::Second(y) => HunkRow { broke: None, worked: Some(line(second, y, &marks_b)) },
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
