//! The elements of one JSON array, one at a time: none is kept longer than until the next, so that the array may be of any size.

use std::io::{self, BufRead};

use super::records::{Record, object, utf8};
use crate::lines::LINE_BYTES_MAX;

/// The elements of an array.
pub(super) struct Elements<R> {
    reader: R,
    /// Lines that were begun.
    line: u64,
    element: u64,
    place: Place,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Before,
    Inside,
    After,
}

/// What ends an element.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Comma,
    Bracket,
    /// There is nothing more.
    Nothing,
}

impl<R: BufRead> Elements<R> {
    pub(super) fn of(reader: R) -> Self {
        Self { reader, line: 1, element: 0, place: Place::Before }
    }

    /// The next element; nothing after the last. What is wrong with the array itself is told in place of one.
    pub(super) fn next(&mut self) -> io::Result<Option<Record>> {
        if self.place == Place::Before {
            self.place = Place::Inside;
            // The mark that some programs put before everything is not white space to JSON.
            while let Some(byte) = self.byte()? {
                match byte {
                    b'[' => break,
                    0xef | 0xbb | 0xbf => {}
                    byte if byte.is_ascii_whitespace() => {}
                    _ => return Ok(self.broken("a JSON array is expected: it begins with [")),
                }
            }
        }
        if self.place == Place::After {
            while let Some(byte) = self.byte()? {
                if !byte.is_ascii_whitespace() {
                    return Ok(self.broken("something follows the array, and is left out"));
                }
            }
            return Ok(None);
        }
        self.element()
    }

    fn element(&mut self) -> io::Result<Option<Record>> {
        self.skip_white_space()?;
        let line = self.line;
        let (text, length, end) = self.read()?;
        if end != End::Comma {
            self.place = Place::After;
        }
        let is_empty = text.iter().all(u8::is_ascii_whitespace) && length == text.len();
        if is_empty && end == End::Bracket {
            // [] and [1,] end so.
            return self.next();
        }
        self.element += 1;
        let told = |why: String| format!("element {}: {why}", self.element);
        let task = match end {
            End::Nothing => Err("the array breaks off here: its ] is missing".to_owned()),
            _ if length > LINE_BYTES_MAX => Err(told(format!("longer than {LINE_BYTES_MAX} bytes"))),
            _ => utf8(&text).and_then(object).map(Some).map_err(told),
        };
        Ok(Some(Record { line, bytes: text.len(), is_whole: end != End::Nothing, task }))
    }

    /// An error that ends it.
    fn broken(&mut self, why: &str) -> Option<Record> {
        self.place = Place::After;
        // Nothing more is made of the rest.
        while self.byte().is_ok_and(|byte| byte.is_some()) {}
        Some(Record { line: self.line, bytes: 0, is_whole: true, task: Err(why.to_owned()) })
    }

    /// The text of an element, its length (of one that is too long, only the beginning is kept), and what ends it.
    fn read(&mut self) -> io::Result<(Vec<u8>, usize, End)> {
        let (mut text, mut length, mut depth) = (Vec::new(), 0_usize, 0_usize);
        let (mut in_string, mut escaped) = (false, false);
        while let Some(byte) = self.byte()? {
            match byte {
                _ if escaped => escaped = false,
                b'\\' if in_string => escaped = true,
                b'"' => in_string = !in_string,
                _ if in_string => {}
                b'{' | b'[' => depth += 1,
                b',' if depth == 0 => return Ok((text, length, End::Comma)),
                b']' if depth == 0 => return Ok((text, length, End::Bracket)),
                b'}' | b']' => depth = depth.saturating_sub(1),
                _ => {}
            }
            length += 1;
            if length <= LINE_BYTES_MAX {
                text.push(byte);
            } else {
                text = Vec::new();
            }
        }
        Ok((text, length, End::Nothing))
    }

    fn skip_white_space(&mut self) -> io::Result<()> {
        while self.reader.fill_buf()?.first().is_some_and(u8::is_ascii_whitespace) {
            self.byte()?;
        }
        Ok(())
    }

    fn byte(&mut self) -> io::Result<Option<u8>> {
        let byte = self.reader.fill_buf()?.first().copied();
        self.reader.consume(usize::from(byte.is_some()));
        self.line += u64::from(byte == Some(b'\n'));
        Ok(byte)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn elements(text: &str) -> Vec<(u64, Result<serde_json::Value, String>)> {
        let mut elements = Elements::of(text.as_bytes());
        let mut found = Vec::new();
        while let Some(record) = elements.next().expect("read") {
            found.push((record.line, record.task.map(|task| json!(task))));
        }
        found
    }

    #[test]
    fn elements_are_read_one_by_one_wherever_they_stand() {
        let text = "\u{feff} [\n  {\"a\": \"],{\\\"\"},\n  {\"b\": [1, {\"c\": 2}]}\n]\n";
        let expected = [(2, Ok(json!({"a": "],{\""}))), (3, Ok(json!({"b": [1, {"c": 2}]})))];
        assert_eq!(elements(text), expected);
        assert_eq!(elements("[]"), []);
        assert_eq!(elements("[{}, ]"), [(1, Ok(json!({})))]);
    }

    #[test]
    fn what_is_wrong_is_told_and_the_rest_taken() {
        let found = elements("[{\"a\": 1},\n 7,\n {\"b\":},\n {\"c\": 3}] x");
        assert_eq!(found.len(), 5);
        assert_eq!(found[1], (2, Err("element 2: expected a JSON object, found a number".to_owned())));
        assert!(found[2].1.as_ref().is_err_and(|why| why.starts_with("element 3: not JSON")), "{found:?}");
        assert_eq!(found[3], (4, Ok(json!({"c": 3}))));
        assert!(found[4].1.as_ref().is_err_and(|why| why.contains("follows")), "{found:?}");
    }

    #[test]
    fn an_array_that_breaks_off_is_told() {
        let found = elements("[{\"a\": 1}, {\"b\": ");
        assert_eq!(found[0], (1, Ok(json!({"a": 1}))));
        assert!(found[1].1.as_ref().is_err_and(|why| why.contains("breaks off")) && found.len() == 2, "{found:?}");
        assert!(elements("{}")[0].1.is_err());
    }
}
