//! What the lists of every backend need: cursors, patterns for text, beginnings of hashes, JSON that is left out where it says nothing.

use std::cmp::Reverse;

use redrive_core::causes::CauseSort;
use redrive_core::dead::{DeadLetter, LetterSort};
use redrive_core::jobs::json_bytes;
use redrive_core::replays::TriedDetails;
use redrive_core::tokens::PipelinePattern;

use crate::contract::{PAGE_BYTES_MAX, SearchedDead};
use crate::error::StoreError;

/// What cursors of letters begin with, the oldest of which come first.
const OLDEST_FIRST: char = 'o';

/// The time and the row that a cursor stands for.
pub(crate) fn keyset(cursor: &str) -> Result<(i64, i64), StoreError> {
    let read = || {
        let (at, row) = cursor.rsplit_once('-')?;
        Some((at.parse().ok()?, row.parse().ok()?))
    };
    read().ok_or_else(|| StoreError::InvalidCursor(cursor.to_owned()))
}

/// The condition that a column has the name of a pipeline that one of the patterns means.
pub(crate) fn within(column: &str, patterns: &[PipelinePattern], mut bind: impl FnMut(String) -> String) -> String {
    let each = patterns.iter().map(|pattern| match pattern.beginning() {
        Some(beginning) => format!("substr({column}, 1, {}) = {}", beginning.len(), bind(beginning.to_owned())),
        None => format!("{column} = {}", bind(pattern.to_string())),
    });
    format!("({})", each.collect::<Vec<_>>().join(" OR "))
}

/// The order of causes, by the columns that both backends have.
pub(crate) const fn cause_order(sort: CauseSort) -> &'static str {
    match sort {
        CauseSort::Dead => "sum(k.dead) DESC, max(k.last_seen) DESC, c.id DESC",
        CauseSort::Last => "max(k.last_seen) DESC, c.id DESC",
        CauseSort::First => "min(k.first_seen) DESC, c.id DESC",
    }
}

/// Where a list of letters goes on: after the one that died then and has that number. It says in which order, so that it is refused in the
/// other one.
pub(crate) fn letter_cursor((at, seq): (i64, i64), sort: LetterSort) -> String {
    match sort {
        LetterSort::Newest => format!("{at}-{seq}"),
        LetterSort::Oldest => format!("{OLDEST_FIRST}{at}-{seq}"),
    }
}

/// The letter that a cursor of a list in this order stands for.
pub(crate) fn letter_after(cursor: &str, sort: LetterSort) -> Result<(i64, i64), StoreError> {
    match (sort, cursor.strip_prefix(OLDEST_FIRST)) {
        (LetterSort::Newest, None) => keyset(cursor),
        (LetterSort::Oldest, Some(place)) => keyset(place),
        _ => Err(StoreError::InvalidCursor(cursor.to_owned())),
    }
}

/// The order of letters, by when they died and their numbers.
pub(crate) const fn letter_order(sort: LetterSort) -> &'static str {
    match sort {
        LetterSort::Newest => "d.died_at DESC, d.seq DESC",
        LetterSort::Oldest => "d.died_at, d.seq",
    }
}

/// Of the first letters of several causes' keys, the first of all: so many, by when they died and their numbers.
pub(crate) fn first_letters<T>(found: &mut Vec<T>, key: impl Fn(&T) -> (i64, i64), (sort, limit): (LetterSort, u32)) {
    match sort {
        LetterSort::Newest => found.sort_unstable_by_key(|one| Reverse(key(one))),
        LetterSort::Oldest => found.sort_unstable_by_key(key),
    }
    found.truncate(limit as usize);
}

/// What came of looking through the letters with these keys, in whose order they are. Who found as many as wanted, or
/// as fit on a page, has looked at no more than those up to the last one.
pub(crate) fn searched(
    found: Vec<(i64, DeadLetter)>,
    keys: &[(i64, i64)],
    (limit, look_at, sort): (u32, u32, LetterSort),
) -> SearchedDead {
    let last = found.last().map(|(seq, letter)| (letter.died_at.as_millis(), *seq));
    let bytes: u64 = found.iter().map(|(_, letter)| json_bytes(letter)).sum();
    let stopped_at = last.filter(|_| found.len() >= limit as usize || bytes > PAGE_BYTES_MAX);
    let looked_at =
        stopped_at.and_then(|last| keys.iter().position(|key| *key == last)).map_or(keys.len(), |at| at + 1);
    let is_end = looked_at == keys.len() && keys.len() < look_at as usize;
    let next = keys[..looked_at].last().filter(|_| !is_end).map(|key| letter_cursor(*key, sort));
    SearchedDead { letters: found.into_iter().map(|(_, letter)| letter).collect(), looked_at: looked_at as u64, next }
}

/// The row that a cursor stands for.
pub(crate) fn row(cursor: Option<&str>) -> Result<Option<i64>, StoreError> {
    let row = |cursor: &str| cursor.parse().map_err(|_| StoreError::InvalidCursor(cursor.to_owned()));
    cursor.map(row).transpose()
}

/// What is known of a letter that was tried, as it is kept; nothing if there is nothing.
pub(crate) fn tried_details(details: &TriedDetails) -> serde_json::Result<Option<String>> {
    (!details.is_empty()).then(|| serde_json::to_string(details)).transpose()
}

/// The texts of a list; none if it is something else.
pub(crate) fn texts(list: Option<serde_json::Value>) -> Vec<String> {
    list.and_then(|list| serde_json::from_value(list).ok()).unwrap_or_default()
}

/// A `LIKE` pattern that finds the text itself.
pub(crate) fn like(text: &str) -> String {
    // SQLite reads a pattern up to its first zero character: what came after it would not count, and nothing would be everything.
    let escaped = text.replace('\0', "\u{fffd}").replace('\\', "\\\\").replace('%', "\\%").replace('_', "\\_");
    format!("%{escaped}%")
}

/// The bytes that whole pairs of hexadecimal digits are: a lower bound of every hash that begins with the digits.
pub(crate) fn bytes_of(digits: &str) -> Vec<u8> {
    let pairs = digits.as_bytes().chunks(2).map(|pair| match pair {
        [one] => [*one, b'0'],
        pair => [pair[0], pair[1]],
    });
    let byte = |pair: [u8; 2]| u8::from_str_radix(std::str::from_utf8(&pair).ok()?, 16).ok();
    pairs.map_while(byte).collect()
}
