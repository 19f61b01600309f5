//! The last lines of a file, so that what comes again is not appended again.

use std::borrow::Cow;
use std::collections::{HashSet, VecDeque};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

use blake3::Hash;

/// Bytes at the end of a file that are read.
const BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Lines that are remembered.
const LINES_MAX: usize = 65_536;

/// Fingerprints of the last lines of a file.
#[derive(Debug, Default)]
pub(super) struct LastLines {
    known: HashSet<Hash>,
    order: VecDeque<Hash>,
    /// Up to where the file was read.
    end: u64,
}

impl LastLines {
    /// Reads what was appended since, by whomever. The file ends with a whole line.
    pub(super) fn catch_up(&mut self, file: &mut File) -> io::Result<()> {
        let length = file.metadata()?.len();
        if length < self.end {
            *self = Self::default();
        }
        self.end = self.end.max(length.saturating_sub(BYTES_MAX));
        file.seek(SeekFrom::Start(self.end))?;
        let mut added = Vec::new();
        file.take(length - self.end).read_to_end(&mut added)?;
        for line in lines(&added) {
            self.note(blake3::hash(line));
        }
        self.end = length;
        Ok(())
    }

    /// Leaves out lines that are known.
    pub(super) fn without_known<'a>(&self, text: &'a [u8]) -> Cow<'a, [u8]> {
        let is_known = |line: &&[u8]| self.known.contains(&blake3::hash(line));
        match lines(text).any(|line| is_known(&line)) {
            true => Cow::Owned(lines(text).filter(|line| !is_known(line)).flatten().copied().collect()),
            false => Cow::Borrowed(text),
        }
    }

    fn note(&mut self, line: Hash) {
        if self.known.insert(line) {
            self.order.push_back(line);
        }
        if self.order.len() > LINES_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
    }
}

/// The lines of a text, each with its end.
fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split_inclusive(|byte| *byte == b'\n')
}
