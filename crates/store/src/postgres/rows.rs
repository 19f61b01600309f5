//! From rows to types and back.

use redrive_core::dead::DeadLetter;
use redrive_core::definitions::DefinitionVersion;
use redrive_core::failures::{Failure, Reason};
use redrive_core::ids::{JobId, LeaseToken, PipelineName, RoundName, WorkerId};
use redrive_core::jobs::{Input, Tally, task_of_progress};
use redrive_core::payloads::PayloadHash;
use redrive_core::time::Timestamp;
use serde_json::Value;

use super::fault::Fault;
use super::sql::{Conn, Row, args};

pub(super) fn job_id(row: &Row<'_>, column: usize) -> Result<JobId, Fault> {
    row.get(column).map(JobId::from_bytes)
}

pub(super) fn worker_id(row: &Row<'_>, column: usize) -> Result<WorkerId, Fault> {
    row.get(column).map(WorkerId::from_bytes)
}

pub(super) fn token(row: &Row<'_>, column: usize) -> Result<LeaseToken, Fault> {
    row.get(column).map(LeaseToken::from_bytes)
}

pub(super) fn time(row: &Row<'_>, column: usize) -> Result<Timestamp, Fault> {
    row.get(column).map(Timestamp::from_millis)
}

pub(super) fn time_opt(row: &Row<'_>, column: usize) -> Result<Option<Timestamp>, Fault> {
    Ok(row.get::<Option<i64>>(column)?.map(Timestamp::from_millis))
}

pub(super) fn parsed<T: std::str::FromStr>(row: &Row<'_>, column: usize) -> Result<T, Fault>
where
    T::Err: std::fmt::Display,
{
    row.text(column)?.parse().map_err(|error: T::Err| Fault::Broken(error.to_string()))
}

pub(super) fn parsed_opt<T: std::str::FromStr>(row: &Row<'_>, column: usize) -> Result<Option<T>, Fault>
where
    T::Err: std::fmt::Display,
{
    if row.is_null(column)? { Ok(None) } else { parsed(row, column).map(Some) }
}

pub(super) fn json<T: serde::de::DeserializeOwned>(row: &Row<'_>, column: usize) -> Result<T, Fault> {
    Ok(serde_json::from_str(row.text(column)?)?)
}

pub(super) fn json_opt<T: serde::de::DeserializeOwned>(row: &Row<'_>, column: usize) -> Result<Option<T>, Fault> {
    if row.is_null(column)? { Ok(None) } else { json(row, column).map(Some) }
}

/// A round as it is bound; an empty text is none.
pub(super) fn round_text(round: Option<&RoundName>) -> &str {
    round.map_or("", RoundName::as_str)
}

pub(super) fn round(row: &Row<'_>, column: usize) -> Result<Option<RoundName>, Fault> {
    if row.text(column)?.is_empty() { Ok(None) } else { parsed(row, column).map(Some) }
}

pub(super) fn input(row: &Row<'_>, column: usize) -> Result<Input, Fault> {
    json(row, column)
}

/// The tally in five columns: attempts, attempts_before, crashes, replays, suspect.
pub(super) fn tally(row: &Row<'_>, first: usize) -> Result<Tally, Fault> {
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

pub(super) fn dead_letter(row: &Row<'_>) -> Result<DeadLetter, Fault> {
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
        payload: row.get::<Option<[u8; 32]>>(17)?.map(PayloadHash::from_bytes),
        verdict: row.get(18)?,
        original: json_opt(row, 19)?,
        cause: parsed_opt(row, 20)?,
        payload_missing: row.get(21)?,
        task_id: json_opt::<Value>(row, 22)?.as_ref().and_then(task_of_progress).map(str::to_owned),
        round: round(row, 23)?,
        origin: json_opt(row, 24)?,
        definition: row.get::<Option<String>>(25)?.map(DefinitionVersion::new),
        failures: None,
    })
}

/// All failures of a job, oldest first.
pub(super) async fn failures(conn: &Conn, job: JobId) -> Result<Vec<Failure>, Fault> {
    conn.query("SELECT failure FROM failure WHERE job = $1 ORDER BY n", args![job], |row| json(row, 0)).await
}

/// The last failure of a job, and its place.
pub(super) async fn last_failure(conn: &Conn, job: JobId) -> Result<Option<(i64, Failure)>, Fault> {
    let sql = "SELECT n, failure FROM failure WHERE job = $1 ORDER BY n DESC LIMIT 1";
    conn.query_opt(sql, args![job], |row| Ok((row.get(0)?, json(row, 1)?))).await
}

/// Adds failures to the histories of jobs, in their order; several may be of one job.
pub(super) async fn add_failures(conn: &Conn, failures: &[(JobId, &Failure)]) -> Result<(), Fault> {
    if failures.is_empty() {
        return Ok(());
    }
    let jobs: Vec<JobId> = failures.iter().map(|(job, _)| *job).collect();
    let texts: Vec<String> =
        failures.iter().map(|(_, failure)| serde_json::to_string(failure)).collect::<Result<_, _>>()?;
    conn.send(
        "INSERT INTO failure (job, n, failure)
         SELECT u.job, coalesce((SELECT max(f.n) FROM failure f WHERE f.job = u.job), 0)
                       + row_number() OVER (PARTITION BY u.job ORDER BY u.place), u.failure
         FROM unnest($1::uuid[], $2::text[]) WITH ORDINALITY AS u(job, failure, place)",
        args![jobs, texts],
    )
    .await?;
    Ok(())
}
