//! The letters of a replay on their way: sent, let go of, and come to their end.

use redrive_core::counts::{Delta, Event};
use std::collections::BTreeSet;

use redrive_core::causes::CauseId;
use redrive_core::failures::Reason;
use redrive_core::ids::{JobId, PipelineName, ReplayId};
use redrive_core::jobs::Lease;
use redrive_core::replays::{LetterState, Wish};
use redrive_core::state::{JobState, Move};
use redrive_core::time::Timestamp;
use rusqlite::{Connection, OptionalExtension, params};

use super::batch::Batch;
use super::fault::Fault;
use super::rows::{self, RowResult};
use super::{lanes, replays};
use crate::contract::{
    ListPending, PendingLetter, ReleaseLetters, ReplayGroup, RunningLetter, SendLetter, SendLetters,
};

/// Letters whose turn has not come, in their order. Each pipeline is asked for by itself: the index has them so.
pub(super) fn pending(conn: &Connection, params: &ListPending) -> Result<Vec<PendingLetter>, Fault> {
    let (replay, _) = replays::get(conn, params.id)?;
    let sql = format!(
        "SELECT l.n, l.job, l.saved, d.input, d.target, d.crashes, d.suspect, d.origin
         FROM replay_letter l INDEXED BY replay_letter_pending LEFT JOIN dead d ON d.id = l.job
         WHERE l.replay = ?1 AND l.pipeline = (SELECT id FROM pipeline WHERE name = ?2) AND l.state = 'pending'
         ORDER BY l.n LIMIT {}",
        params.limit
    );
    let mut select = conn.prepare(&sql)?;
    let mut found = Vec::new();
    for pipeline in &params.pipelines {
        let rows = select
            .query_map(params![replay, pipeline.as_str()], |row| Ok((row.get(0)?, rows::pending_letter(row)?)))?;
        found.extend(rows.collect::<RowResult<Vec<(i64, _)>>>()?);
    }
    found.sort_by_key(|(n, _)| *n);
    found.truncate(usize::try_from(params.limit).unwrap_or(usize::MAX));
    Ok(found.into_iter().map(|(_, letter)| letter).collect())
}

/// The pipelines that have letters whose turn has not come, or that are under way.
pub(super) fn left(conn: &Connection, id: ReplayId) -> Result<BTreeSet<PipelineName>, Fault> {
    let (replay, _) = replays::get(conn, id)?;
    let mut select = conn.prepare_cached(
        "SELECT p.name FROM pipeline p
         WHERE EXISTS (SELECT 1 FROM replay_letter l INDEXED BY replay_letter_pending
                       WHERE l.replay = ?1 AND l.pipeline = p.id AND l.state = 'pending')
            OR EXISTS (SELECT 1 FROM replay_letter l INDEXED BY replay_letter_running
                       WHERE l.replay = ?1 AND l.pipeline = p.id AND l.state = 'running')",
    )?;
    let rows = select.query_map([replay], |row| rows::parsed(row, 0))?;
    Ok(rows.collect::<RowResult<_>>()?)
}

/// Sends letters, if the replay is still as it was.
pub(super) fn send(batch: &mut Batch<'_>, params: &SendLetters) -> Result<bool, Fault> {
    let mut update = batch.statement(
        "UPDATE replay SET version = version + 1, free_at = ?3, moved_at = ?4
         WHERE uuid = ?1 AND version = ?2 AND state = 'running' RETURNING id, automatic, wish",
    )?;
    let id = params.id.as_bytes();
    let found = update
        .query_row(params![id, params.was, params.free_at.as_millis(), params.now.as_millis()], |row| {
            Ok((row.get(0)?, row.get(1)?, rows::json::<Wish, _>(row, 2)?.by_name))
        })
        .optional()?;
    let Some((replay, automatic, by_name)) = found else { return Ok(false) };
    replays::set_step(batch, replay, &params.step)?;
    let (mut sent, mut gone) = (0, 0);
    for letter in &params.letters {
        let found = send_one(batch, (replay, automatic, by_name), letter, params.now)?;
        let state = if found { LetterState::Running } else { LetterState::Gone };
        let noted = note_turn(batch, replay, letter.job, state, params.now)?;
        *(if found { &mut sent } else { &mut gone }) += noted;
    }
    for job in &params.gone {
        gone += note_turn(batch, replay, *job, LetterState::Gone, params.now)?;
    }
    batch
        .statement(
            "UPDATE replay SET pending = pending - ?2 - ?3, running = running + ?2, gone = gone + ?3,
                               step_settled = step_settled + ?3
             WHERE id = ?1",
        )?
        .execute([replay, sent, gone])?;
    Ok(true)
}

/// Notes what became of a letter whose turn it was.
fn note_turn(batch: &Batch<'_>, replay: i64, job: JobId, state: LetterState, now: Timestamp) -> Result<i64, Fault> {
    let ended_at = (state == LetterState::Gone).then_some(now.as_millis());
    let mut update = batch.statement(
        "UPDATE replay_letter SET state = ?3, claimed = ?4, ended_at = ?5
         WHERE job = ?2 AND claimed = 1 AND replay = ?1 AND state = 'pending'",
    )?;
    let noted = update.execute(params![replay, job.as_bytes(), state.as_str(), ended_at.is_none(), ended_at])?;
    Ok(i64::from(noted == 1))
}

/// Lets go of letters whose turn has not come.
pub(super) fn release(batch: &mut Batch<'_>, params: &ReleaseLetters) -> Result<u64, Fault> {
    let mut select = batch.statement("SELECT id FROM replay WHERE uuid = ?1 AND state = 'cancelling'")?;
    let Some(replay) = select.query_row([params.id.as_bytes()], |row| row.get::<_, i64>(0)).optional()? else {
        return Ok(0);
    };
    let mut update = batch.statement(
        "UPDATE replay_letter SET state = 'cancelled', claimed = 0, ended_at = ?2
         WHERE replay = ?1 AND n IN (SELECT n FROM replay_letter INDEXED BY replay_letter_pending
                                     WHERE replay = ?1 AND state = 'pending' LIMIT ?3)",
    )?;
    let released = update.execute(params![replay, params.now.as_millis(), params.limit])?;
    batch.statement("UPDATE replay SET pending = pending - ?2 WHERE id = ?1")?.execute(params![replay, released])?;
    Ok(released as u64)
}

/// A dead letter on its way back.
struct Letter {
    seq: i64,
    pipeline: i64,
    cause_key: Option<i64>,
    reason: Reason,
    /// Whether any attempt of it ever came to a verdict.
    tried: bool,
    round: String,
}

/// Moves a dead letter into the replay's lane; says whether it was there.
fn send_one(
    batch: &mut Batch<'_>,
    (replay, automatic, by_name): (i64, bool, bool),
    sent: &SendLetter,
    now: Timestamp,
) -> Result<bool, Fault> {
    let mut select = batch
        .statement("SELECT seq, pipeline, cause_key, reason, attempts + crashes > 0, round FROM dead WHERE id = ?1")?;
    let found = select
        .query_row([sent.job.as_bytes()], |row| {
            Ok(Letter {
                seq: row.get(0)?,
                pipeline: row.get(1)?,
                cause_key: row.get(2)?,
                reason: rows::parsed(row, 3)?,
                tried: row.get(4)?,
                round: row.get(5)?,
            })
        })
        .optional()?;
    let Some(letter) = found else { return Ok(false) };
    let input = sent.input.as_ref().map(serde_json::to_string).transpose()?;
    let origin = sent.origin.as_ref().map(serde_json::to_string).transpose()?;
    batch
        .statement(
            "INSERT INTO job (id, pipeline, key, target, accepted_at, due_at, attempts, attempts_before, crashes, replays,
                              suspect, reason, code, input, replay, saved, cause_key, original, auto_replays,
                              automatic, progress, seq, round, origin, definition, uncounted, by_name)
             SELECT id, pipeline, key, ?3, accepted_at, ?2, attempts, attempts, crashes, min(replays + 1, 4294967295), ?9,
                    reason, code, ifnull(?4, input), ?5, iif(?6, payload, NULL), cause_key,
                    iif(?4 IS NULL, original, ifnull(original, input)), min(auto_replays + ?7, 4294967295),
                    ?7, iif(?8, progress, NULL), seq, round, ifnull(?10, origin), definition, uncounted, ?11
             FROM dead WHERE seq = ?1",
        )?
        .execute(params![
            letter.seq,
            now.as_millis(),
            sent.target,
            input,
            replay,
            sent.saved,
            automatic,
            sent.goes_on,
            sent.suspect,
            origin,
            by_name
        ])?;
    batch
        .statement(
            "UPDATE replay_letter SET letter = (SELECT json_object('gate', gate, 'died_at', died_at, 'kept_from', kept_from,
                    'http_status', http_status, 'proxy', proxy, 'message', message, 'verdict', verdict, 'cut', payload_cut,
                    'lost', payload_lost, 'refailed', refailed,
                    'payload', hex(payload), 'failures', (SELECT ifnull(max(n), 0) FROM failure WHERE job = id),
                    'progress', iif(?3, NULL, progress))
                    FROM dead WHERE seq = ?1)
             WHERE job = ?2 AND claimed = 1",
        )?
        // A task is that of the input as it was.
        .execute(params![letter.seq, sent.job.as_bytes(), input.is_some()])?;
    batch.statement("DELETE FROM dead WHERE seq = ?1")?.execute([letter.seq])?;
    let lane = lanes::home(batch, letter.pipeline, Some(replay))?;
    lanes::push(batch, lane, now, letter.seq)?;
    batch.shift((letter.pipeline, &letter.round), JobState::Dead, Move::Replay)?;
    let ledger = batch.ledger(letter.pipeline);
    ledger.retrying += i64::from(letter.tried);
    ledger.replaying += 1;
    batch.count(letter.pipeline, now, Delta::because(Event::Replayed, letter.reason));
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
    let processed = batch
        .statement(
            "UPDATE replay_letter SET state = ?3, claimed = 0, ended_at = ?4, after_key = ?5, letter = NULL
             WHERE job = ?2 AND claimed = 1 AND replay = ?1 RETURNING processed",
        )?
        .query_row(params![replay, job.as_bytes(), state.as_str(), now.as_millis(), after], |row| row.get::<_, bool>(0))
        .optional()?;
    batch.ledger(*pipeline).replaying -= 1;
    let same_cause = match (before, after) {
        (Some(before), Some(after)) => batch
            .statement("SELECT 1 FROM cause_key b JOIN cause_key a ON a.cause = b.cause WHERE b.id = ?1 AND a.id = ?2")?
            .exists([before, after])?,
        _ => false,
    };
    let counts = batch.tallies.replay(*replay);
    counts.processed += i64::from(processed.unwrap_or_default());
    counts.ended_at = counts.ended_at.max(now.as_millis());
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

/// Notes that a leased job was processed; says whether the lease holds.
pub(super) fn note_processed(batch: &Batch<'_>, lease: &Lease) -> Result<bool, Fault> {
    let (job, token) = (lease.job.as_bytes(), lease.token.as_bytes());
    let mut select = batch
        .statement("SELECT j.replay FROM lease l JOIN job j ON j.seq = l.seq WHERE l.job = ?1 AND l.token = ?2")?;
    let Some(replay) = select.query_row([job, token], |row| row.get::<_, Option<i64>>(0)).optional()? else {
        return Ok(false);
    };
    let mut update = batch.statement(
        "UPDATE replay_letter SET processed = 1
         WHERE job = ?2 AND claimed = 1 AND replay = ?1 AND state = 'running' AND NOT processed",
    )?;
    if update.execute(params![replay, job])? > 0 {
        batch.statement("UPDATE replay SET step_settled = step_settled + 1 WHERE id = ?1")?.execute([replay])?;
    }
    Ok(true)
}

/// Letters that failed again that are looked at for their causes.
const REFAILED_MAX: u32 = 20_000;

/// The causes that letters failed for and had not died of.
pub(super) fn other_causes(conn: &Connection, id: ReplayId, limit: u32) -> Result<Vec<(CauseId, u64)>, Fault> {
    let (replay, _) = replays::get(conn, id)?;
    let sql = format!(
        "SELECT a.name, count(*) AS letters
         FROM (SELECT cause_key, after_key FROM replay_letter WHERE replay = ?1 AND state = 'failed' LIMIT {REFAILED_MAX}) l
         LEFT JOIN cause_key k ON k.id = l.cause_key
         JOIN cause_key m ON m.id = l.after_key JOIN cause a ON a.id = m.cause
         WHERE k.cause IS NOT m.cause GROUP BY a.name ORDER BY letters DESC, a.name LIMIT ?2"
    );
    let mut select = conn.prepare_cached(&sql)?;
    let rows = select.query_map(params![replay, limit], |row| Ok((rows::parsed(row, 0)?, row.get(1)?)))?;
    Ok(rows.collect::<RowResult<_>>()?)
}

/// The letter that has been under way for the longest time.
pub(super) fn oldest(conn: &Connection, id: ReplayId) -> Result<Option<RunningLetter>, Fault> {
    let (replay, _) = replays::get(conn, id)?;
    let mut select = conn.prepare_cached(
        "SELECT j.id, j.seq, j.due_at FROM replay_letter l JOIN job j ON j.id = l.job
         WHERE l.replay = ?1 AND l.state = 'running' ORDER BY j.due_at, l.n LIMIT 1",
    )?;
    let found = select.query_row([replay], |row| {
        Ok(RunningLetter { id: rows::job_id(row, 0)?, number: row.get(1)?, since: rows::time(row, 2)? })
    });
    Ok(found.optional()?)
}

/// The groups of open letters, of so many at most.
pub(super) fn groups(conn: &Connection, id: ReplayId, limit: u32) -> Result<Vec<ReplayGroup>, Fault> {
    let (replay, _) = replays::get(conn, id)?;
    let mut select = conn.prepare_cached(
        "SELECT p.name, ifnull(d.origin, j.origin) ->> 'group', count(*)
         FROM (SELECT job, pipeline FROM replay_letter WHERE replay = ?1 AND state IN ('pending', 'running') LIMIT ?2) l
         JOIN pipeline p ON p.id = l.pipeline LEFT JOIN dead d ON d.id = l.job LEFT JOIN job j ON j.id = l.job
         GROUP BY 1, 2 ORDER BY 1, 2",
    )?;
    let rows = select.query_map(params![replay, limit], |row| rows::replay_group(row))?;
    Ok(rows.collect::<RowResult<_>>()?)
}
