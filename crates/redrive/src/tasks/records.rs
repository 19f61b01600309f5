//! From bytes to tasks, one at a time, in whatever form they are written.

use std::io::{self, BufRead, Chain, Cursor, Read};

use redrive_core::jobs::Input;
use redrive_core::tasks::kind;
use serde_json::Value;

use super::TaskFormat;
use super::array::Elements;
use super::table::Rows;
use crate::lines::{Lines, without_place};

/// White space before the first character, in bytes, that is read to see it.
const HEAD_BYTES_MAX: usize = 64 * 1024;

/// A record that was read.
pub(super) struct Record {
    /// The line on which it begins, from 1.
    pub(super) line: u64,
    /// Its size in bytes, about.
    pub(super) bytes: usize,
    /// Whether its end was seen, and not just that of the bytes.
    pub(super) is_whole: bool,
    /// The task; nothing for an empty line or a comment; or what is wrong with it.
    pub(super) task: Result<Option<Input>, String>,
}

/// Records, one after the other.
pub(super) enum Records<R> {
    /// A JSON object per line.
    Json(Lines<R>),
    /// A URL, or any text, per line.
    Plain(Lines<R>),
    /// Rows under a header.
    Table(Box<Rows<R>>),
    /// The elements of one JSON array.
    Array(Elements<R>),
}

/// Bytes of which the first were looked at.
type LookedAt<R> = Chain<Cursor<Vec<u8>>, R>;

impl<R: BufRead> Records<LookedAt<R>> {
    /// The records of bytes, by their form, or else by the name of their file, or else by their first character.
    pub(super) fn of(mut reader: R, format: TaskFormat, extension: &str) -> io::Result<Self> {
        let mut head = Vec::new();
        let format = match (format, extension) {
            (TaskFormat::Auto, "csv") => TaskFormat::Csv,
            (TaskFormat::Auto, "tsv" | "tab") => TaskFormat::Tsv,
            (TaskFormat::Auto, _) => match (first_character(&mut reader, &mut head)?, extension) {
                (Some(b'['), _) => TaskFormat::Json,
                (Some(b'{'), _) | (_, "jsonl" | "ndjson" | "json") => TaskFormat::JsonLines,
                _ => TaskFormat::Lines,
            },
            (TaskFormat::JsonLines, _) if first_character(&mut reader, &mut head)? == Some(b'[') => TaskFormat::Json,
            (format, _) => format,
        };
        let reader = Cursor::new(head).chain(reader);
        Ok(match format {
            TaskFormat::Auto | TaskFormat::JsonLines => Self::Json(Lines::of(reader)),
            TaskFormat::Lines => Self::Plain(Lines::of(reader)),
            TaskFormat::Csv => Self::Table(Box::new(Rows::of(reader, None))),
            TaskFormat::Tsv => Self::Table(Box::new(Rows::of(reader, Some(b'\t')))),
            TaskFormat::Json => Self::Array(Elements::of(reader)),
        })
    }
}

impl<R: BufRead> Records<R> {
    /// The next record; nothing after the last.
    pub(super) fn next(&mut self) -> io::Result<Option<Record>> {
        match self {
            Self::Json(lines) => Ok(next_line(lines, |text| object(text).map(Some))?.map(closed)),
            Self::Plain(lines) => next_line(lines, |text| Ok(plain(text))),
            Self::Table(rows) => rows.next(),
            Self::Array(elements) => elements.next(),
        }
    }
}

/// A record of JSON: an object that closes is whole, whether its line has an end or not.
fn closed(record: Record) -> Record {
    Record { is_whole: record.is_whole || matches!(record.task, Ok(Some(_))), ..record }
}

fn next_line<R: BufRead>(
    lines: &mut Lines<R>,
    task: impl Fn(&str) -> Result<Option<Input>, String>,
) -> io::Result<Option<Record>> {
    let Some((line, bytes)) = lines.next()? else { return Ok(None) };
    let (length, is_whole) = bytes.as_ref().map_or((0, true), |bytes| (bytes.len(), bytes.ends_with(b"\n")));
    let text = bytes.and_then(utf8);
    let task = text.and_then(|text| match without_mark(text, line).trim() {
        "" => Ok(None),
        text => task(text),
    });
    Ok(Some(Record { line, bytes: length, is_whole, task }))
}

/// Bytes as text.
pub(super) fn utf8(bytes: &[u8]) -> Result<&str, String> {
    std::str::from_utf8(bytes).map_err(|error| format!("not UTF-8 at byte {}", error.valid_up_to() + 1))
}

/// The text of the first line without the mark that some programs put before everything.
pub(super) fn without_mark(text: &str, line: u64) -> &str {
    if line == 1 { text.trim_start_matches('\u{feff}') } else { text }
}

/// A task of JSON text.
pub(super) fn object(text: &str) -> Result<Input, String> {
    match serde_json::from_str(text) {
        Ok(Value::Object(input)) => Ok(input),
        Ok(other) => Err(format!("expected a JSON object, found {}", kind(&other))),
        Err(error) => Err(format!("not JSON: {}", without_place(&error))),
    }
}

/// A task of a plain line; nothing for a comment.
fn plain(text: &str) -> Option<Input> {
    (!text.starts_with('#')).then(|| Input::from_iter([("url".to_owned(), text.into())]))
}

/// The first character that is not white space, if it comes soon; what was read is put into `head`.
fn first_character(reader: &mut impl BufRead, head: &mut Vec<u8>) -> io::Result<Option<u8>> {
    let mark = "\u{feff}".as_bytes();
    while head.len() < HEAD_BYTES_MAX {
        let Some(byte) = reader.fill_buf()?.first().copied() else { return Ok(None) };
        reader.consume(1);
        head.push(byte);
        if !byte.is_ascii_whitespace() && !mark.starts_with(head) {
            return Ok(Some(byte));
        }
    }
    Ok(None)
}
