//! Reading a file line by line, with line numbers. A line that is too long is reported and skipped, not kept in memory.

use std::io::{self, BufRead, Read};

/// The longest line that is read, in bytes.
pub(crate) const LINE_BYTES_MAX: usize = 64 * 1024 * 1024;

/// A line with its number; why not, if it is too long.
pub(crate) type NumberedLine<'a> = (u64, Result<&'a [u8], String>);

/// Lines with their numbers, none longer than allowed.
pub(crate) struct Lines<R> {
    reader: R,
    number: u64,
    line: Vec<u8>,
}

impl<R: BufRead> Lines<R> {
    pub(crate) fn of(reader: R) -> Self {
        Self { reader, number: 0, line: Vec::new() }
    }

    /// The next line, with its end; nothing after the last.
    pub(crate) fn next(&mut self) -> io::Result<Option<NumberedLine<'_>>> {
        self.line.clear();
        let read = (&mut self.reader).take(LINE_BYTES_MAX as u64 + 1).read_until(b'\n', &mut self.line)?;
        if read == 0 {
            return Ok(None);
        }
        self.number += 1;
        if read > LINE_BYTES_MAX && self.line.last() != Some(&b'\n') {
            self.skip_line()?;
            return Ok(Some((self.number, Err(format!("longer than {LINE_BYTES_MAX} bytes")))));
        }
        Ok(Some((self.number, Ok(&self.line))))
    }

    fn skip_line(&mut self) -> io::Result<()> {
        loop {
            let buffer = self.reader.fill_buf()?;
            let (used, ended) = match buffer.iter().position(|byte| *byte == b'\n') {
                Some(at) => (at + 1, true),
                None => (buffer.len(), buffer.is_empty()),
            };
            self.reader.consume(used);
            if ended {
                return Ok(());
            }
        }
    }
}

/// What is wrong with a line that is not JSON, with its column. The parser's own line number is always 1 and would confuse.
pub(crate) fn without_place(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let what = text.split(" at line ").next().unwrap_or(&text);
    format!("{what} at column {}", error.column())
}
