//! Reading a file line by line, with line numbers. A line that is too long is reported and skipped, not kept in memory.

use std::io::{self, BufRead, Read};

/// The longest line that is read, in bytes.
pub(crate) const LINE_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Lines are rarely longer.
const USUAL_BYTES_MAX: usize = 1024 * 1024;

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
        let mut read = (&mut self.reader).take(USUAL_BYTES_MAX as u64).read_until(b'\n', &mut self.line)?;
        if read == USUAL_BYTES_MAX && self.line.last() != Some(&b'\n') {
            // As much as it may take, and no more: a buffer that grows by itself is copied, and twice as large in the end.
            self.line.reserve_exact(LINE_BYTES_MAX - read);
            read += (&mut self.reader).take((LINE_BYTES_MAX - read) as u64).read_until(b'\n', &mut self.line)?;
        }
        if read == 0 {
            return Ok(None);
        }
        self.number += 1;
        if read == LINE_BYTES_MAX && self.line.last() != Some(&b'\n') && !self.reader.fill_buf()?.is_empty() {
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

#[cfg(test)]
mod tests {
    use std::io::BufReader;

    use super::*;

    #[test]
    fn a_line_that_is_too_long_is_skipped_and_takes_no_more_memory_than_the_longest() {
        let longest = "x".repeat(LINE_BYTES_MAX);
        let text = format!("a\n{longest}y\n{longest}");
        let mut lines = Lines::of(BufReader::with_capacity(256 * 1024, text.as_bytes()));
        let mut lengths = Vec::new();
        while let Some((number, line)) = lines.next().expect("read") {
            lengths.push((number, line.map(<[u8]>::len)));
            assert!(lines.line.capacity() <= LINE_BYTES_MAX, "{}", lines.line.capacity());
        }
        let too_long = Err(format!("longer than {LINE_BYTES_MAX} bytes"));
        assert_eq!(lengths, [(1, Ok(2)), (2, too_long), (3, Ok(LINE_BYTES_MAX))]);
    }
}
