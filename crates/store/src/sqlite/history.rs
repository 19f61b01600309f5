//! Forgetting. Receipts have no index by age, which would cost every job that succeeds: they are looked through in the order of their
//! ids, a piece at a time, once a day.

use async_trait::async_trait;
use redrive_core::history::is_over;
use redrive_core::ids::JobId;
use redrive_core::time::Timestamp;
use rusqlite::{OptionalExtension, Row, params};

use super::SqliteStore;
use super::batch::Batch;
use super::fault::Fault;
use super::payloads;
use super::rows::{self, RowResult};
use crate::contract::{ForgetHistory, ForgetRecords, HistoryStore};
use crate::error::Result;

#[async_trait]
impl HistoryStore for SqliteStore {
    async fn forget_receipts(&self, params: ForgetHistory) -> Result<bool> {
        self.write(move |batch| {
            let Some(pipeline) = batch.find_pipeline(&params.pipeline)? else { return Ok(false) };
            let done = look_through(batch, DONE, pipeline, &params)?;
            Ok(look_through(batch, DISCARDED, pipeline, &params)? || done)
        })
        .await
    }

    async fn forget_counts(&self, params: ForgetHistory) -> Result<bool> {
        self.write(move |batch| {
            let Some(pipeline) = batch.find_pipeline(&params.pipeline)? else { return Ok(false) };
            let mut more = false;
            for (sql, unit) in COUNTS {
                let old = if *unit == Unit::Millis { params.before.as_millis() } else { params.before.hour() };
                let forgotten = batch.statement(sql)?.execute(params![pipeline, old, params.limit])?;
                more |= forgotten == params.limit as usize;
            }
            Ok(more)
        })
        .await
    }

    async fn forget_records(&self, params: ForgetRecords) -> Result<bool> {
        self.write(move |batch| {
            let mut more = false;
            for sql in [
                "DELETE FROM condemned WHERE place IN (SELECT place FROM condemned WHERE at < ?1 LIMIT ?2)",
                "DELETE FROM activity WHERE rowid IN (SELECT rowid FROM activity WHERE at < ?1 LIMIT ?2)",
            ] {
                let forgotten = batch.statement(sql)?.execute(params![params.before.as_millis(), params.limit])?;
                more |= forgotten == params.limit as usize;
            }
            Ok(more)
        })
        .await
    }
}

/// How the age of counts is kept.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Unit {
    Hours,
    Millis,
}

/// What was counted about a pipeline, and its age.
const COUNTS: &[(&str, Unit)] = &[
    (
        "DELETE FROM hourly WHERE (pipeline, hour, event, reason) IN
            (SELECT pipeline, hour, event, reason FROM hourly WHERE pipeline = ?1 AND hour < ?2 LIMIT ?3)",
        Unit::Hours,
    ),
    (
        "DELETE FROM minutely WHERE (pipeline, minute, event, reason) IN
            (SELECT pipeline, minute, event, reason FROM minutely WHERE pipeline = ?1 AND minute < ?2 * 60 LIMIT ?3)",
        Unit::Hours,
    ),
    (
        "DELETE FROM traffic WHERE (pipeline, hour, target, proxy, reason) IN
            (SELECT pipeline, hour, target, proxy, reason FROM traffic WHERE pipeline = ?1 AND hour < ?2 LIMIT ?3)",
        Unit::Hours,
    ),
    (
        "DELETE FROM coverage WHERE (pipeline, version, hour, field) IN
            (SELECT pipeline, version, hour, field FROM coverage WHERE pipeline = ?1 AND hour < ?2 LIMIT ?3)",
        Unit::Hours,
    ),
    (
        "DELETE FROM cause_hour WHERE (key, hour) IN
            (SELECT h.key, h.hour FROM cause c JOIN cause_key k ON k.cause = c.id JOIN cause_hour h ON h.key = k.id
             WHERE c.pipeline = ?1 AND h.hour < ?2 LIMIT ?3)",
        Unit::Hours,
    ),
    (
        "DELETE FROM cause_target WHERE (key, target) IN
            (SELECT t.key, t.target FROM cause c JOIN cause_key k ON k.cause = c.id JOIN cause_target t ON t.key = k.id
             WHERE c.pipeline = ?1 AND t.last_seen < ?2 LIMIT ?3)",
        Unit::Millis,
    ),
    (
        "DELETE FROM tracked WHERE (pipeline, field, value) IN
            (SELECT pipeline, field, value FROM tracked WHERE pipeline = ?1 AND last_at < ?2 LIMIT ?3)",
        Unit::Millis,
    ),
    (
        "DELETE FROM dead_count WHERE (pipeline, by, value, reason) IN
            (SELECT pipeline, by, value, reason FROM dead_count WHERE pipeline = ?1 AND count = 0 AND ?2 > 0 LIMIT ?3)",
        Unit::Hours,
    ),
];

/// A table of receipts.
#[derive(Clone, Copy)]
struct Receipts {
    /// The name of the lap through it.
    name: &'static str,
    select: &'static str,
    delete: &'static str,
}

const DONE: Receipts = Receipts {
    name: "done",
    select: "SELECT job, pipeline, round, key, done_at, replays > 0 FROM done WHERE job > ?1 ORDER BY job",
    delete: "DELETE FROM done WHERE job = ?1",
};
const DISCARDED: Receipts = Receipts {
    name: "discarded",
    select: "SELECT job, pipeline, round, key, discarded_at, 0 FROM discarded WHERE job > ?1 ORDER BY job",
    delete: "DELETE FROM discarded WHERE job = ?1",
};

/// How long it takes until all receipts are looked through again.
const LAP_MILLIS: i64 = 86_400_000;

struct Receipt {
    job: JobId,
    pipeline: i64,
    round: String,
    key: Option<String>,
    ended_at: Timestamp,
    recovered: bool,
}

fn receipt(row: &Row<'_>) -> RowResult<Receipt> {
    Ok(Receipt {
        job: rows::job_id(row, 0)?,
        pipeline: row.get(1)?,
        round: row.get(2)?,
        key: row.get(3)?,
        ended_at: rows::time(row, 4)?,
        recovered: row.get(5)?,
    })
}

/// Looks at the next receipts; says whether there are more in this lap.
fn look_through(
    batch: &mut Batch<'_>,
    receipts: Receipts,
    pipeline: i64,
    params: &ForgetHistory,
) -> Result<bool, Fault> {
    let name = format!("{} {pipeline}", receipts.name);
    let Some(cursor) = lap(batch, &name, params.now)? else { return Ok(false) };
    let mut select = batch.statement(receipts.select)?;
    let piece = select.query_map([cursor], receipt)?.take(params.limit as usize).collect::<RowResult<Vec<_>>>()?;
    for receipt in piece.iter().filter(|receipt| receipt.pipeline == pipeline && receipt.ended_at < params.before) {
        if is_over(receipt.ended_at, met_on(batch, receipt)?, params.before) {
            forget(batch, receipts, receipt)?;
        }
    }
    let more = piece.len() == params.limit as usize;
    let cursor = piece.last().filter(|_| more).map(|receipt| receipt.job.as_bytes().to_vec());
    batch.statement("UPDATE lap SET cursor = ?2 WHERE name = ?1")?.execute(params![name, cursor])?;
    Ok(more)
}

/// Where to go on; nothing if all were looked at not long ago. A clock that was set back begins anew.
fn lap(batch: &Batch<'_>, name: &str, now: Timestamp) -> Result<Option<Vec<u8>>, Fault> {
    let mut select = batch.statement("SELECT cursor, begun_at FROM lap WHERE name = ?1")?;
    let kept: Option<(Option<Vec<u8>>, i64)> =
        select.query_row([name], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
    let now = now.as_millis();
    match kept {
        Some((Some(cursor), _)) => return Ok(Some(cursor)),
        Some((None, begun_at)) if (begun_at..begun_at + LAP_MILLIS).contains(&now) => return Ok(None),
        _ => {}
    }
    batch
        .statement(
            "INSERT INTO lap (name, begun_at) VALUES (?1, ?2) ON CONFLICT DO UPDATE SET begun_at = excluded.begun_at",
        )?
        .execute(params![name, now])?;
    Ok(Some(Vec::new()))
}

/// When a run last met the key of a job, if the job still has it.
fn met_on(batch: &Batch<'_>, receipt: &Receipt) -> Result<Option<i64>, Fault> {
    let Some(key) = &receipt.key else { return Ok(None) };
    let mut select =
        batch.statement("SELECT met_on FROM identity WHERE pipeline = ?1 AND round = ?2 AND key = ?3 AND job = ?4")?;
    let found =
        select.query_row(params![receipt.pipeline, receipt.round, key, receipt.job.as_bytes()], |row| row.get(0));
    Ok(found.optional()?)
}

/// Forgets a job, and counts it as forgotten: jobs that are queued, leased or dead have no receipt and keep their key.
fn forget(batch: &mut Batch<'_>, receipts: Receipts, receipt: &Receipt) -> Result<(), Fault> {
    let job = receipt.job.as_bytes();
    batch.statement(receipts.delete)?.execute([job])?;
    if let Some(key) = &receipt.key {
        batch
            .statement("DELETE FROM identity WHERE pipeline = ?1 AND round = ?2 AND key = ?3 AND job = ?4")?
            .execute(params![receipt.pipeline, receipt.round, key, job])?;
    }
    batch.statement("DELETE FROM late WHERE job = ?1")?.execute([job])?;
    batch.statement("DELETE FROM failure WHERE job = ?1")?.execute([job])?;
    payloads::let_go(batch, receipt.job, None)?;
    let forgotten = &mut batch.ledger(receipt.pipeline).forgotten;
    match receipts.name == DONE.name {
        true => forgotten.done += 1,
        false => forgotten.discarded += 1,
    }
    forgotten.recovered += i64::from(receipt.recovered);
    Ok(())
}
