//! The letters of a replay on their way: sent, let go of, and come to their end.

use std::collections::BTreeSet;

use redrive_core::causes::CauseId;
use redrive_core::counts::{Delta, Event};
use redrive_core::failures::Reason;
use redrive_core::ids::{JobId, PipelineName, ReplayId};
use redrive_core::jobs::Lease;
use redrive_core::replays::{LetterState, Wish};
use redrive_core::state::{JobState, Move};
use redrive_core::time::Timestamp;

use super::batch::Batch;
use super::fault::Fault;
use super::sql::{Conn, args};
use super::{lanes, replays, rows};
use crate::contract::{
    ListPending, PendingLetter, ReleaseLetters, ReplayGroup, RunningLetter, SendLetter, SendLetters,
};

/// Letters whose turn has not come, in their order. Each pipeline is asked for by itself: the index has them so.
pub(super) async fn pending(conn: &Conn, params: &ListPending) -> Result<Vec<PendingLetter>, Fault> {
    let (replay, _) = replays::get(conn, params.id).await?;
    let sql = "SELECT l.n, l.job, l.saved, d.input, d.target, d.crashes, d.suspect, d.origin
               FROM replay_letter l LEFT JOIN dead d ON d.id = l.job
               WHERE l.replay = $1 AND l.pipeline = (SELECT id FROM pipeline WHERE name = $2) AND l.state = 'pending'
               ORDER BY l.n LIMIT $3";
    let mut found: Vec<(i64, PendingLetter)> = Vec::new();
    for pipeline in &params.pipelines {
        let of = args![replay, pipeline.as_str(), params.limit];
        found.extend(conn.query(sql, of, |row| Ok((row.get(0)?, rows::pending_letter(row)?))).await?);
    }
    found.sort_by_key(|(n, _)| *n);
    found.truncate(usize::try_from(params.limit).unwrap_or(usize::MAX));
    Ok(found.into_iter().map(|(_, letter)| letter).collect())
}

/// The pipelines that have letters whose turn has not come, or that are under way.
pub(super) async fn left(conn: &Conn, id: &ReplayId) -> Result<BTreeSet<PipelineName>, Fault> {
    let (replay, _) = replays::get(conn, *id).await?;
    let sql = "SELECT p.name FROM pipeline p
               WHERE EXISTS (SELECT 1 FROM replay_letter l
                             WHERE l.replay = $1 AND l.pipeline = p.id AND l.state = 'pending')
                  OR EXISTS (SELECT 1 FROM replay_letter l
                             WHERE l.replay = $1 AND l.pipeline = p.id AND l.state = 'running')";
    let names = conn.query(sql, args![replay], |row| rows::parsed(row, 0)).await?;
    Ok(names.into_iter().collect())
}

/// Sends letters, if the replay is still as it was.
pub(super) async fn send(batch: &mut Batch, params: &SendLetters) -> Result<bool, Fault> {
    let sql = "UPDATE replay SET version = version + 1, free_at = $3, moved_at = $4
               WHERE uuid = $1 AND version = $2 AND state = 'running' RETURNING id, automatic, wish";
    let found: Option<(i64, bool, bool)> = batch
        .conn()
        .query_opt(sql, args![params.id, params.was, params.free_at, params.now], |row| {
            Ok((row.get(0)?, row.get(1)?, rows::json::<Wish, _>(row, 2)?.by_name))
        })
        .await?;
    let Some((replay, automatic, by_name)) = found else { return Ok(false) };
    replays::set_step(batch, replay, &params.step).await?;
    let (mut sent, mut gone) = (0, 0);
    for letter in &params.letters {
        let found = send_one(batch, (replay, automatic, by_name), letter, params.now).await?;
        let state = if found { LetterState::Running } else { LetterState::Gone };
        let noted = note_turn(batch, replay, letter.job, state, params.now).await?;
        *(if found { &mut sent } else { &mut gone }) += noted;
    }
    for job in &params.gone {
        gone += note_turn(batch, replay, *job, LetterState::Gone, params.now).await?;
    }
    let sql = "UPDATE replay SET pending = pending - $2 - $3, running = running + $2, gone = gone + $3,
                                 step_settled = step_settled + $3
               WHERE id = $1";
    batch.conn().execute(sql, args![replay, sent, gone]).await?;
    Ok(true)
}

/// Notes what became of a letter whose turn it was.
async fn note_turn(batch: &Batch, replay: i64, job: JobId, state: LetterState, now: Timestamp) -> Result<u64, Fault> {
    let ended_at = (state == LetterState::Gone).then_some(now);
    let sql = "UPDATE replay_letter SET state = $3, claimed = $4, ended_at = $5
               WHERE job = $2 AND claimed AND replay = $1 AND state = 'pending'";
    batch.conn().execute(sql, args![replay, job, state.as_str(), ended_at.is_none(), ended_at]).await
}

/// Lets go of letters whose turn has not come.
pub(super) async fn release(batch: &mut Batch, params: &ReleaseLetters) -> Result<u64, Fault> {
    let Some(replay) = cancelling(batch, params.id).await? else { return Ok(0) };
    let sql = "UPDATE replay_letter SET state = 'cancelled', claimed = false, ended_at = $2
               WHERE replay = $1 AND n IN (SELECT n FROM replay_letter WHERE replay = $1 AND state = 'pending' LIMIT $3)";
    let released = batch.conn().execute(sql, args![replay, params.now, params.limit]).await?;
    batch.conn().execute("UPDATE replay SET pending = pending - $2 WHERE id = $1", args![replay, released]).await?;
    Ok(released)
}

/// The row of a replay that is being cancelled.
pub(super) async fn cancelling(batch: &Batch, id: ReplayId) -> Result<Option<i64>, Fault> {
    let sql = "SELECT id FROM replay WHERE uuid = $1 AND state = 'cancelling'";
    batch.conn().query_opt(sql, args![id], |row| row.get(0)).await
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
async fn send_one(
    batch: &mut Batch,
    (replay, automatic, by_name): (i64, bool, bool),
    sent: &SendLetter,
    now: Timestamp,
) -> Result<bool, Fault> {
    let sql = "SELECT seq, pipeline, cause_key, reason, attempts + crashes > 0, round FROM dead WHERE id = $1";
    let found = batch.conn().query_opt(sql, args![sent.job], |row| {
        Ok(Letter {
            seq: row.get(0)?,
            pipeline: row.get(1)?,
            cause_key: row.get(2)?,
            reason: rows::parsed(row, 3)?,
            tried: row.get(4)?,
            round: row.get(5)?,
        })
    });
    let Some(letter) = found.await? else { return Ok(false) };
    let input = sent.input.as_ref().map(serde_json::to_string).transpose()?;
    // What only the dead letter knew is kept; a task is that of the input as it was.
    let sql = "UPDATE replay_letter SET letter =
                  (SELECT jsonb_build_object('gate', gate, 'died_at', died_at, 'kept_from', kept_from,
                          'http_status', http_status, 'proxy', proxy, 'message', message, 'verdict', verdict, 'cut', payload_cut,
                          'lost', payload_lost, 'refailed', refailed, 'payload', encode(payload, 'hex'),
                          'failures', (SELECT coalesce(max(n), 0) FROM failure WHERE job = dead.id),
                          'progress', CASE WHEN $3 THEN NULL ELSE progress END)
                   FROM dead WHERE seq = $1)
               WHERE job = $2 AND claimed";
    batch.conn().execute(sql, args![letter.seq, sent.job, input.is_some()]).await?;
    let sql = "WITH gone AS (DELETE FROM dead WHERE seq = $1 RETURNING *)
               INSERT INTO job (id, pipeline, key, target, accepted_at, due_at, attempts, attempts_before, crashes, replays,
                                suspect, reason, code, input, replay, saved, cause_key, original, auto_replays,
                                automatic, progress, seq, round, origin, definition, uncounted, by_name)
               SELECT id, pipeline, key, $3, accepted_at, $2, attempts, attempts, crashes, least(replays + 1, 4294967295), $9,
                      reason, code, coalesce($4, input), $5, CASE WHEN $6 THEN payload END, cause_key,
                      CASE WHEN $4 IS NULL THEN original ELSE coalesce(original, input) END,
                      least(auto_replays + CASE WHEN $7 THEN 1 ELSE 0 END, 4294967295),
                      $7, CASE WHEN $8 THEN progress END, seq, round, coalesce($10, origin), definition, uncounted, $11
               FROM gone";
    let origin = sent.origin.as_ref().map(serde_json::to_string).transpose()?;
    let (goes_on, suspect) = (sent.goes_on, sent.suspect);
    let job =
        args![letter.seq, now, sent.target, input, replay, sent.saved, automatic, goes_on, suspect, origin, by_name];
    batch.conn().execute(sql, job).await?;
    let lane = lanes::home(batch, letter.pipeline, Some(replay)).await?;
    lanes::push(batch, lane, &[(now.as_millis(), letter.seq)]).await?;
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
pub(super) async fn note_end(batch: &mut Batch, ended: &Ended, now: Timestamp) -> Result<(), Fault> {
    let Ended { replay, job, pipeline, state, keys: (before, after) } = ended;
    let sql = "UPDATE replay_letter SET state = $3, claimed = false, ended_at = $4, after_key = $5, letter = NULL
               WHERE job = $2 AND claimed AND replay = $1 RETURNING processed";
    let noted = args![replay, job, state.as_str(), now, after];
    let processed: Option<bool> = batch.conn().query_opt(sql, noted, |row| row.get(0)).await?;
    batch.ledger(*pipeline).replaying -= 1;
    let same_cause = match (before, after) {
        (Some(before), Some(after)) => {
            let sql = "SELECT 1 FROM cause_key b JOIN cause_key a ON a.cause = b.cause WHERE b.id = $1 AND a.id = $2";
            batch.conn().exists(sql, args![before, after]).await?
        }
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

/// Notes that leased jobs were processed; says which leases hold.
pub(super) async fn note_processed(batch: &mut Batch, leases: &Vec<Lease>) -> Result<Vec<bool>, Fault> {
    let mut held = Vec::with_capacity(leases.len());
    for Lease { job, token, .. } in leases {
        let sql = "SELECT j.replay FROM lease l JOIN job j ON j.seq = l.seq WHERE l.job = $1 AND l.token = $2";
        let replay = batch.conn().query_opt(sql, args![job, token], |row| row.get::<Option<i64>>(0)).await?;
        held.push(replay.is_some());
        let Some(replay) = replay.flatten() else { continue };
        let sql = "UPDATE replay_letter SET processed = true
                   WHERE job = $2 AND claimed AND replay = $1 AND state = 'running' AND NOT processed";
        if batch.conn().execute(sql, args![replay, job]).await? > 0 {
            let sql = "UPDATE replay SET step_settled = step_settled + 1 WHERE id = $1";
            batch.conn().execute(sql, args![replay]).await?;
        }
    }
    Ok(held)
}

/// The groups of open letters, of so many at most.
pub(super) async fn groups(conn: &Conn, (id, limit): &(ReplayId, u32)) -> Result<Vec<ReplayGroup>, Fault> {
    let (replay, _) = replays::get(conn, *id).await?;
    let sql = "SELECT p.name, coalesce(d.origin, j.origin)::json ->> 'group', count(*)
               FROM (SELECT job, pipeline FROM replay_letter WHERE replay = $1 AND state IN ('pending', 'running') LIMIT $2) l
               JOIN pipeline p ON p.id = l.pipeline LEFT JOIN dead d ON d.id = l.job LEFT JOIN job j ON j.id = l.job
               GROUP BY 1, 2 ORDER BY 1, 2 NULLS FIRST";
    conn.query(sql, args![replay, limit], |row| rows::replay_group(row)).await
}

/// Letters that failed again that are looked at for their causes.
const REFAILED_MAX: u32 = 20_000;

/// The causes that letters failed for and had not died of.
pub(super) async fn other_causes(conn: &Conn, (id, limit): &(ReplayId, u32)) -> Result<Vec<(CauseId, u64)>, Fault> {
    let (replay, _) = replays::get(conn, *id).await?;
    let sql = "SELECT a.name, count(*) AS letters
               FROM (SELECT cause_key, after_key FROM replay_letter WHERE replay = $1 AND state = 'failed' LIMIT $3) l
               LEFT JOIN cause_key k ON k.id = l.cause_key
               JOIN cause_key m ON m.id = l.after_key JOIN cause a ON a.id = m.cause
               WHERE k.cause IS DISTINCT FROM m.cause GROUP BY a.name ORDER BY letters DESC, a.name LIMIT $2";
    conn.query(sql, args![replay, limit, REFAILED_MAX], |row| Ok((rows::parsed(row, 0)?, row.get(1)?))).await
}

/// The letter that has been under way for the longest time.
pub(super) async fn oldest(conn: &Conn, id: &ReplayId) -> Result<Option<RunningLetter>, Fault> {
    let (replay, _) = replays::get(conn, *id).await?;
    let sql = "SELECT j.id, j.seq, j.due_at FROM replay_letter l JOIN job j ON j.id = l.job
               WHERE l.replay = $1 AND l.state = 'running' ORDER BY j.due_at, l.n LIMIT 1";
    conn.query_opt(sql, args![replay], |row| {
        Ok(RunningLetter { id: rows::job_id(row, 0)?, number: row.get(1)?, since: rows::time(row, 2)? })
    })
    .await
}
