//! Settling: the lease is checked, then the job goes where the decision says, with its failure and its ledger entry.

use redrive_core::dead::Gate;
use redrive_core::failures::Failure;
use redrive_core::settlements::{Decision, Destination, Settlement};
use redrive_core::state::{JobState, Move};
use redrive_core::time::Timestamp;
use rusqlite::{OptionalExtension, params};

use super::batch::{Batch, Event};
use super::breakers;
use super::fault::Fault;
use super::{jobs, payloads, rows};
use crate::contract::{SettleJobs, Settled};

pub(super) fn settle(batch: &mut Batch<'_>, params: &SettleJobs) -> Result<Vec<Settled>, Fault> {
    params.settlements.iter().map(|settlement| settle_one(batch, settlement, params)).collect()
}

fn settle_one(batch: &mut Batch<'_>, settlement: &Settlement, params: &SettleJobs) -> Result<Settled, Fault> {
    let Some(seq) = release(batch, settlement)? else {
        if params.keep_late {
            keep_late(batch, settlement, params)?;
        }
        return Ok(Settled::Stale);
    };
    let decision = &settlement.decision;
    if let Some(failure) = &decision.failure {
        rows::add_failure(batch.connection(), settlement.lease.job, failure)?;
    }
    if decision.destination == Destination::Done {
        payloads::let_go(batch, settlement.lease.job)?;
    }
    if let Some(payload) = decision.payload() {
        payloads::refer(batch, settlement.lease.job, payload, params.now)?;
    }
    let Moved { pipeline, target } = match &decision.destination {
        Destination::Done => complete(batch, seq, decision, params.now)?,
        Destination::Queue { due_at } => requeue(batch, seq, decision, *due_at, params.now)?,
        Destination::Dead { gate } => bury(batch, seq, decision, *gate, params.now)?,
    };
    if let Some(target) = target {
        breakers::record(batch, (pipeline, &target), decision.signal, &params.breaker, params.now)?;
    }
    Ok(Settled::Applied)
}

/// Ends the lease if it is the right one; says which row the job is.
fn release(batch: &Batch<'_>, settlement: &Settlement) -> Result<Option<i64>, Fault> {
    let lease = &settlement.lease;
    // Asked first and deleted then: `RETURNING` costs more than both.
    let seq = batch
        .statement("SELECT seq FROM lease WHERE job = ?1 AND token = ?2 AND epoch = ?3")?
        .query_row(params![lease.job.as_bytes(), lease.token.as_bytes(), lease.epoch], |row| row.get(0))
        .optional()?;
    if seq.is_some() {
        batch.statement("DELETE FROM lease WHERE job = ?1")?.execute([lease.job.as_bytes()])?;
    }
    Ok(seq)
}

fn keep_late(batch: &Batch<'_>, settlement: &Settlement, params: &SettleJobs) -> Result<(), Fault> {
    let destination = match settlement.decision.destination {
        Destination::Done => JobState::Done,
        Destination::Queue { .. } => JobState::Queued,
        Destination::Dead { .. } => JobState::Dead,
    };
    let failure = settlement.decision.failure.as_ref().map(serde_json::to_string).transpose()?;
    batch
        .statement("INSERT INTO late (job, at, worker, epoch, destination, failure) VALUES (?1, ?2, ?3, ?4, ?5, ?6)")?
        .execute(params![
            settlement.lease.job.as_bytes(),
            params.now.as_millis(),
            params.worker.as_bytes(),
            settlement.lease.epoch,
            destination.as_str(),
            failure
        ])?;
    Ok(())
}

/// What a settled job leaves to be noted.
struct Moved {
    pipeline: i64,
    target: Option<String>,
}

fn complete(batch: &mut Batch<'_>, seq: i64, decision: &Decision, now: Timestamp) -> Result<Moved, Fault> {
    let mut select = batch.statement("SELECT id, pipeline, key, target, accepted_at FROM job WHERE seq = ?1")?;
    let (id, pipeline, key, target, accepted_at): ([u8; 16], i64, Option<String>, Option<String>, i64) =
        select.query_row([seq], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?)))?;
    batch.statement("DELETE FROM job WHERE seq = ?1")?.execute([seq])?;
    let tally = decision.tally;
    batch
        .statement(
            "INSERT INTO done (job, pipeline, key, target, accepted_at, done_at, attempts, crashes, replays)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        )?
        .execute(params![
            id,
            pipeline,
            key,
            target,
            accepted_at,
            now.as_millis(),
            tally.attempts,
            tally.crashes,
            tally.replays
        ])?;
    batch.shift(pipeline, JobState::Leased, Move::Complete)?;
    batch.count(pipeline, now, Event::Done, None);
    if tally.replays > 0 {
        batch.ledger(pipeline).recovered += 1;
        batch.count(pipeline, now, Event::Recovered, None);
    }
    Ok(Moved { pipeline, target })
}

fn requeue(
    batch: &mut Batch<'_>,
    seq: i64,
    decision: &Decision,
    due_at: Timestamp,
    now: Timestamp,
) -> Result<Moved, Fault> {
    let (tally, failure) = (decision.tally, decision.failure.as_ref());
    let mut update = batch.statement(
        "UPDATE job SET due_at = ?2, attempts = ?3, crashes = ?4, suspect = ?5, reason = ifnull(?6, reason),
                        code = iif(?6 IS NULL, code, ?7)
         WHERE seq = ?1 RETURNING pipeline, target",
    )?;
    let (pipeline, target) = update.query_row(
        params![
            seq,
            due_at.as_millis(),
            tally.attempts,
            tally.crashes,
            tally.suspect,
            failure.map(|f| f.reason.as_str()),
            failure.and_then(|f| f.code.as_deref())
        ],
        |row| Ok((row.get(0)?, row.get(1)?)),
    )?;
    jobs::push(batch, pipeline, seq, due_at)?;
    batch.shift(pipeline, JobState::Leased, Move::Requeue)?;
    batch.ledger(pipeline).retrying += i64::from(tally.tried());
    if let Some(failure) = failure {
        let event = if failure.crash { Event::Crashed } else { Event::Retried };
        batch.count(pipeline, now, event, Some(failure.reason));
    }
    Ok(Moved { pipeline, target })
}

fn bury(batch: &mut Batch<'_>, seq: i64, decision: &Decision, gate: Gate, now: Timestamp) -> Result<Moved, Fault> {
    let tally = decision.tally;
    let failure: &Failure = decision.failure.as_ref().ok_or(rusqlite::Error::InvalidQuery)?;
    batch
        .statement(
            "INSERT INTO dead (id, pipeline, key, target, accepted_at, died_at, kept_from, attempts, crashes, replays, gate,
                               reason, code, http_status, proxy, message, payload, input)
             SELECT id, pipeline, key, target, accepted_at, ?2, ?2, ?3, ?4, replays, ?5, ?6, ?7, ?8, ?9, ?10, ?11, input
             FROM job WHERE seq = ?1",
        )?
        .execute(params![
            seq,
            now.as_millis(),
            tally.attempts,
            tally.crashes,
            gate.as_str(),
            failure.reason.as_str(),
            failure.code,
            failure.http_status,
            failure.proxy,
            failure.message,
            failure.payload.as_ref().map(|payload| payload.hash.as_bytes())
        ])?;
    let mut delete = batch.statement("DELETE FROM job WHERE seq = ?1 RETURNING pipeline, target")?;
    let (pipeline, target) = delete.query_row([seq], |row| Ok((row.get(0)?, row.get(1)?)))?;
    batch.shift(pipeline, JobState::Leased, Move::Bury)?;
    if failure.crash {
        batch.count(pipeline, now, Event::Crashed, Some(failure.reason));
    }
    batch.count(pipeline, now, Event::Buried, Some(failure.reason));
    Ok(Moved { pipeline, target })
}
