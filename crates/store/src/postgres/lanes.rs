//! Lanes: where queued jobs wait until they are due. One table has the places in all of them, so that a job is in one place.
//!
//! Places refer to lanes by number. The queue of a pipeline has the pipeline's number; the other lanes, of what replays sent and of
//! what is held, have a name and a number below zero.

use std::collections::BTreeMap;

use super::batch::Batch;
use super::fault::Fault;
use super::sql::args;
use crate::lanes::{held_name, held_range, replay_name};

/// The lane of a pipeline's queue.
pub(super) const fn queue(pipeline: i64) -> i64 {
    pipeline
}

/// The lane that a job waits in if it is not held, if there is one: that of the replay that sent it, else the queue.
pub(super) async fn find_home(batch: &Batch, pipeline: i64, sent_by: Option<i64>) -> Result<Option<i64>, Fault> {
    match sent_by {
        Some(replay) => find(batch, pipeline, &replay_name(replay)).await,
        None => Ok(Some(queue(pipeline))),
    }
}

/// The same, made if need be.
pub(super) async fn home(batch: &Batch, pipeline: i64, sent_by: Option<i64>) -> Result<i64, Fault> {
    match sent_by {
        Some(replay) => find_or_make(batch, pipeline, &replay_name(replay)).await,
        None => Ok(queue(pipeline)),
    }
}

/// The lane of what is held of a target beside a lane, if anything is.
pub(super) async fn find_held(
    batch: &Batch,
    pipeline: i64,
    sent_by: Option<i64>,
    target: &str,
) -> Result<Option<i64>, Fault> {
    find(batch, pipeline, &held_name(sent_by, target)).await
}

/// The same, made if need be.
pub(super) async fn held(batch: &Batch, pipeline: i64, sent_by: Option<i64>, target: &str) -> Result<i64, Fault> {
    find_or_make(batch, pipeline, &held_name(sent_by, target)).await
}

async fn find(batch: &Batch, pipeline: i64, name: &str) -> Result<Option<i64>, Fault> {
    let sql = "SELECT id FROM lane WHERE pipeline = $1 AND name = $2";
    batch.conn().query_opt(sql, args![pipeline, name], |row| row.get(0)).await
}

async fn find_or_make(batch: &Batch, pipeline: i64, name: &str) -> Result<i64, Fault> {
    if let Some(lane) = find(batch, pipeline, name).await? {
        return Ok(lane);
    }
    let sql = "INSERT INTO lane (pipeline, name) VALUES ($1, $2) ON CONFLICT DO NOTHING";
    batch.conn().execute(sql, args![pipeline, name]).await?;
    find(batch, pipeline, name).await?.ok_or(Fault::NoRow)
}

/// Counts jobs that came to a held lane, or left it. One that nothing is held in goes.
pub(super) async fn count_held(batch: &Batch, lane: i64, jobs: i64) -> Result<(), Fault> {
    if jobs != 0 {
        batch.conn().execute("UPDATE lane SET jobs = jobs + $2 WHERE id = $1", args![lane, jobs]).await?;
        batch.conn().execute("DELETE FROM lane WHERE id = $1 AND jobs = 0", args![lane]).await?;
    }
    Ok(())
}

/// How many jobs of each target are held beside a lane.
pub(super) async fn list_held(
    batch: &Batch,
    pipeline: i64,
    sent_by: Option<i64>,
) -> Result<BTreeMap<String, u64>, Fault> {
    let (from, to) = held_range(sent_by);
    let sql = "SELECT substr(name, $4::integer), jobs FROM lane WHERE pipeline = $1 AND name >= $2 AND name < $3";
    let held = args![pipeline, from, to, from.len() + 1];
    let held = batch.conn().query(sql, held, |row| Ok((row.get(0)?, row.get(1)?))).await?;
    Ok(held.into_iter().collect())
}

/// Forgets the lanes of replays that were forgotten: nothing is in them.
pub(super) async fn forget(batch: &Batch) -> Result<(), Fault> {
    let sql = "DELETE FROM lane WHERE name LIKE 'r%'
               AND substring(name FROM '^r([0-9]+)')::bigint NOT IN (SELECT id FROM replay)";
    batch.conn().execute(sql, args![]).await?;
    Ok(())
}

/// Puts jobs into a lane: when each is due, and its number.
pub(super) async fn push(batch: &Batch, lane: i64, jobs: &[(i64, i64)]) -> Result<(), Fault> {
    if jobs.is_empty() {
        return Ok(());
    }
    let (due, seqs): (Vec<i64>, Vec<i64>) = jobs.iter().copied().unzip();
    let sql = "INSERT INTO place (lane, due_at, seq) SELECT $1, u.due_at, u.seq FROM unnest($2::bigint[], $3::bigint[]) AS u(due_at, seq)";
    batch.conn().send(sql, args![lane, due, seqs]).await
}

/// Takes a job that is not leased out of wherever it waits; says whether it was there.
pub(super) async fn pull_anywhere(batch: &Batch, seq: i64) -> Result<bool, Fault> {
    let sql = "DELETE FROM place WHERE seq = $1 RETURNING lane";
    let lane: Option<i64> = batch.conn().query_opt(sql, args![seq], |row| row.get(0)).await?;
    let Some(lane) = lane else { return Ok(false) };
    // Only lanes of what is held count their jobs.
    let sql = "UPDATE lane SET jobs = jobs - 1 WHERE id = $1 AND jobs > 0";
    if lane < 0 && batch.conn().execute(sql, args![lane]).await? > 0 {
        batch.conn().execute("DELETE FROM lane WHERE id = $1 AND jobs = 0", args![lane]).await?;
    }
    Ok(true)
}

/// Moves a job within its lane to another due time, if it is where it was; says whether it was.
pub(super) async fn postpone(batch: &Batch, lane: i64, (from, to): (i64, i64), seq: i64) -> Result<bool, Fault> {
    let sql = "UPDATE place SET due_at = $3 WHERE lane = $1 AND due_at = $2 AND seq = $4";
    Ok(batch.conn().execute(sql, args![lane, from, to, seq]).await? == 1)
}
