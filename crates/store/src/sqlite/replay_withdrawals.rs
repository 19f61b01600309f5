//! Taking letters back from a replay that is being cancelled, as was decided of each.

use redrive_core::causes::Print;
use redrive_core::counts::Death;
use redrive_core::dead::KeptPayload;
use redrive_core::failures::Failure;
use redrive_core::ids::JobId;
use redrive_core::jobs::Tally;
use redrive_core::replays::Withdrawn;
use redrive_core::state::{JobState, Move};
use redrive_core::time::Timestamp;
use rusqlite::{Connection, OptionalExtension, params};

use super::batch::Batch;
use super::fault::Fault;
use super::rows::{self, RowResult};
use super::{cause_keys, cause_rules, lanes, leases, payloads, replays};
use crate::contract::{ListSent, SentLetter, WithdrawLetter, WithdrawLetters};

/// A letter that was sent, as the store sees it.
struct Waiting {
    seq: i64,
    pipeline: i64,
    target: Option<String>,
    cause_key: Option<i64>,
    due_at: Timestamp,
    tally: Tally,
    round: String,
}

/// What is read of a letter: the job, its replay's word about it, and the lease of a worker that is gone.
const COLUMNS: &str =
    "j.id, p.name, j.attempts, j.attempts_before, j.crashes, j.replays, j.suspect, j.uncounted, j.by_name,
    l.letter ->> 'gate', l.letter ->> 'verdict', l.letter ->> 'failures', j.target";

/// Letters that a replay sent and that nobody works on: those that wait, and those whose worker is gone.
pub(super) fn list(conn: &Connection, params: &ListSent) -> Result<Vec<SentLetter>, Fault> {
    let (replay, _) = replays::get(conn, params.id)?;
    let (names, limit) = (params.pipelines.as_ref().map(serde_json::to_string).transpose()?, params.limit);
    let sql = format!(
        "SELECT {COLUMNS}, j.begun, NULL, NULL, NULL FROM pipeline p
             CROSS JOIN lane n ON n.pipeline = p.id
                 AND (n.name = 'r' || ?1 OR n.name >= 'r' || ?1 || 'h' AND n.name < 'r' || ?1 || 'i')
             CROSS JOIN place q ON q.lane = n.id
             JOIN job j ON j.seq = q.seq JOIN replay_letter l ON l.job = j.id AND l.claimed = 1 AND l.replay = ?1
         WHERE ?2 IS NULL OR p.name IN (SELECT value FROM json_each(?2))
         UNION ALL
         SELECT {COLUMNS}, max(j.begun, h.started > 0), h.token, h.epoch, h.started FROM lease h JOIN job j ON j.seq = h.seq
             JOIN pipeline p ON p.id = j.pipeline JOIN replay_letter l ON l.job = j.id AND l.claimed = 1
         WHERE j.replay = ?1 AND NOT EXISTS (SELECT 1 FROM worker w WHERE w.id = h.worker)
             AND (?2 IS NULL OR p.name IN (SELECT value FROM json_each(?2)))
         LIMIT {limit}"
    );
    let mut select = conn.prepare_cached(&sql)?;
    let rows = select.query_map(params![replay, names], |row| Ok((rows::sent_letter(row)?, row.get(11)?)))?;
    let found = rows.collect::<RowResult<Vec<(SentLetter, Option<i64>)>>>()?;
    let told = |(letter, failures): (SentLetter, Option<i64>)| {
        let failure = failure_since(conn, &letter, failures)?;
        Ok(SentLetter { failure, ..letter })
    };
    found.into_iter().map(told).collect()
}

/// Its last failure since it was sent. How many it had before is not known of letters that an older version sent.
fn failure_since(conn: &Connection, letter: &SentLetter, failures: Option<i64>) -> Result<Option<Failure>, Fault> {
    let untouched = letter.tally.attempts == letter.tally.attempts_before;
    let before = failures.unwrap_or(if untouched { i64::MAX } else { 0 });
    let mut select =
        conn.prepare_cached("SELECT failure FROM failure WHERE job = ?1 AND n > ?2 ORDER BY n DESC LIMIT 1")?;
    Ok(select.query_row(params![letter.job.as_bytes(), before], |row| rows::json(row, 0)).optional()?)
}

/// Takes letters back, as far as they are as they were found; says how many.
pub(super) fn withdraw(batch: &mut Batch<'_>, params: &WithdrawLetters) -> Result<u64, Fault> {
    let mut select = batch.statement("SELECT id FROM replay WHERE uuid = ?1 AND state = 'cancelling'")?;
    let Some(replay) = select.query_row([params.id.as_bytes()], |row| row.get::<_, i64>(0)).optional()? else {
        return Ok(0);
    };
    let mut withdrawn = 0;
    for letter in &params.letters {
        withdrawn += u64::from(take_back(batch, replay, letter, params.now)?);
    }
    batch.statement("UPDATE replay SET running = running - ?2 WHERE id = ?1")?.execute(params![replay, withdrawn])?;
    Ok(withdrawn)
}

fn take_back(batch: &mut Batch<'_>, replay: i64, taken: &WithdrawLetter, now: Timestamp) -> Result<bool, Fault> {
    let WithdrawLetter { sent, withdrawn, print } = taken;
    let Some(letter) = waiting(batch, replay, sent)? else { return Ok(false) };
    if !take_from_lane(batch, replay, sent, &letter)? {
        return Ok(false);
    }
    bury_as_it_was(batch, &letter, withdrawn)?;
    match sent.failure.as_ref().zip(print.as_ref()) {
        Some(told) => retell(batch, (sent.job, &letter), told, now)?,
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
        .execute(params![sent.job.as_bytes(), now.as_millis()])?;
    batch.shift((letter.pipeline, &letter.round), JobState::Queued, Move::Withdraw)?;
    batch.ledger(letter.pipeline).replaying -= 1;
    Ok(true)
}

/// The letter, if nothing has happened to it since it was found.
fn waiting(batch: &Batch<'_>, replay: i64, sent: &SentLetter) -> Result<Option<Waiting>, Fault> {
    let mut select = batch.statement(
        "SELECT seq, pipeline, target, cause_key, due_at, attempts, attempts_before, crashes, replays, suspect, uncounted, by_name, round FROM job
         WHERE id = ?1 AND replay = ?2",
    )?;
    let found = select
        .query_row(params![sent.job.as_bytes(), replay], |row| {
            Ok(Waiting {
                seq: row.get(0)?,
                pipeline: row.get(1)?,
                target: row.get(2)?,
                cause_key: row.get(3)?,
                due_at: rows::time(row, 4)?,
                tally: rows::tally(row, 5)?,
                round: row.get(12)?,
            })
        })
        .optional()?;
    Ok(found.filter(|letter| letter.tally == sent.tally))
}

/// Takes a letter out of where it waits, or from a worker that is gone; says whether it was there.
fn take_from_lane(batch: &mut Batch<'_>, replay: i64, sent: &SentLetter, letter: &Waiting) -> Result<bool, Fault> {
    let Waiting { seq, pipeline, due_at, tally, .. } = *letter;
    if let Some(lease) = &sent.lost {
        let taken = batch
            .statement("DELETE FROM lease WHERE job = ?1 AND token = ?2 AND epoch = ?3")?
            .execute(params![lease.job.as_bytes(), lease.token.as_bytes(), lease.epoch])?;
        if taken == 1 {
            leases::unmark(batch, lease.job, lease.token)?;
            batch.shift((pipeline, &letter.round), JobState::Leased, Move::Requeue)?;
        }
        return Ok(taken == 1);
    }
    let taken = lanes::pull_anywhere(batch, (pipeline, Some(replay), letter.target.as_deref()), due_at, seq)?;
    batch.ledger(pipeline).retrying -= i64::from(taken && tally.tried());
    Ok(taken)
}

fn bury_as_it_was(batch: &Batch<'_>, letter: &Waiting, decided: &Withdrawn) -> Result<(), Fault> {
    let Withdrawn { attempts, replays, counts, suspect, gate, verdict } = decided;
    batch
        .statement(
            "INSERT INTO dead (id, pipeline, key, target, accepted_at, died_at, kept_from, attempts, crashes, replays, gate,
                               reason, code, http_status, proxy, message, payload, input, cause_key, verdict, original,
                               payload_cut, auto_replays, suspect, payload_lost, progress, seq, round, origin,
                               definition, opened_before, refailed, uncounted)
             SELECT j.id, j.pipeline, j.key, j.target, j.accepted_at, l.letter ->> 'died_at', l.letter ->> 'kept_from',
                    ?2, j.crashes, ?3, ?5, j.reason, j.code,
                    l.letter ->> 'http_status', l.letter ->> 'proxy', l.letter ->> 'message',
                    nullif(unhex(l.letter ->> 'payload'), x''), j.input, j.cause_key, ?6, j.original,
                    l.letter ->> 'cut', j.auto_replays - (NOT ?4 AND r.automatic), ?7,
                    ifnull(l.letter ->> 'lost', 0), ifnull(j.progress, l.letter ->> 'progress'), j.seq, j.round, j.origin,
                    j.definition, (SELECT ifnull(max(id), 0) FROM replay), ifnull(l.letter ->> 'refailed', 0),
                    j.uncounted + iif(j.by_name, ?2 - j.attempts_before, 0)
             FROM job j JOIN replay r ON r.id = j.replay JOIN replay_letter l ON l.job = j.id AND l.claimed = 1
             WHERE j.seq = ?1",
        )?
        .execute(params![letter.seq, attempts, replays, counts, gate.as_str(), verdict, suspect])?;
    Ok(())
}

/// All that a letter says comes from one failure, its last. As when it is buried, its payload is the newest that any of its
/// attempts brought.
fn retell(
    batch: &mut Batch<'_>,
    (job, letter): (JobId, &Waiting),
    (failure, print): (&Failure, &Print),
    now: Timestamp,
) -> Result<(), Fault> {
    let (of, death) = ((letter.pipeline, letter.target.as_deref()), (Death::Again, failure.at));
    let key = cause_keys::file(batch, of, (print, failure), death)?;
    // It keeps the payload that it had, unless an attempt brought one.
    let payload = KeptPayload::of_letter(None, payloads::newest_of(batch.connection(), job)?, None);
    batch
        .statement(
            "UPDATE dead SET died_at = ?2, kept_from = ?3, reason = ?4, code = ?5, http_status = ?6, proxy = ?7, message = ?8,
                    cause_key = ?9, payload_lost = ?10, payload = ifnull(?11, payload), payload_cut = ifnull(?12, payload_cut),
                    refailed = 1
             WHERE id = ?1",
        )?
        .execute(params![
            job.as_bytes(),
            failure.at.as_millis(),
            now.as_millis(),
            failure.reason.as_str(),
            failure.code,
            failure.http_status,
            failure.proxy,
            failure.message,
            key,
            failure.lost_payload(),
            payload.as_ref().map(|payload| payload.hash.as_bytes()),
            payload.map(|payload| payload.truncated)
        ])?;
    Ok(())
}
