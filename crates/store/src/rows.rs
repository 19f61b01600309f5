//! From rows to types, and back, whatever backend the rows are of. A list of columns stands beside the one function that reads it.

mod activity;
mod alerts;
mod causes;
mod good;
mod jobs;
mod letters;
mod payloads;
mod replays;
mod rounds;
mod tokens;
mod tries;

use redrive_core::ids::{JobId, LeaseToken, PipelineName, RoundName, WorkerId};
use redrive_core::jobs::{Input, Tally};
use redrive_core::ledger::{Forgotten, KeptResults, Ledger};
use redrive_core::time::Timestamp;
use rusqlite::types::FromSql;

pub(crate) use self::activity::activity_view;
pub(crate) use self::alerts::{alert_told, alerts_told};
pub(crate) use self::causes::{Found, cause_rule, found_cause, letter_facets};
pub(crate) use self::good::good_page;
pub(crate) use self::jobs::{JOB_COLUMN_COUNT, JOB_COLUMNS, QueuedJob, job_view, lost_lease, queued_job};
pub(crate) use self::letters::{DEAD_COLUMNS, dead_letter, payload_of, progress_of};
pub(crate) use self::payloads::{PAYLOAD_AT, PAYLOAD_READS, payload_at, payload_reads, payload_view};
pub(crate) use self::replays::{
    REPLAY_COLUMNS, facts_of, found_letter, letter_facts, pending_letter, replay_group, replay_view, sent_letter,
};
pub(crate) use self::rounds::round_view;
pub(crate) use self::tokens::known_token;
pub(crate) use self::tries::{TRIED_COLUMNS, tried_count, tried_letter, try_view};
use crate::postgres::sql::Read;

/// A row with its columns.
pub(crate) trait Columns {
    /// What is wrong with one that cannot be read.
    type Fault;

    /// The value of a column.
    fn get<T: Column>(&self, column: usize) -> Result<T, Self::Fault>;

    /// The text of a column, without copying it.
    fn text(&self, column: usize) -> Result<&str, Self::Fault>;

    /// Whether a column has nothing.
    fn is_null(&self, column: usize) -> Result<bool, Self::Fault>;

    /// A column whose text makes no sense.
    fn broken(column: usize, why: String) -> Self::Fault;
}

/// A type that a column of every backend can be read as.
pub(crate) trait Column: FromSql + Read {}

impl<T: FromSql + Read> Column for T {}

pub(crate) fn job_id<R: Columns>(row: &R, column: usize) -> Result<JobId, R::Fault> {
    row.get(column).map(JobId::from_bytes)
}

pub(crate) fn worker_id<R: Columns>(row: &R, column: usize) -> Result<WorkerId, R::Fault> {
    row.get(column).map(WorkerId::from_bytes)
}

pub(crate) fn token<R: Columns>(row: &R, column: usize) -> Result<LeaseToken, R::Fault> {
    row.get(column).map(LeaseToken::from_bytes)
}

pub(crate) fn time<R: Columns>(row: &R, column: usize) -> Result<Timestamp, R::Fault> {
    row.get(column).map(Timestamp::from_millis)
}

pub(crate) fn time_opt<R: Columns>(row: &R, column: usize) -> Result<Option<Timestamp>, R::Fault> {
    Ok(row.get::<Option<i64>>(column)?.map(Timestamp::from_millis))
}

pub(crate) fn parsed<T: std::str::FromStr, R: Columns>(row: &R, column: usize) -> Result<T, R::Fault>
where
    T::Err: std::fmt::Display,
{
    row.text(column)?.parse().map_err(|error: T::Err| R::broken(column, error.to_string()))
}

pub(crate) fn parsed_opt<T: std::str::FromStr, R: Columns>(row: &R, column: usize) -> Result<Option<T>, R::Fault>
where
    T::Err: std::fmt::Display,
{
    if row.is_null(column)? { Ok(None) } else { parsed(row, column).map(Some) }
}

pub(crate) fn json<T: serde::de::DeserializeOwned, R: Columns>(row: &R, column: usize) -> Result<T, R::Fault> {
    parsed_json::<T, R>(row.text(column)?, column)
}

/// The same of a text that is a part of what a column has.
pub(crate) fn parsed_json<T: serde::de::DeserializeOwned, R: Columns>(
    text: &str,
    column: usize,
) -> Result<T, R::Fault> {
    serde_json::from_str(text).map_err(|error| R::broken(column, error.to_string()))
}

pub(crate) fn json_opt<T: serde::de::DeserializeOwned, R: Columns>(
    row: &R,
    column: usize,
) -> Result<Option<T>, R::Fault> {
    if row.is_null(column)? { Ok(None) } else { json(row, column).map(Some) }
}

pub(crate) fn input<R: Columns>(row: &R, column: usize) -> Result<Input, R::Fault> {
    json(row, column)
}

/// A round; an empty text is none.
pub(crate) fn round<R: Columns>(row: &R, column: usize) -> Result<Option<RoundName>, R::Fault> {
    if row.text(column)?.is_empty() { Ok(None) } else { parsed(row, column).map(Some) }
}

/// The tally in seven columns: attempts, attempts_before, crashes, replays, suspect, uncounted, by_name.
pub(crate) fn tally<R: Columns>(row: &R, first: usize) -> Result<Tally, R::Fault> {
    Ok(Tally {
        attempts: row.get(first)?,
        attempts_before: row.get(first + 1)?,
        crashes: row.get(first + 2)?,
        replays: row.get(first + 3)?,
        suspect: row.get(first + 4)?,
        uncounted: row.get(first + 5)?,
        by_name: row.get(first + 6)?,
    })
}

/// The columns of [`ledger`], of `pipeline`.
pub(crate) const LEDGER_COLUMNS: &str =
    "id, name, accepted, queued, leased, done, dead, discarded, retrying, recovered, replaying,
    forgotten_done, forgotten_recovered, forgotten_discarded, results, result_bytes, results_dropped";

/// Counts all that was ever accepted or counted of a pipeline `p`: nothing takes from it.
pub(crate) const COUNTED: &str = "p.accepted
    + (SELECT CAST(coalesce(sum(count), 0) AS bigint) FROM event_total WHERE pipeline = p.id)
    + (SELECT CAST(coalesce(sum(count), 0) AS bigint) FROM minutely WHERE pipeline = p.id)";

/// Returns the condition under which a pipeline `p` is in lists: it was not forgotten, or something came since.
pub(crate) fn is_listed() -> String {
    format!("(p.forgotten_after IS NULL OR p.paused IS NOT NULL OR p.forgotten_after <> {COUNTED})")
}

/// The number of a pipeline's row, its name, and its ledger.
pub(crate) fn ledger<R: Columns>(row: &R) -> Result<(i64, PipelineName, Ledger), R::Fault> {
    let ledger = Ledger {
        accepted: row.get(2)?,
        queued: row.get(3)?,
        leased: row.get(4)?,
        done: row.get(5)?,
        dead: row.get(6)?,
        discarded: row.get(7)?,
        retrying: row.get(8)?,
        recovered: row.get(9)?,
        replaying: row.get(10)?,
        forgotten: Forgotten { done: row.get(11)?, recovered: row.get(12)?, discarded: row.get(13)? },
        results: KeptResults { kept: row.get(14)?, bytes: row.get(15)?, dropped: row.get(16)? },
    };
    Ok((row.get(0)?, parsed(row, 1)?, ledger))
}
