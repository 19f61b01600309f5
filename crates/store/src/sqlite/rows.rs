//! From rows to types and back.

use redrive_core::dead::DeadLetter;
use redrive_core::definitions::DefinitionVersion;
use redrive_core::failures::{Failure, Reason};
use redrive_core::ids::{JobId, LeaseToken, PipelineName, RoundName, WorkerId};
use redrive_core::jobs::{Input, Tally, task_of_progress};
use redrive_core::payloads::PayloadHash;
use redrive_core::time::Timestamp;
use rusqlite::types::Type;
use rusqlite::{Connection, OptionalExtension, Row, params};
use serde_json::Value;

use super::fault::Fault;

pub(super) type RowResult<T> = rusqlite::Result<T>;

fn broken(column: usize, error: impl std::error::Error + Send + Sync + 'static) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(column, Type::Text, Box::new(error))
}

pub(super) fn job_id(row: &Row<'_>, column: usize) -> RowResult<JobId> {
    row.get(column).map(JobId::from_bytes)
}

pub(super) fn worker_id(row: &Row<'_>, column: usize) -> RowResult<WorkerId> {
    row.get(column).map(WorkerId::from_bytes)
}

pub(super) fn token(row: &Row<'_>, column: usize) -> RowResult<LeaseToken> {
    row.get(column).map(LeaseToken::from_bytes)
}

pub(super) fn time(row: &Row<'_>, column: usize) -> RowResult<Timestamp> {
    row.get(column).map(Timestamp::from_millis)
}

pub(super) fn time_opt(row: &Row<'_>, column: usize) -> RowResult<Option<Timestamp>> {
    Ok(row.get::<_, Option<i64>>(column)?.map(Timestamp::from_millis))
}

pub(super) fn parsed<T: std::str::FromStr>(row: &Row<'_>, column: usize) -> RowResult<T>
where
    T::Err: std::fmt::Display,
{
    let text = row.get_ref(column)?.as_str().map_err(|error| broken(column, error))?;
    text.parse().map_err(|error: T::Err| broken(column, std::io::Error::other(error.to_string())))
}

pub(super) fn parsed_opt<T: std::str::FromStr>(row: &Row<'_>, column: usize) -> RowResult<Option<T>>
where
    T::Err: std::fmt::Display,
{
    match row.get_ref(column)? {
        rusqlite::types::ValueRef::Null => Ok(None),
        _ => parsed(row, column).map(Some),
    }
}

pub(super) fn json<T: serde::de::DeserializeOwned>(row: &Row<'_>, column: usize) -> RowResult<T> {
    let text = row.get_ref(column)?.as_str().map_err(|error| broken(column, error))?;
    serde_json::from_str(text).map_err(|error| broken(column, error))
}

pub(super) fn json_opt<T: serde::de::DeserializeOwned>(row: &Row<'_>, column: usize) -> RowResult<Option<T>> {
    match row.get_ref(column)? {
        rusqlite::types::ValueRef::Null => Ok(None),
        _ => json(row, column).map(Some),
    }
}

/// A round as it is bound; where there is none, the statement puts an empty text instead: a bound one points nowhere, and comparing
/// with it, if only for no bytes, is slow where the processor has to suppress the fault.
pub(super) fn round_text(round: Option<&RoundName>) -> Option<&str> {
    round.map(RoundName::as_str)
}

pub(super) fn round(row: &Row<'_>, column: usize) -> RowResult<Option<RoundName>> {
    match row.get_ref(column)?.as_str() {
        Ok("") => Ok(None),
        _ => parsed(row, column).map(Some),
    }
}

pub(super) fn input(row: &Row<'_>, column: usize) -> RowResult<Input> {
    json(row, column)
}

/// The tally in five columns: attempts, attempts_before, crashes, replays, suspect.
pub(super) fn tally(row: &Row<'_>, first: usize) -> RowResult<Tally> {
    Ok(Tally {
        attempts: row.get(first)?,
        attempts_before: row.get(first + 1)?,
        crashes: row.get(first + 2)?,
        replays: row.get(first + 3)?,
        suspect: row.get(first + 4)?,
    })
}

/// The columns of [`dead_letter`], from `dead d` joined with `pipeline p`.
pub(super) const DEAD_COLUMNS: &str = "d.seq, d.id, p.name, d.key, d.input, d.target, d.reason, d.code, d.message,
    d.attempts, d.crashes, d.replays, d.gate, d.accepted_at, d.died_at, d.http_status, d.proxy, d.payload, d.verdict, d.original,
    (SELECT c.name FROM cause_key k JOIN cause c ON c.id = k.cause WHERE k.id = d.cause_key),
    d.payload_cut = 2, d.progress, d.round, d.origin, d.definition";

pub(super) fn dead_letter(row: &Row<'_>) -> RowResult<DeadLetter> {
    Ok(DeadLetter {
        id: job_id(row, 1)?,
        number: row.get(0)?,
        pipeline: parsed::<PipelineName>(row, 2)?,
        key: row.get(3)?,
        input: input(row, 4)?,
        target: row.get(5)?,
        reason: parsed::<Reason>(row, 6)?,
        code: row.get(7)?,
        message: row.get(8)?,
        attempts: row.get(9)?,
        crashes: row.get(10)?,
        replays: row.get(11)?,
        gate: parsed(row, 12)?,
        accepted_at: time(row, 13)?,
        died_at: time(row, 14)?,
        http_status: row.get(15)?,
        proxy: row.get(16)?,
        payload: row.get::<_, Option<[u8; 32]>>(17)?.map(PayloadHash::from_bytes),
        verdict: row.get(18)?,
        original: json_opt(row, 19)?,
        cause: parsed_opt(row, 20)?,
        payload_missing: row.get(21)?,
        task_id: json_opt::<Value>(row, 22)?.as_ref().and_then(task_of_progress).map(str::to_owned),
        round: round(row, 23)?,
        origin: json_opt(row, 24)?,
        definition: row.get::<_, Option<String>>(25)?.map(DefinitionVersion::new),
        failures: None,
    })
}

/// All failures of a job, oldest first.
pub(super) fn failures(conn: &Connection, job: JobId) -> Result<Vec<Failure>, Fault> {
    let mut select = conn.prepare_cached("SELECT failure FROM failure WHERE job = ?1 ORDER BY n")?;
    let rows = select.query_map([job.as_bytes()], |row| json(row, 0))?;
    Ok(rows.collect::<RowResult<_>>()?)
}

/// The last failure of a job, and its place.
pub(super) fn last_failure(conn: &Connection, job: JobId) -> Result<Option<(i64, Failure)>, Fault> {
    let mut select = conn.prepare_cached("SELECT n, failure FROM failure WHERE job = ?1 ORDER BY n DESC LIMIT 1")?;
    Ok(select.query_row([job.as_bytes()], |row| Ok((row.get(0)?, json(row, 1)?))).optional()?)
}

/// Adds a failure to a job's history.
pub(super) fn add_failure(conn: &Connection, job: JobId, failure: &Failure) -> Result<(), Fault> {
    conn.prepare_cached(
        "INSERT INTO failure (job, n, failure)
         VALUES (?1, (SELECT ifnull(max(n), 0) + 1 FROM failure WHERE job = ?1), ?2)",
    )?
    .execute(params![job.as_bytes(), serde_json::to_string(failure)?])?;
    Ok(())
}
