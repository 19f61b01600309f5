//! Cancelling jobs that are queued or leased.

use redrive_core::counts::{Delta, Event};
use redrive_core::ids::JobId;
use redrive_core::replays::LetterState;
use redrive_core::state::{JobState, Move};
use serde_json::json;

use super::batch::Batch;
use super::fault::Fault;
use super::replay_letters::{self, Ended};
use super::sql::args;
use super::{activity, enqueuing, lanes, payloads};
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
pub(super) async fn cancel(batch: &mut Batch, params: &CancelJobs) -> Result<Vec<JobId>, Fault> {
    check_count(&params.ids)?;
    let mut places = enqueuing::places_of(batch.conn(), &params.ids).await?;
    let mut cancelled = Vec::new();
    for id in &params.ids {
        if let Some((state @ (JobState::Queued | JobState::Leased), _)) = places.remove(id) {
            cancel_one(batch, *id, state, params).await?;
            cancelled.push(*id);
        }
    }
    if let [first, ..] = cancelled.as_slice() {
        let object = if cancelled.len() == 1 { format!("job {first}") } else { "jobs".to_owned() };
        let pipelines = activity::pipelines_of(batch, &cancelled).await?;
        let detail = json!({"jobs": cancelled.len(), "why": params.why, "pipelines": pipelines});
        activity::note(batch, &params.by, ("cancel", &object), &detail, params.now).await?;
    }
    Ok(cancelled)
}

async fn cancel_one(batch: &mut Batch, id: JobId, state: JobState, params: &CancelJobs) -> Result<(), Fault> {
    let sql = "WITH gone AS (DELETE FROM job WHERE id = $1 RETURNING *), noted AS (
                   INSERT INTO discarded (job, pipeline, key, target, was, reason, code, attempts, crashes, replays, accepted_at,
                                          discarded_at, actor, why, number, round, origin)
                   SELECT id, pipeline, key, target, $2, reason, code, attempts, crashes, replays, accepted_at, $3, $4, $5, seq,
                          round, origin FROM gone)
               SELECT seq, pipeline, attempts + crashes > 0, replay, round FROM gone";
    let record = args![id, state.as_str(), params.now, params.by.name, params.why];
    let (seq, pipeline, tried, replay, round): (i64, i64, bool, Option<i64>, String) = batch
        .conn()
        .query_one(sql, record, |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?)))
        .await?;
    batch.shift((pipeline, &round), state, Move::Discard)?;
    batch.count(pipeline, params.now, Delta::of(Event::Discarded));
    if state == JobState::Leased {
        batch.touch(Topic::Leases);
        end_lease(batch, id).await?;
    } else {
        batch.ledger(pipeline).retrying -= i64::from(tried);
        lanes::pull_anywhere(batch, seq).await?;
    }
    if let Some(replay) = replay {
        let ended = Ended { replay, job: id, pipeline, state: LetterState::Gone, keys: (None, None) };
        replay_letters::note_end(batch, &ended, params.now).await?;
    }
    payloads::let_go(batch, &[id]).await
}

/// Ends a lease that its holder may not have heard of yet. If it was the first of its token, another one is: whoever asks for them
/// again, because the answer was lost, is to get the others.
async fn end_lease(batch: &Batch, job: JobId) -> Result<(), Fault> {
    let sql = "WITH ended AS (DELETE FROM lease WHERE job = $1 RETURNING token, first)
               UPDATE lease SET first = true WHERE job =
                   (SELECT l.job FROM lease l JOIN job j ON j.seq = l.seq
                    WHERE l.token = (SELECT token FROM ended WHERE first) AND l.job <> $1 ORDER BY j.due_at, j.seq LIMIT 1)";
    batch.conn().execute(sql, args![job]).await?;
    Ok(())
}
