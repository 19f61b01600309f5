//! Reading files of dead letters: what `dead export` wrote, or what other programs did; a JSON array, or an object on each line.
//! One letter is in memory at a time, and none is longer than a line may be.

use std::cell::Cell;
use std::fmt;
use std::io::{self, BufRead, Read};

use redrive_core::dead::DeadLetter;
use redrive_core::dead::foreign::{ForeignLetter, Reading};
use redrive_core::jobs::{Input, InputLimits};
use redrive_core::time::Timestamp;
use serde::de::{Deserializer as _, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::lines::{LINE_BYTES_MAX, Lines, without_place};

/// A letter as it is written in a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Written {
    /// On a line of its own.
    Text(String),
    /// As a value of an array.
    Value(Value),
}

impl Written {
    /// How long it is, in bytes, about.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Value(value) => value.to_string().len(),
        }
    }
}

/// A letter with the line on which it stands, or ends; or why it cannot be read.
pub type WrittenLetter = (u64, Result<Written, String>);

/// How letters of a file are read.
pub(super) struct Reader {
    /// How those of other programs are read; without it they are refused.
    pub(super) foreign: Option<Reading>,
    /// The longest inputs.
    pub(super) limits: InputLimits,
    /// The time.
    pub(super) now: Timestamp,
}

impl Reader {
    /// The letter that is written; why it is none, if it is none.
    pub(super) fn letter_of(&self, written: Written) -> Result<ForeignLetter, String> {
        let read = match written {
            Written::Text(text) => self.letter_on(text.as_bytes()),
            Written::Value(value) => self.letter(value),
        }?;
        let letter = &read.letter;
        match self.limits.check(&letter.pipeline, &letter.input) {
            Ok(()) => Ok(read),
            Err(why) => Err(format!("{}: {why}", letter.key.clone().unwrap_or_else(|| letter.id.to_string()))),
        }
    }

    /// The letter on a line.
    fn letter_on(&self, line: &[u8]) -> Result<ForeignLetter, String> {
        let object = object(serde_json::from_slice(line).map_err(|error| without_place(&error))?)?;
        match self.is_foreign(&object) {
            Some(reading) => reading.read(object, self.now),
            // Read from the text, so that what is wrong has its column.
            None => exported(serde_json::from_slice(line).map_err(|error| without_place(&error))),
        }
    }

    /// The letter that a value of an array is.
    fn letter(&self, value: Value) -> Result<ForeignLetter, String> {
        let object = object(value)?;
        match self.is_foreign(&object) {
            Some(reading) => reading.read(object, self.now),
            None => exported(serde_json::from_value(Value::Object(object)).map_err(|error| error.to_string())),
        }
    }

    /// How an object is read, if it is not of an export.
    fn is_foreign(&self, object: &Input) -> Option<&Reading> {
        let exported = ["id", "failures", "died_at"].iter().all(|name| object.contains_key(*name));
        self.foreign.as_ref().filter(|_| !exported)
    }
}

/// Reads letters as they are written, one by one, until `take` wants no more.
pub(super) fn read(mut from: impl BufRead, mut take: impl FnMut(WrittenLetter) -> bool) -> io::Result<()> {
    match first(&mut from)? {
        Some(b'[') => read_array(from, &mut take),
        _ => read_lines(from, &mut take),
    }
}

fn read_lines(from: impl BufRead, take: &mut impl FnMut(WrittenLetter) -> bool) -> io::Result<()> {
    let mut lines = Lines::of(from);
    while let Some((number, line)) = lines.next()? {
        let written = match line.map(<[u8]>::trim_ascii) {
            Ok([]) => continue,
            Ok(line) => text(line),
            Err(why) => Err(why),
        };
        if !take((number, written)) {
            break;
        }
    }
    Ok(())
}

/// A line as text. One that is none is no JSON, either: that says where.
fn text(line: &[u8]) -> Result<Written, String> {
    std::str::from_utf8(line).map(|text| Written::Text(text.to_owned())).map_err(|error| {
        let wrong = serde_json::from_slice::<Value>(line).err();
        wrong.map_or_else(|| error.to_string(), |wrong| without_place(&wrong))
    })
}

fn read_array(from: impl BufRead, take: &mut impl FnMut(WrittenLetter) -> bool) -> io::Result<()> {
    let place = Place::default();
    let mut json = serde_json::Deserializer::from_reader(Counted { inner: from, place: &place });
    let each = |value: Value, line: u64| take((line, Ok(Written::Value(value))));
    let taken = json.deserialize_seq(Items { each, place: &place });
    let read = taken.and_then(|all| if all { json.end() } else { Ok(()) });
    match read {
        Ok(()) => Ok(()),
        Err(error) if error.is_io() => Err(error.into()),
        Err(error) => {
            let line = error.line() as u64;
            take((line, Err(format!("{}; nothing after it can be read", without_place(&error)))));
            Ok(())
        }
    }
}

fn object(value: Value) -> Result<Input, String> {
    match value {
        Value::Object(object) => Ok(object),
        _ => Err("expected a JSON object".to_owned()),
    }
}

fn exported(letter: Result<DeadLetter, String>) -> Result<ForeignLetter, String> {
    letter.map(|letter| ForeignLetter { letter, dated: true, masked: false })
}

/// The first byte that is not white space, as far as it can be seen; only the mark that some put before their text is taken.
fn first(from: &mut impl BufRead) -> io::Result<Option<u8>> {
    if from.fill_buf()?.starts_with(MARK) {
        from.consume(MARK.len());
    }
    Ok(from.fill_buf()?.iter().copied().find(|byte| !byte.is_ascii_whitespace()))
}

/// What some programs put before text in UTF-8.
const MARK: &[u8] = &[0xef, 0xbb, 0xbf];

/// Where reading an array is: the line, and how many bytes were read since the last value.
#[derive(Default)]
struct Place {
    line: Cell<u64>,
    since: Cell<usize>,
}

/// Counts lines, and refuses to go on when one value is too long.
struct Counted<'p, R> {
    inner: R,
    place: &'p Place,
}

impl<R: Read> Read for Counted<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        let lines = buffer[..read].iter().filter(|byte| **byte == b'\n').count();
        self.place.line.set(self.place.line.get() + lines as u64);
        self.place.since.set(self.place.since.get() + read);
        if self.place.since.get() > LINE_BYTES_MAX {
            return Err(io::Error::other(format!(
                "line {}: a letter is longer than {LINE_BYTES_MAX} bytes",
                self.place.line.get() + 1
            )));
        }
        Ok(read)
    }
}

/// Hands over the values of an array one by one; says whether all were taken.
struct Items<'p, F> {
    each: F,
    place: &'p Place,
}

impl<'de, F: FnMut(Value, u64) -> bool> Visitor<'de> for Items<'_, F> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array of dead letters")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut items: A) -> Result<bool, A::Error> {
        while let Some(value) = items.next_element()? {
            self.place.since.set(0);
            if !(self.each)(value, self.place.line.get() + 1) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: impl AsRef<[u8]>) -> Vec<(u64, Result<String, String>)> {
        let pipeline = "p".parse().expect("a name");
        let foreign = Reading {
            pipeline,
            named: Vec::new(),
            target: None,
            key: Vec::new(),
            rules: Vec::new(),
            codes: Vec::new(),
            secrets: Default::default(),
            keep_secrets: false,
            told: Default::default(),
        };
        let reader = Reader { foreign: Some(foreign), limits: InputLimits::default(), now: Timestamp::from_millis(0) };
        let mut found = Vec::new();
        let take = |(line, written): WrittenLetter| {
            let letter = written.and_then(|written| reader.letter_of(written));
            found.push((line, letter.map(|letter| letter.letter.message)));
            true
        };
        super::read(text.as_ref(), take).expect("read");
        found
    }

    #[test]
    fn arrays_and_lines_are_told_apart_by_how_they_begin() {
        let said = |line: u64, text: &str| (line, Ok(text.to_owned()));
        assert_eq!(read(r#"[{"error":"a"},{"error":"b"}]"#), [said(1, "a"), said(1, "b")]);
        assert_eq!(read("\n  [\n{\"error\":\"a\"},\n{\n\"error\":\"b\"}\n]\n"), [said(3, "a"), said(5, "b")]);
        assert_eq!(read("{\"error\":\"a\"}\n\n{\"error\":\"b\"}"), [said(1, "a"), said(3, "b")]);
        assert_eq!(read("\u{feff}[{\"error\":\"a\"}]"), [said(1, "a")]);
        assert!(read("").is_empty() && read("[]").is_empty() && read(" \n \n").is_empty());
    }

    #[test]
    fn what_is_broken_is_told_with_its_place() {
        let broken = read("{\"error\":\"a\"}\n{\"error\":\n{\"error\":\"\\ud800\"}\n7\n{\"error\":\"b\"}\n");
        let lines: Vec<_> = broken.iter().map(|(line, letter)| (*line, letter.is_ok())).collect();
        assert_eq!(lines, [(1, true), (2, false), (3, false), (4, false), (5, true)]);
        let broken = read("[{\"error\":\"a\"},\n {\"error\" \"b\"},\n {\"error\":\"c\"}]");
        assert_eq!(broken.len(), 2, "{broken:?}");
        let (line, Err(why)) = &broken[1] else { panic!("{broken:?}") };
        assert!(*line == 2 && why.contains("column 11") && why.contains("nothing after it can be read"), "{why}");
        let cut_off = read("[{\"error\":\"a\"},{\"err");
        assert!(cut_off[0].1.is_ok() && cut_off[1].1.is_err(), "{cut_off:?}");
        assert!(read("[{\"error\":\"a\"}] and more")[1].1.is_err());
        assert!(read(b"[{\"error\":\"\xff\xfe\"}]")[0].1.is_err(), "not UTF-8");
        assert!(read("[".repeat(100_000))[0].1.is_err(), "not without end");
    }
}
