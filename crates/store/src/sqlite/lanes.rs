//! Lanes: where queued jobs wait until they are due. One table has the places in all of them, so that a job is in one place.
//!
//! Places refer to lanes by number, which is quicker to compare than a name. The queue of a pipeline has the pipeline's number; the
//! other lanes, of what replays sent and of what is held, have a name and a number below zero.

use std::collections::BTreeMap;

use redrive_core::time::Timestamp;
use rusqlite::{OptionalExtension, params};

use super::batch::Batch;
use super::fault::Fault;
use super::rows::RowResult;
use crate::lanes::{held_name, held_range, replay_name};

/// The lane of a pipeline's queue.
pub(super) const fn queue(pipeline: i64) -> i64 {
    pipeline
}

/// The lane that a job waits in if it is not held, if there is one: that of the replay that sent it, else the queue.
pub(super) fn find_home(batch: &Batch<'_>, pipeline: i64, sent_by: Option<i64>) -> Result<Option<i64>, Fault> {
    match sent_by {
        Some(replay) => find(batch, pipeline, &replay_name(replay)),
        None => Ok(Some(queue(pipeline))),
    }
}

/// The same, made if need be.
pub(super) fn home(batch: &Batch<'_>, pipeline: i64, sent_by: Option<i64>) -> Result<i64, Fault> {
    match sent_by {
        Some(replay) => find_or_make(batch, pipeline, &replay_name(replay)),
        None => Ok(queue(pipeline)),
    }
}

/// The lane of what is held of a target beside a lane, if anything is.
pub(super) fn find_held(
    batch: &Batch<'_>,
    pipeline: i64,
    sent_by: Option<i64>,
    target: &str,
) -> Result<Option<i64>, Fault> {
    find(batch, pipeline, &held_name(sent_by, target))
}

/// The same, made if need be.
pub(super) fn held(batch: &Batch<'_>, pipeline: i64, sent_by: Option<i64>, target: &str) -> Result<i64, Fault> {
    find_or_make(batch, pipeline, &held_name(sent_by, target))
}

fn find(batch: &Batch<'_>, pipeline: i64, name: &str) -> Result<Option<i64>, Fault> {
    let mut select = batch.statement("SELECT id FROM lane WHERE pipeline = ?1 AND name = ?2")?;
    Ok(select.query_row(params![pipeline, name], |row| row.get(0)).optional()?)
}

fn find_or_make(batch: &Batch<'_>, pipeline: i64, name: &str) -> Result<i64, Fault> {
    if let Some(lane) = find(batch, pipeline, name)? {
        return Ok(lane);
    }
    batch
        .statement(
            "INSERT INTO lane (id, pipeline, name) SELECT ifnull(min(id), 0) - 1, ?1, ?2 FROM lane WHERE id < 0",
        )?
        .execute(params![pipeline, name])?;
    Ok(batch.connection().last_insert_rowid())
}

/// Counts jobs that came to a held lane, or left it. One that nothing is held in goes.
pub(super) fn count_held(batch: &Batch<'_>, lane: i64, jobs: i64) -> Result<(), Fault> {
    if jobs == 0 {
        return Ok(());
    }
    batch.statement("UPDATE lane SET jobs = jobs + ?2 WHERE id = ?1")?.execute([lane, jobs])?;
    batch.statement("DELETE FROM lane WHERE id = ?1 AND jobs = 0")?.execute([lane])?;
    Ok(())
}

/// How many jobs of each target are held beside a lane.
pub(super) fn list_held(
    batch: &Batch<'_>,
    pipeline: i64,
    sent_by: Option<i64>,
) -> Result<BTreeMap<String, u64>, Fault> {
    let (from, to) = held_range(sent_by);
    let mut select = batch.statement(
        "SELECT substr(name, ?4), jobs FROM lane WHERE pipeline = ?1 AND name >= ?2 AND name < ?3 ORDER BY name",
    )?;
    let start = i64::try_from(from.len() + 1).unwrap_or(1);
    let rows = select.query_map(params![pipeline, from, to, start], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(rows.collect::<RowResult<_>>()?)
}

/// Forgets the lanes of replays that were forgotten: nothing is in them.
pub(super) fn forget(batch: &Batch<'_>) -> Result<(), Fault> {
    let sql =
        "DELETE FROM lane WHERE name LIKE 'r%' AND CAST(substr(name, 2) AS INTEGER) NOT IN (SELECT id FROM replay)";
    batch.statement(sql)?.execute([])?;
    Ok(())
}

/// Puts a job into a lane.
pub(super) fn push(batch: &mut Batch<'_>, lane: i64, due_at: Timestamp, seq: i64) -> Result<(), Fault> {
    let insert = batch.hot("INSERT INTO place (lane, due_at, seq) VALUES (?1, ?2, ?3)")?;
    insert.execute([lane, due_at.as_millis(), seq])?;
    Ok(())
}

/// Takes a job out of a lane; says whether it was there.
pub(super) fn pull(batch: &mut Batch<'_>, lane: i64, due_at: Timestamp, seq: i64) -> Result<bool, Fault> {
    let delete = batch.hot("DELETE FROM place WHERE lane = ?1 AND due_at = ?2 AND seq = ?3")?;
    Ok(delete.execute([lane, due_at.as_millis(), seq])? == 1)
}

/// Takes the jobs at the head of a lane out of it, up to this one.
pub(super) fn pull_until(batch: &mut Batch<'_>, lane: i64, due_at: Timestamp, seq: i64) -> Result<(), Fault> {
    let delete = batch.hot("DELETE FROM place WHERE lane = ?1 AND (due_at, seq) <= (?2, ?3)")?;
    delete.execute([lane, due_at.as_millis(), seq])?;
    Ok(())
}

/// Takes a job that is not leased out of wherever it waits; says whether it was there.
pub(super) fn pull_anywhere(
    batch: &mut Batch<'_>,
    (pipeline, sent_by, target): (i64, Option<i64>, Option<&str>),
    due_at: Timestamp,
    seq: i64,
) -> Result<bool, Fault> {
    if let Some(lane) = find_home(batch, pipeline, sent_by)?
        && pull(batch, lane, due_at, seq)?
    {
        return Ok(true);
    }
    let Some(lane) = find_held(batch, pipeline, sent_by, target.unwrap_or_default())? else { return Ok(false) };
    let was_held = pull(batch, lane, due_at, seq)?;
    count_held(batch, lane, -i64::from(was_held))?;
    Ok(was_held)
}
