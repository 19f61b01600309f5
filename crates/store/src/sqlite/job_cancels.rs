//! Cancelling jobs that are queued or leased.

use redrive_core::counts::{Delta, Event};
use redrive_core::ids::JobId;
use redrive_core::replays::LetterState;
use redrive_core::state::{JobState, Move};
use redrive_core::time::Timestamp;
use rusqlite::params;
use serde_json::json;

use super::batch::Batch;
use super::fault::Fault;
use super::replay_letters::{self, Ended};
use super::{activity, jobs, lanes, leases, payloads, rows};
use crate::contract::{CancelJobs, IDS_MAX, Topic};
use crate::error::StoreError;

/// Refuses more ids than are worked on in one step.
pub(super) fn check_count(ids: &[JobId]) -> Result<(), Fault> {
    match ids.len() {
        count if count > IDS_MAX => Err(StoreError::TooBroad { what: format!("to name {count} tasks") }.into()),
        _ => Ok(()),
    }
}

/// Discards jobs, as far as they can be; says which.
pub(super) fn cancel(batch: &mut Batch<'_>, params: &CancelJobs) -> Result<Vec<JobId>, Fault> {
    check_count(&params.ids)?;
    let mut cancelled = Vec::new();
    for id in &params.ids {
        let state = jobs::state_of(batch.connection(), *id)?;
        if let Some(state @ (JobState::Queued | JobState::Leased)) = state {
            cancel_one(batch, *id, state, params)?;
            cancelled.push(*id);
        }
    }
    if let [first, ..] = cancelled.as_slice() {
        let object = if cancelled.len() == 1 { format!("job {first}") } else { "jobs".to_owned() };
        let pipelines = activity::pipelines_of(batch, &cancelled)?;
        let detail = json!({"jobs": cancelled.len(), "why": params.why, "pipelines": pipelines});
        activity::note(batch, &params.by, ("cancel", &object), &detail, params.now)?;
    }
    Ok(cancelled)
}

fn cancel_one(batch: &mut Batch<'_>, id: JobId, state: JobState, params: &CancelJobs) -> Result<(), Fault> {
    let mut select = batch.statement(
        "SELECT seq, pipeline, target, due_at, attempts + crashes > 0, replay, round FROM job WHERE id = ?1",
    )?;
    let (seq, pipeline, target, due_at, tried, replay, round) = select.query_row([id.as_bytes()], |row| {
        let (seq, pipeline, due_at): (i64, i64, Timestamp) = (row.get(0)?, row.get(1)?, rows::time(row, 3)?);
        Ok((
            seq,
            pipeline,
            row.get::<_, Option<String>>(2)?,
            due_at,
            row.get::<_, bool>(4)?,
            row.get::<_, Option<i64>>(5)?,
            row.get::<_, String>(6)?,
        ))
    })?;
    batch.shift((pipeline, &round), state, Move::Discard)?;
    batch.count(pipeline, params.now, Delta::of(Event::Discarded));
    batch
        .statement(
            "INSERT INTO discarded (job, pipeline, key, target, was, reason, code, attempts, crashes, replays, accepted_at,
                                    discarded_at, actor, why, number, round, origin)
             SELECT id, pipeline, key, target, ?2, reason, code, attempts, crashes, replays, accepted_at, ?3, ?4, ?5, seq,
                    round, origin
             FROM job WHERE id = ?1",
        )?
        .execute(params![id.as_bytes(), state.as_str(), params.now.as_millis(), params.by.name, params.why])?;
    if state == JobState::Leased {
        batch.touch(Topic::Leases);
        leases::end(batch, id)?;
    } else {
        batch.ledger(pipeline).retrying -= i64::from(tried);
        lanes::pull_anywhere(batch, (pipeline, replay, target.as_deref()), due_at, seq)?;
    }
    if let Some(replay) = replay {
        let ended = Ended { replay, job: id, pipeline, state: LetterState::Gone, keys: (None, None) };
        replay_letters::note_end(batch, &ended, params.now)?;
    }
    batch.statement("DELETE FROM job WHERE seq = ?1")?.execute([seq])?;
    payloads::let_go(batch, id, None)
}
