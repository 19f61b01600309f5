//! Lanes: where queued jobs wait until they are due. One table has all of them, so that a job is in one place.

use std::collections::BTreeMap;

use redrive_core::time::Timestamp;
use rusqlite::params;

use super::batch::Batch;
use super::fault::Fault;
use super::rows::RowResult;

/// The lane of a pipeline's queue.
pub(super) const QUEUE: &str = "";

/// The lane of what is held of a target, beside the lane that it came from.
pub(super) fn held(beside: &str, target: &str) -> String {
    format!("{beside}h{target}")
}

/// Counts jobs that came to a held lane, or left it.
pub(super) fn count_held(batch: &Batch<'_>, pipeline: i64, lane: &str, jobs: i64) -> Result<(), Fault> {
    if jobs == 0 {
        return Ok(());
    }
    batch
        .statement(
            "INSERT INTO held (pipeline, lane, jobs) VALUES (?1, ?2, ?3)
             ON CONFLICT DO UPDATE SET jobs = jobs + excluded.jobs",
        )?
        .execute(params![pipeline, lane, jobs])?;
    batch
        .statement("DELETE FROM held WHERE pipeline = ?1 AND lane = ?2 AND jobs = 0")?
        .execute(params![pipeline, lane])?;
    Ok(())
}

/// How many jobs of each target are held beside a lane.
pub(super) fn list_held(batch: &Batch<'_>, pipeline: i64, beside: &str) -> Result<BTreeMap<String, u64>, Fault> {
    // Text that begins with the lane and an `h` comes before the lane and an `i`.
    let (from, to) = (held(beside, ""), format!("{beside}i"));
    let mut select = batch.statement(
        "SELECT substr(lane, ?4), jobs FROM held WHERE pipeline = ?1 AND lane >= ?2 AND lane < ?3 ORDER BY lane",
    )?;
    let start = i64::try_from(from.len() + 1).unwrap_or(1);
    let rows = select.query_map(params![pipeline, from, to, start], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(rows.collect::<RowResult<_>>()?)
}

/// The lane of what a replay sent.
pub(super) fn replay(replay: i64) -> String {
    format!("r{replay}")
}

/// The lane that a job goes to when it is queued: that of its replay, if one sent it.
pub(super) fn home(sent_by: Option<i64>) -> String {
    sent_by.map_or_else(String::new, replay)
}

/// Puts a job into a lane.
pub(super) fn push(batch: &Batch<'_>, pipeline: i64, lane: &str, due_at: Timestamp, seq: i64) -> Result<(), Fault> {
    let mut insert = batch.statement("INSERT INTO place (pipeline, lane, due_at, seq) VALUES (?1, ?2, ?3, ?4)")?;
    insert.execute(params![pipeline, lane, due_at.as_millis(), seq])?;
    Ok(())
}

/// Takes a job out of a lane; says whether it was there.
pub(super) fn pull(batch: &Batch<'_>, pipeline: i64, lane: &str, due_at: Timestamp, seq: i64) -> Result<bool, Fault> {
    let mut delete =
        batch.statement("DELETE FROM place WHERE pipeline = ?1 AND lane = ?2 AND due_at = ?3 AND seq = ?4")?;
    Ok(delete.execute(params![pipeline, lane, due_at.as_millis(), seq])? == 1)
}
