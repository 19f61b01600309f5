//! Results as a store keeps them: those that one transaction settles at one time are lines of JSON, compressed together. Both backends
//! write and read them here.

use std::sync::Arc;

use redrive_core::ids::JobId;
use redrive_core::ledger::KeptResults;
use redrive_core::results::JobResult;
use redrive_core::time::Timestamp;
use serde::Deserialize;

use crate::contract::{ForgetResults, ListResults, Page};
use crate::error::StoreError;
use crate::rows::{Columns, parsed_json};

/// The most that is compressed together, in bytes. A single line may be longer.
const ROW_BYTES_MAX: usize = 256 * 1024;

/// The most that a page has, in bytes of lines. A single line may be longer.
const PAGE_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Rows that are looked at for one page.
pub(crate) const ROWS_PER_PAGE: u32 = 32;

/// Compression level. A higher one costs the writer more than it saves.
const LEVEL: i32 = 1;

/// Lines that are compressed together.
pub(crate) struct Packed {
    /// How many.
    pub(crate) jobs: i64,
    /// The lines, compressed.
    pub(crate) lines: Vec<u8>,
}

impl Packed {
    /// Returns what it adds to the ledger.
    pub(crate) fn counted(&self) -> KeptResults {
        KeptResults { kept: self.jobs, bytes: signed(self.lines.len()), dropped: 0 }
    }
}

fn signed(length: usize) -> i64 {
    i64::try_from(length).unwrap_or(i64::MAX)
}

/// Compresses lines, as many together as a row may have.
pub(crate) fn pack(lines: &[Arc<str>]) -> Vec<Packed> {
    let (mut packed, mut text, mut jobs) = (Vec::new(), String::new(), 0);
    for (at, line) in lines.iter().enumerate() {
        text.push_str(line);
        text.push('\n');
        jobs += 1;
        let next = lines.get(at + 1).map(|next| next.len());
        if next.is_none_or(|next| text.len() + next > ROW_BYTES_MAX) {
            let lines = zstd::bulk::compress(text.as_bytes(), LEVEL).expect("the buffer has room for any text");
            packed.push(Packed { jobs, lines });
            text.clear();
            jobs = 0;
        }
    }
    packed
}

/// Returns the lines of a row, which are in a column.
fn unpack<R: Columns>(row: &R, column: usize) -> Result<String, R::Fault> {
    let packed: Vec<u8> = row.get(column)?;
    let unpacked = zstd::stream::decode_all(&*packed)
        .and_then(|bytes| String::from_utf8(bytes).map_err(|error| std::io::Error::other(error.to_string())));
    unpacked.map_err(|error| R::broken(column, error.to_string()))
}

/// Finds the result of a job among the lines of a row, which are in its first column.
pub(crate) fn find<R: Columns>(row: &R, job: JobId) -> Result<Option<JobResult>, R::Fault> {
    #[derive(Deserialize)]
    struct Id {
        id: JobId,
    }
    for line in unpack(row, 0)?.lines() {
        if parsed_json::<Id, R>(line, 0)?.id == job {
            return parsed_json::<JobResult, R>(line, 0).map(Some);
        }
    }
    Ok(None)
}

/// A page of results on its way.
pub(crate) struct Listing<'a> {
    params: &'a ListResults,
    /// The row to begin with, by its time and number, and how many of its lines were listed before.
    begin: (i64, i64, usize),
    items: Vec<JobResult>,
    bytes: usize,
    /// Where the next page begins, if the rows that were looked at are the last ones.
    end: (i64, i64, usize),
    is_full: bool,
    rows: u32,
}

impl<'a> Listing<'a> {
    /// Begins where the cursor says.
    pub(crate) fn new(params: &'a ListResults) -> Result<Self, StoreError> {
        let since = params.since.map_or(i64::MIN, Timestamp::as_millis);
        let begin = match &params.cursor {
            None => (since, i64::MIN, 0),
            Some(cursor) => place(cursor).ok_or_else(|| StoreError::InvalidCursor(cursor.clone()))?,
        };
        Ok(Self { params, begin, items: Vec::new(), bytes: 0, end: begin, is_full: false, rows: 0 })
    }

    /// Returns the first row that is asked for, by its time and number.
    pub(crate) fn first_row(&self) -> (i64, i64) {
        (self.begin.0, self.begin.1)
    }

    /// Returns the time before which rows are asked for.
    pub(crate) fn until(&self) -> i64 {
        self.params.until.map_or(i64::MAX, Timestamp::as_millis)
    }

    /// Takes the results of a row with the columns lines, time and number. Returns whether there is room for more.
    pub(crate) fn take<R: Columns>(&mut self, row: &R) -> Result<bool, R::Fault> {
        let (at, id): (i64, i64) = (row.get(1)?, row.get(2)?);
        let skip = if (at, id) == self.first_row() { self.begin.2 } else { 0 };
        let lines = unpack(row, 0)?;
        self.rows += 1;
        for (n, line) in lines.lines().enumerate().skip(skip) {
            let room = self.items.is_empty() || self.bytes + line.len() <= PAGE_BYTES_MAX;
            if !room || self.items.len() >= self.params.limit as usize {
                (self.end, self.is_full) = ((at, id, n), true);
                return Ok(false);
            }
            let result = parsed_json::<JobResult, R>(line, 0)?;
            if self.params.round.is_none() || result.round == self.params.round {
                self.bytes += line.len();
                self.items.push(result);
            }
        }
        self.end = (at, id, lines.lines().count());
        Ok(true)
    }

    /// Returns the page. More follows if it is full, or not all rows were looked at.
    pub(crate) fn page(self) -> Page<JobResult> {
        let (at, id, n) = self.end;
        let more = self.is_full || self.rows >= ROWS_PER_PAGE;
        Page { items: self.items, next: more.then(|| format!("{at}.{id}.{n}")) }
    }
}

fn place(cursor: &str) -> Option<(i64, i64, usize)> {
    let mut parts = cursor.split('.');
    let place = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
    parts.next().is_none().then_some(place)
}

/// A row of results as far as forgetting needs to know it.
pub(crate) struct OldRow {
    id: i64,
    at: Timestamp,
    jobs: i64,
    bytes: i64,
}

impl OldRow {
    /// Reads the columns number, time, jobs and bytes.
    pub(crate) fn read<R: Columns>(row: &R) -> Result<Self, R::Fault> {
        Ok(Self { id: row.get(0)?, at: crate::rows::time(row, 1)?, jobs: row.get(2)?, bytes: row.get(3)? })
    }
}

/// Rows of results to be removed.
#[derive(Default)]
pub(crate) struct Outdated {
    /// Their numbers.
    pub(crate) rows: Vec<i64>,
    /// Changes in the ledger.
    pub(crate) change: KeptResults,
    /// True if more rows may have to be removed.
    pub(crate) more: bool,
}

impl Outdated {
    /// Finds those among the oldest rows of a pipeline that are too old, or with which it has more bytes than it may have.
    pub(crate) fn among(oldest: &[OldRow], mut bytes: i64, params: &ForgetResults) -> Self {
        let mut outdated = Self::default();
        let bytes_max = i64::try_from(params.bytes_max).unwrap_or(i64::MAX);
        for row in oldest {
            let is_old = params.before.is_some_and(|before| row.at < before);
            if !is_old && bytes <= bytes_max {
                return outdated;
            }
            bytes -= row.bytes;
            outdated.rows.push(row.id);
            let KeptResults { kept, bytes, dropped } = &mut outdated.change;
            (*kept, *bytes) = (*kept - row.jobs, *bytes - row.bytes);
            *dropped += if is_old { 0 } else { row.jobs };
        }
        outdated.more = oldest.len() >= params.limit as usize;
        outdated
    }
}
