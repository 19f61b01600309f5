//! Who the tasks of one reading are.

use std::io;

use redrive_core::ids::RoundName;
use redrive_core::jobs::{INPUT_BYTES_MAX, Input, check_input};
use redrive_core::tasks::{ContentHash, Identity, identify, key_by_line};

use super::by_line::ByLine;
use super::seen::Seen;

/// By what the tasks of a file are to be known, and how long they may be.
#[derive(Clone, Debug)]
pub struct Naming {
    /// The round they belong to, if there are rounds.
    pub round: Option<RoundName>,
    /// The fields by which tasks without a key of their own are known; without any, it is their content.
    pub fields: Vec<String>,
    /// How the file was known before tasks were known by their content, if it was.
    pub by_line: Option<ByLine>,
    /// The longest input, in bytes of JSON.
    pub input_bytes_max: u64,
}

impl Default for Naming {
    fn default() -> Self {
        Self { round: None, fields: Vec::new(), by_line: None, input_bytes_max: INPUT_BYTES_MAX }
    }
}

/// Names the tasks of one reading, from the first to the last.
pub(super) struct Namer<'a> {
    naming: &'a Naming,
    seen: Seen,
}

/// Why a task has no name.
pub(super) enum Unnamed {
    /// What is wrong with the task.
    Broken(String),
    /// It could not be counted.
    Uncounted(io::Error),
}

impl<'a> Namer<'a> {
    pub(super) fn of(naming: &'a Naming) -> Self {
        Self { naming, seen: Seen::default() }
    }

    /// The key of the task that begins on a line, if the task is no longer than it may be.
    pub(super) fn key(&mut self, input: &Input, line: u64) -> Result<String, Unnamed> {
        let key = self.own_key(input, line)?;
        match check_input(input, self.naming.input_bytes_max) {
            Ok(()) => Ok(key),
            Err(why) => Err(Unnamed::Broken(format!("task {key}: {why}"))),
        }
    }

    fn own_key(&mut self, input: &Input, line: u64) -> Result<String, Unnamed> {
        let by_line = self.naming.by_line.as_ref().filter(|file| line <= file.lines);
        let fields = if by_line.is_some() { &[] } else { self.naming.fields.as_slice() };
        match (identify(input, fields).map_err(Unnamed::Broken)?, by_line) {
            (Identity::Keyed(key), _) => Ok(key),
            (Identity::Content(_), Some(file)) => Ok(key_by_line(&file.hash, line)),
            (Identity::Content(content), None) => Ok(content.key(self.nth(&content)?)),
        }
    }

    /// The round they belong to.
    pub(super) fn round(&self) -> Option<RoundName> {
        self.naming.round.clone()
    }

    fn nth(&mut self, content: &ContentHash) -> Result<u32, Unnamed> {
        self.seen.count(content).map_err(Unnamed::Uncounted)
    }
}
