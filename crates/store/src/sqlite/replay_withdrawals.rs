//! Taking letters back from a replay that is cancelled. What each of them is then is decided by `core::replays::withdrawn`.

use redrive_core::dead::Gate;
use redrive_core::failures::Failure;
use redrive_core::ids::JobId;
use redrive_core::jobs::Tally;
use redrive_core::replays::{Sent, Withdrawn, withdrawn};
use redrive_core::state::{JobState, Move};
use redrive_core::time::Timestamp;
use rusqlite::{OptionalExtension, Row, params};

use super::batch::Batch;
use super::fault::Fault;
use super::lanes;
use super::rows::{self, RowResult};
use super::{cause_keys, cause_rules};

/// A letter that a replay had sent and that nobody works on.
struct Waiting {
    seq: i64,
    id: JobId,
    pipeline: i64,
    target: Option<String>,
    cause_key: Option<i64>,
    tally: Tally,
    begun: bool,
    gate: Gate,
    verdict: Option<String>,
    /// Failures that it had before it was sent; not known of letters that an older version sent.
    failures: Option<i64>,
}

/// Takes back the letters that were sent and that nobody works on; says how many. They are dead letters again as they were,
/// with what happened to them meanwhile.
pub(super) fn withdraw(batch: &mut Batch<'_>, replay: i64, now: Timestamp) -> Result<u64, Fault> {
    return_lost(batch, replay)?;
    let mut select = batch.statement(
        "SELECT j.seq, j.id, j.pipeline, j.target, j.cause_key, j.attempts, j.attempts_before, j.crashes, j.replays, j.suspect,
                j.begun, l.letter ->> 'gate', l.letter ->> 'verdict', l.letter ->> 'failures'
         FROM pipeline p CROSS JOIN place q ON q.pipeline = p.id AND (q.lane = ?2 OR q.lane >= ?2 || 'h' AND q.lane < ?2 || 'i')
         JOIN job j ON j.seq = q.seq JOIN replay_letter l ON l.job = j.id AND l.claimed = 1 AND l.replay = ?1",
    )?;
    let lane = lanes::replay(replay);
    let waiting = select.query_map(params![replay, lane], waiting)?.collect::<RowResult<Vec<_>>>()?;
    for table in ["place", "held"] {
        let sql = format!(
            "DELETE FROM {table} WHERE pipeline IN (SELECT id FROM pipeline)
             AND (lane = ?1 OR lane >= ?1 || 'h' AND lane < ?1 || 'i')"
        );
        batch.statement(&sql)?.execute([&lane])?;
    }
    for letter in &waiting {
        take_back(batch, letter, now)?;
    }
    let withdrawn = waiting.len() as u64;
    batch.statement("UPDATE replay SET running = running - ?2 WHERE id = ?1")?.execute(params![replay, withdrawn])?;
    Ok(withdrawn)
}

fn waiting(row: &Row<'_>) -> RowResult<Waiting> {
    Ok(Waiting {
        seq: row.get(0)?,
        id: rows::job_id(row, 1)?,
        pipeline: row.get(2)?,
        target: row.get(3)?,
        cause_key: row.get(4)?,
        tally: rows::tally(row, 5)?,
        begun: row.get(10)?,
        gate: rows::parsed(row, 11)?,
        verdict: row.get(12)?,
        failures: row.get(13)?,
    })
}

/// Puts letters whose worker is gone back into the replay's lane, and notes whether they had begun. One that ran inside that
/// worker may have taken it down, and stays suspected.
fn return_lost(batch: &mut Batch<'_>, replay: i64) -> Result<(), Fault> {
    let mut select = batch.statement(
        "SELECT j.seq, j.pipeline, j.due_at, j.attempts + j.crashes > 0, l.job, l.started FROM lease l
         JOIN job j ON j.seq = l.seq
         WHERE j.replay = ?1 AND NOT EXISTS (SELECT 1 FROM worker w WHERE w.id = l.worker)",
    )?;
    let rows = select.query_map([replay], |row| {
        let (seq, pipeline, started): (i64, i64, i64) = (row.get(0)?, row.get(1)?, row.get(5)?);
        Ok((seq, pipeline, rows::time(row, 2)?, row.get::<_, bool>(3)?, row.get::<_, [u8; 16]>(4)?, started))
    })?;
    for (seq, pipeline, due_at, tried, job, started) in rows.collect::<RowResult<Vec<_>>>()? {
        batch.statement("DELETE FROM lease WHERE job = ?1")?.execute([job])?;
        batch
            .statement("UPDATE job SET begun = max(begun, ?2 > 0), suspect = max(suspect, ?2 = 1) WHERE seq = ?1")?
            .execute([seq, started])?;
        batch.shift(pipeline, JobState::Leased, Move::Requeue)?;
        batch.ledger(pipeline).retrying += i64::from(tried);
        lanes::push(batch, pipeline, &lanes::replay(replay), due_at, seq)?;
    }
    Ok(())
}

fn take_back(batch: &mut Batch<'_>, letter: &Waiting, now: Timestamp) -> Result<(), Fault> {
    let failure = failure_since(batch, letter)?;
    let Waiting { tally, begun, gate, .. } = *letter;
    let decided = withdrawn(Sent { tally, begun, gate, verdict: letter.verdict.as_deref(), failure: failure.as_ref() });
    bury_as_it_was(batch, letter, &decided)?;
    match &failure {
        Some(failure) => retell(batch, letter, failure, now)?,
        None => {
            if let Some(key) = letter.cause_key {
                batch.tallies.key(key).dead += 1;
                cause_rules::begin(batch, key)?;
            }
        }
    }
    batch.statement("DELETE FROM job WHERE seq = ?1")?.execute([letter.seq])?;
    batch
        .statement(
            "UPDATE replay_letter SET state = 'cancelled', claimed = 0, ended_at = ?2, letter = NULL
             WHERE job = ?1 AND claimed = 1",
        )?
        .execute(params![letter.id.as_bytes(), now.as_millis()])?;
    batch.shift(letter.pipeline, JobState::Queued, Move::Withdraw)?;
    let ledger = batch.ledger(letter.pipeline);
    ledger.retrying -= i64::from(letter.tally.tried());
    ledger.replaying -= 1;
    Ok(())
}

/// Its last failure since it was sent.
fn failure_since(batch: &Batch<'_>, letter: &Waiting) -> Result<Option<Failure>, Fault> {
    let untouched = letter.tally.attempts == letter.tally.attempts_before;
    let before = letter.failures.unwrap_or(if untouched { i64::MAX } else { 0 });
    let mut select =
        batch.statement("SELECT failure FROM failure WHERE job = ?1 AND n > ?2 ORDER BY n DESC LIMIT 1")?;
    Ok(select.query_row(params![letter.id.as_bytes(), before], |row| rows::json(row, 0)).optional()?)
}

fn bury_as_it_was(batch: &Batch<'_>, letter: &Waiting, decided: &Withdrawn) -> Result<(), Fault> {
    let Withdrawn { attempts, replays, counts, gate, verdict } = decided;
    batch
        .statement(
            "INSERT INTO dead (id, pipeline, key, target, accepted_at, died_at, kept_from, attempts, crashes, replays, gate,
                               reason, code, http_status, proxy, message, payload, input, cause_key, verdict, original,
                               payload_cut, auto_replays, tracked, suspect, payload_lost, progress, seq, round, origin)
             SELECT j.id, j.pipeline, j.key, j.target, j.accepted_at, l.letter ->> 'died_at', l.letter ->> 'kept_from',
                    ?2, j.crashes, ?3, ?5, j.reason, j.code,
                    l.letter ->> 'http_status', l.letter ->> 'proxy', l.letter ->> 'message',
                    nullif(unhex(l.letter ->> 'payload'), x''), j.input, j.cause_key, ?6, j.original,
                    l.letter ->> 'cut', j.auto_replays - (NOT ?4 AND r.automatic), j.tracked, j.suspect,
                    ifnull(l.letter ->> 'lost', 0), ifnull(j.progress, l.letter ->> 'progress'), j.seq, j.round, j.origin
             FROM job j JOIN replay r ON r.id = j.replay JOIN replay_letter l ON l.job = j.id AND l.claimed = 1
             WHERE j.seq = ?1",
        )?
        .execute(params![letter.seq, attempts, replays, counts, gate.as_str(), verdict])?;
    Ok(())
}

/// All that a letter says comes from one failure, its last. As when it is buried, its payload is the newest that any of its
/// attempts brought.
fn retell(batch: &mut Batch<'_>, letter: &Waiting, failure: &Failure, now: Timestamp) -> Result<(), Fault> {
    let key = cause_keys::file_here(batch, (letter.pipeline, letter.target.as_deref()), failure, failure.at)?;
    batch
        .statement(
            "UPDATE dead SET died_at = ?2, kept_from = ?3, reason = ?4, code = ?5, http_status = ?6, proxy = ?7, message = ?8,
                    cause_key = ?9, payload_lost = ?10,
                    payload = ifnull((SELECT u.hash FROM payload_use u WHERE u.job = dead.id ORDER BY u.at DESC LIMIT 1), payload),
                    payload_cut = ifnull((SELECT ifnull(u.payload ->> 'truncated', 0) FROM payload_use u WHERE u.job = dead.id
                                          ORDER BY u.at DESC LIMIT 1), payload_cut)
             WHERE id = ?1",
        )?
        .execute(params![
            letter.id.as_bytes(),
            failure.at.as_millis(),
            now.as_millis(),
            failure.reason.as_str(),
            failure.code,
            failure.http_status,
            failure.proxy,
            failure.message,
            key,
            failure.lost_payload()
        ])?;
    Ok(())
}
