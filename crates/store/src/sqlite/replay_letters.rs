//! The letters of a replay on their way: sent, and come to their end.

use redrive_core::failures::Reason;
use redrive_core::ids::JobId;
use redrive_core::jobs::{Input, edited};
use redrive_core::replays::{LetterState, ReplayMode};
use redrive_core::state::{JobState, Move};
use redrive_core::time::Timestamp;
use rusqlite::{OptionalExtension, params};

use super::batch::{Batch, Event};
use super::fault::Fault;
use super::lanes;
use super::rows::{self, RowResult};
use crate::contract::ReplayView;

/// Sends so many letters, in their order.
pub(super) fn send(
    batch: &mut Batch<'_>,
    replay: i64,
    view: &ReplayView,
    letters: u32,
    now: Timestamp,
) -> Result<(), Fault> {
    let mut select = batch.statement(
        "SELECT n, job FROM replay_letter INDEXED BY replay_letter_pending
         WHERE replay = ?1 AND state = 'pending' ORDER BY n",
    )?;
    let rows = select.query_map([replay], |row| Ok((row.get::<_, i64>(0)?, rows::job_id(row, 1)?)))?;
    let turn = rows.take(letters as usize).collect::<RowResult<Vec<_>>>()?;
    let mut gone = 0;
    for (n, job) in &turn {
        let sent = send_one(batch, replay, view, *job, now)?;
        let (state, claimed) = if sent { (LetterState::Running, true) } else { (LetterState::Gone, false) };
        gone += i64::from(!sent);
        batch
            .statement("UPDATE replay_letter SET state = ?3, claimed = ?4, ended_at = ?5 WHERE replay = ?1 AND n = ?2")?
            .execute(params![replay, n, state.as_str(), claimed, (!claimed).then_some(now.as_millis())])?;
    }
    let turn = i64::try_from(turn.len()).unwrap_or(0);
    batch
        .statement(
            "UPDATE replay SET pending = pending - ?2, running = running + ?2 - ?3, gone = gone + ?3,
                               step_settled = step_settled + ?3
             WHERE id = ?1",
        )?
        .execute([replay, turn, gone])?;
    Ok(())
}

/// A dead letter on its way back.
struct Letter {
    seq: i64,
    pipeline: i64,
    target: Option<String>,
    cause_key: Option<i64>,
    input: Input,
    reason: Reason,
    /// Whether any attempt of it ever came to a verdict.
    tried: bool,
}

/// Moves a dead letter into the replay's lane; says whether it was there and the changes to its input fit.
fn send_one(batch: &mut Batch<'_>, replay: i64, view: &ReplayView, job: JobId, now: Timestamp) -> Result<bool, Fault> {
    let mut select = batch.statement(
        "SELECT seq, pipeline, target, cause_key, input, reason, attempts + crashes > 0 FROM dead WHERE id = ?1",
    )?;
    let found = select
        .query_row([job.as_bytes()], |row| {
            Ok(Letter {
                seq: row.get(0)?,
                pipeline: row.get(1)?,
                target: row.get(2)?,
                cause_key: row.get(3)?,
                input: rows::input(row, 4)?,
                reason: rows::parsed(row, 5)?,
                tried: row.get(6)?,
            })
        })
        .optional()?;
    let Some(letter) = found else { return Ok(false) };
    let (input, target) = match view.edits.is_empty() {
        true => (None, letter.target.clone()),
        false => match edited(&letter.input, &view.edits, letter.target.as_deref()) {
            Some((input, target)) => (Some(input), target),
            None => return Ok(false),
        },
    };
    let input = input.map(|input| serde_json::to_string(&input)).transpose()?;
    batch
        .statement(
            "INSERT INTO job (id, pipeline, key, target, accepted_at, due_at, attempts, attempts_before, crashes, replays,
                              suspect, reason, code, input, replay, saved, cause_key, original, auto_replays, tracked,
                              automatic, progress, seq, round, origin)
             SELECT id, pipeline, key, ?3, accepted_at, ?2, attempts, attempts, crashes, min(replays + 1, 4294967295), crashes > 0 OR suspect, reason,
                    code,
                    ifnull(?4, input), ?5, iif(?6, payload, NULL), cause_key,
                    iif(?4 IS NULL, original, ifnull(original, input)), min(auto_replays + ?7, 4294967295),
                    tracked, ?7, iif(?4 IS NULL AND ?8, progress, NULL), seq, round, origin
             FROM dead WHERE seq = ?1",
        )?
        .execute(params![
            letter.seq,
            now.as_millis(),
            target,
            input,
            replay,
            view.mode == ReplayMode::Saved,
            view.automatic,
            view.mode != ReplayMode::Resubmit
        ])?;
    batch
        .statement(
            "UPDATE replay_letter SET letter = (SELECT json_object('gate', gate, 'died_at', died_at, 'kept_from', kept_from,
                    'http_status', http_status, 'proxy', proxy, 'message', message, 'verdict', verdict, 'cut', payload_cut,
                    'lost', payload_lost,
                    'payload', hex(payload), 'failures', (SELECT ifnull(max(n), 0) FROM failure WHERE job = id),
                    'progress', iif(?3, NULL, progress))
                    FROM dead WHERE seq = ?1)
             WHERE job = ?2 AND claimed = 1",
        )?
        // A task is that of the input as it was.
        .execute(params![letter.seq, job.as_bytes(), input.is_some()])?;
    batch.statement("DELETE FROM dead WHERE seq = ?1")?.execute([letter.seq])?;
    lanes::push(batch, letter.pipeline, &lanes::replay(replay), now, letter.seq)?;
    batch.shift(letter.pipeline, JobState::Dead, Move::Replay)?;
    let ledger = batch.ledger(letter.pipeline);
    ledger.retrying += i64::from(letter.tried);
    ledger.replaying += 1;
    batch.count(letter.pipeline, now, Event::Replayed, Some(letter.reason));
    if let Some(key) = letter.cause_key {
        batch.tallies.key(key).dead -= 1;
    }
    Ok(true)
}

/// How a letter that a replay had sent came to its end.
pub(super) struct Ended {
    pub(super) replay: i64,
    pub(super) job: JobId,
    pub(super) pipeline: i64,
    pub(super) state: LetterState,
    /// The key it was dead of, and the one it failed for now.
    pub(super) keys: (Option<i64>, Option<i64>),
}

/// Notes how a letter came to its end, and lets go of it.
pub(super) fn note_end(batch: &mut Batch<'_>, ended: &Ended, now: Timestamp) -> Result<(), Fault> {
    let Ended { replay, job, pipeline, state, keys: (before, after) } = ended;
    batch
        .statement(
            "UPDATE replay_letter SET state = ?3, claimed = 0, ended_at = ?4, after_key = ?5, letter = NULL
             WHERE job = ?2 AND claimed = 1 AND replay = ?1",
        )?
        .execute(params![replay, job.as_bytes(), state.as_str(), now.as_millis(), after])?;
    batch.ledger(*pipeline).replaying -= 1;
    let same_cause = match (before, after) {
        (Some(before), Some(after)) => batch
            .statement("SELECT 1 FROM cause_key b JOIN cause_key a ON a.cause = b.cause WHERE b.id = ?1 AND a.id = ?2")?
            .exists([before, after])?,
        _ => false,
    };
    let counts = batch.tallies.replay(*replay);
    match state {
        LetterState::Recovered => counts.recovered += 1,
        LetterState::Failed => {
            counts.failed += 1;
            counts.same_cause += i64::from(same_cause);
        }
        _ => counts.gone += 1,
    }
    if let (LetterState::Recovered, Some(key)) = (state, before) {
        batch.tallies.key(*key).recovered += 1;
    }
    Ok(())
}
