//! Rows under a header: comma or tab separated values, with quotes. Every value stays text.

use std::collections::HashSet;
use std::io::{self, BufRead};

use redrive_core::jobs::Input;

use super::records::{Record, utf8, without_mark};
use crate::lines::LINE_BYTES_MAX;

/// The rows of a table.
pub(super) struct Rows<R> {
    reader: R,
    delimiter: Option<u8>,
    names: Option<Result<Vec<String>, String>>,
    /// Lines that were read.
    line: u64,
}

/// A row as it was read.
struct Row {
    line: u64,
    bytes: usize,
    is_whole: bool,
    fields: Result<Vec<String>, String>,
}

impl<R: BufRead> Rows<R> {
    /// Rows with a delimiter; without one, a comma, or a semicolon where the header has no comma.
    pub(super) fn of(reader: R, delimiter: Option<u8>) -> Self {
        Self { reader, delimiter, names: None, line: 0 }
    }

    /// The next row; nothing after the last. What is wrong with the header is told in place of the first.
    pub(super) fn next(&mut self) -> io::Result<Option<Record>> {
        if self.names.is_none() {
            let Some(header) = self.row()? else { return Ok(None) };
            let named = header.fields.and_then(named);
            let wrong = named.clone().err();
            self.names = Some(named);
            if let Some(why) = wrong {
                let Row { line, bytes, is_whole, .. } = header;
                return Ok(Some(Record { line, bytes, is_whole, task: Err(format!("the header is wrong: {why}")) }));
            }
        }
        // Without names nothing can be made of the rest.
        let Some(Ok(names)) = self.names.clone() else { return Ok(None) };
        Ok(self.row()?.map(|Row { line, bytes, is_whole, fields }| {
            let task = fields.and_then(|fields| task(&names, fields));
            Record { line, bytes, is_whole, task }
        }))
    }

    /// The next row that is not an empty line, nor a comment before the header.
    fn row(&mut self) -> io::Result<Option<Row>> {
        'rows: loop {
            let line = self.line + 1;
            let (mut text, mut too_long, mut quotes) = (Vec::new(), false, Quotes::Start);
            // A line that ends inside quotes goes on in the next.
            loop {
                let before = text.len();
                let read = self.read_line(&mut text, &mut too_long)?;
                if read == 0 || too_long {
                    break;
                }
                if self.names.is_none() && before == 0 && is_comment(&text, self.delimiter) {
                    continue 'rows;
                }
                let delimiter = *self.delimiter.get_or_insert_with(|| usual_delimiter(&text));
                quotes = text[before..].iter().fold(quotes, |quotes, byte| quotes.after(*byte, delimiter));
                if quotes != Quotes::Inside {
                    break;
                }
            }
            if text.is_empty() && !too_long {
                return Ok(None);
            }
            let (bytes, is_whole) = (text.len(), text.last() == Some(&b'\n') || too_long);
            if text.iter().all(|byte| matches!(byte, b'\r' | b'\n')) && !too_long {
                continue;
            }
            let fields = match too_long {
                true => Err(format!("longer than {LINE_BYTES_MAX} bytes: is a quote not closed?")),
                false if quotes == Quotes::Inside => Err("a quote that begins here is not closed".to_owned()),
                false => utf8(&text).map(|text| self.fields(without_mark(text, line))),
            };
            return Ok(Some(Row { line, bytes, is_whole, fields }));
        }
    }

    /// Adds a line to a text that is not yet too long; of one that is, nothing is kept.
    fn read_line(&mut self, text: &mut Vec<u8>, too_long: &mut bool) -> io::Result<usize> {
        let mut read = 0;
        loop {
            let buffer = self.reader.fill_buf()?;
            let end = buffer.iter().position(|byte| *byte == b'\n');
            let used = end.map_or(buffer.len(), |end| end + 1);
            *too_long |= text.len() + used > LINE_BYTES_MAX;
            match *too_long {
                true => text.clear(),
                false => text.extend_from_slice(&buffer[..used]),
            }
            self.reader.consume(used);
            read += used;
            if end.is_some() || used == 0 {
                self.line += u64::from(read > 0);
                return Ok(read);
            }
        }
    }

    fn fields(&self, text: &str) -> Vec<String> {
        split(text.trim_end_matches(['\r', '\n']), char::from(self.delimiter.unwrap_or(b',')))
    }
}

/// Whether a line before the header is a comment. One such as `#sku,name` is a header.
fn is_comment(line: &[u8], delimiter: Option<u8>) -> bool {
    let line = line.strip_prefix("\u{feff}".as_bytes()).unwrap_or(line);
    let Some(rest) = line.strip_prefix(b"#") else { return false };
    let separates = |byte: &u8| delimiter.map_or(matches!(byte, b',' | b';'), |delimiter| *byte == delimiter);
    let names = rest.first().is_some_and(u8::is_ascii_alphanumeric) && rest.iter().any(separates);
    !names
}

/// What a table is separated by, as far as its first line says.
fn usual_delimiter(line: &[u8]) -> u8 {
    if line.contains(&b';') && !line.contains(&b',') { b';' } else { b',' }
}

/// Where a row stands with its quotes. Only one at the beginning of a field opens: 3.5" is a length.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Quotes {
    /// A field begins.
    Start,
    /// Behind its beginning, outside of quotes.
    Outside,
    /// Inside of quotes.
    Inside,
    /// Behind a quote that closes, unless another follows.
    Closing,
}

impl Quotes {
    const fn after(self, byte: u8, delimiter: u8) -> Self {
        match (self, byte) {
            (Self::Inside, b'"') => Self::Closing,
            (Self::Inside, _) | (Self::Start | Self::Closing, b'"') => Self::Inside,
            (_, byte) if byte == delimiter => Self::Start,
            _ => Self::Outside,
        }
    }
}

/// The fields of a row: quotes around one are taken off, doubled ones inside are one.
fn split(text: &str, delimiter: char) -> Vec<String> {
    let (mut fields, mut field, mut in_quotes) = (Vec::new(), String::new(), false);
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '"' if in_quotes && characters.peek() == Some(&'"') => {
                characters.next();
                field.push('"');
            }
            '"' if in_quotes => in_quotes = false,
            '"' if field.is_empty() => in_quotes = true,
            character if character == delimiter && !in_quotes => fields.push(std::mem::take(&mut field)),
            character => field.push(character),
        }
    }
    fields.push(field);
    fields
}

/// The names of the columns, all of them different. One that has no name is called by its place.
fn named(fields: Vec<String>) -> Result<Vec<String>, String> {
    let mut known = HashSet::new();
    let mut names = Vec::with_capacity(fields.len());
    for (at, field) in fields.into_iter().enumerate() {
        let name = match field.trim() {
            "" => format!("column_{}", at + 1),
            name => name.to_owned(),
        };
        if !known.insert(name.clone()) {
            return Err(format!("two columns are called {name:?}"));
        }
        names.push(name);
    }
    Ok(names)
}

/// The task of a row. Fields that are missing at its end are left out, as many programs do that write tables.
fn task(names: &[String], fields: Vec<String>) -> Result<Option<Input>, String> {
    if fields.len() > names.len() {
        return Err(format!("it has {} fields, the header has {}", fields.len(), names.len()));
    }
    Ok(Some(names.iter().cloned().zip(fields.into_iter().map(Into::into)).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn rows(text: &str, delimiter: Option<u8>) -> Vec<(u64, Result<serde_json::Value, String>)> {
        let mut rows = Rows::of(text.as_bytes(), delimiter);
        let mut found = Vec::new();
        while let Some(record) = rows.next().expect("read") {
            found.push((record.line, record.task.map(|task| json!(task))));
        }
        found
    }

    #[test]
    fn quotes_may_hold_anything() {
        let text = "\u{feff}sku,name,note\r\n1,\"a, b\",\"say \"\"hi\"\"\"\r\n\r\n2,\"two\nlines\",\r\n007,x,y";
        let expected = [
            (2, json!({"sku": "1", "name": "a, b", "note": "say \"hi\""})),
            (4, json!({"sku": "2", "name": "two\nlines", "note": ""})),
            (6, json!({"sku": "007", "name": "x", "note": "y"})),
        ];
        assert_eq!(rows(text, None), expected.map(|(line, task)| (line, Ok(task))));
    }

    #[test]
    fn tabs_and_semicolons_separate_too() {
        assert_eq!(rows("a\tb\n1,5\t\n", Some(b'\t')), [(2, Ok(json!({"a": "1,5", "b": ""})))]);
        assert_eq!(rows("a;b\n1,5;2\n", None), [(2, Ok(json!({"a": "1,5", "b": "2"})))]);
        assert_eq!(rows("a,b\n3.5\" disk,2\n", None), [(2, Ok(json!({"a": "3.5\" disk", "b": "2"})))]);
        assert_eq!(rows(",b\n0,x\n", None), [(2, Ok(json!({"column_1": "0", "b": "x"})))]);
    }

    #[test]
    fn comments_may_stand_before_the_header_and_nowhere_else() {
        let expected = [(4, Ok(json!({"a": "#1", "b": "2"}))), (5, Ok(json!({"a": "# 3", "b": "4"})))];
        assert_eq!(rows("\u{feff}# exported, \"today\n#\na,b\n#1,2\n# 3,4\n", None), expected);
        assert_eq!(rows("#sku,name\n1,2\n", None), [(2, Ok(json!({"#sku": "1", "name": "2"})))], "that is a header");
        assert_eq!(rows("#made by a tool\na\tb\n1\t2\n", Some(b'\t')), [(3, Ok(json!({"a": "1", "b": "2"})))]);
        assert_eq!(rows("# nothing else", None), []);
    }

    #[test]
    fn what_does_not_fit_the_header_is_told_with_its_line() {
        assert_eq!(rows("a,b,c\n1,2\n", None), [(2, Ok(json!({"a": "1", "b": "2"})))], "what is missing is left out");
        let found = rows("a,b\n1,2,3\n\"1,2\n3,4\n", None);
        let wrong: Vec<_> = found.into_iter().map(|(line, task)| (line, task.expect_err("it does not fit"))).collect();
        assert_eq!(wrong[0], (2, "it has 3 fields, the header has 2".to_owned()));
        assert_eq!(wrong[1], (3, "a quote that begins here is not closed".to_owned()));
        assert_eq!(wrong.len(), 2);
        let header = rows("a,a\n1,2\n", None);
        assert!(header[0].1.as_ref().is_err_and(|why| why.contains("two columns")) && header.len() == 1, "{header:?}");
    }
}
