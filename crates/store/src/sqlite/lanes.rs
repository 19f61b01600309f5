//! Lanes: where queued jobs wait until they are due. One table has all of them, so that a job is in one place.

use redrive_core::time::Timestamp;
use rusqlite::params;

use super::batch::Batch;
use super::fault::Fault;

/// The lane of a pipeline's queue.
pub(super) const QUEUE: &str = "";

/// The lane of what is held of a target.
pub(super) fn held(target: &str) -> String {
    format!("h{target}")
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
