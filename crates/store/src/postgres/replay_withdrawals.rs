//! Taking letters back from a replay that is being cancelled, as was decided of each.

use redrive_core::causes::Print;
use redrive_core::counts::Death;
use redrive_core::dead::KeptPayload;
use redrive_core::failures::Failure;
use redrive_core::ids::{JobId, PipelineName};
use redrive_core::jobs::Tally;
use redrive_core::replays::Withdrawn;
use redrive_core::state::{JobState, Move};
use redrive_core::time::Timestamp;

use super::batch::Batch;
use super::fault::Fault;
use super::sql::{Conn, args};
use super::{cause_keys, cause_rules, lanes, payloads, replay_letters, replays, rows};
use crate::contract::{ListSent, SentLetter, WithdrawLetter, WithdrawLetters};
use crate::lanes::{held_range, replay_name};

/// A letter that was sent, as the store sees it.
struct Waiting {
    seq: i64,
    pipeline: i64,
    target: Option<String>,
    cause_key: Option<i64>,
    tally: Tally,
    round: String,
}

/// What is read of a letter: the job and its replay's word about it.
const COLUMNS: &str =
    "j.id, p.name, j.attempts, j.attempts_before, j.crashes, j.replays, j.suspect, j.uncounted, j.by_name,
    l.letter ->> 'gate', l.letter ->> 'verdict', (l.letter ->> 'failures')::bigint, j.target";

/// Letters that a replay sent and that nobody works on: those that wait, and those whose worker is gone.
pub(super) async fn list(conn: &Conn, params: &ListSent) -> Result<Vec<SentLetter>, Fault> {
    let (replay, _) = replays::get(conn, params.id).await?;
    let names: Option<Vec<&str>> =
        params.pipelines.as_ref().map(|names| names.iter().map(PipelineName::as_str).collect());
    let (home, (held_from, held_to)) = (replay_name(replay), held_range(Some(replay)));
    let sql = format!(
        "SELECT {COLUMNS}, j.begun, NULL::uuid, NULL::bigint, NULL::bigint FROM pipeline p
             JOIN lane n ON n.pipeline = p.id AND (n.name = $4 OR n.name >= $5 AND n.name < $6)
             JOIN place q ON q.lane = n.id
             JOIN job j ON j.seq = q.seq JOIN replay_letter l ON l.job = j.id AND l.claimed AND l.replay = $1
         WHERE $2::text[] IS NULL OR p.name = ANY($2)
         UNION ALL
         SELECT {COLUMNS}, j.begun OR h.started > 0, h.token, h.epoch, h.started FROM lease h JOIN job j ON j.seq = h.seq
             JOIN pipeline p ON p.id = j.pipeline JOIN replay_letter l ON l.job = j.id AND l.claimed
         WHERE j.replay = $1 AND NOT EXISTS (SELECT 1 FROM worker w WHERE w.id = h.worker)
             AND ($2::text[] IS NULL OR p.name = ANY($2))
         LIMIT $3"
    );
    let of = args![replay, names, params.limit, home, held_from, held_to];
    let found = conn.query(&sql, of, |row| Ok((rows::sent_letter(row)?, row.get::<Option<i64>>(11)?))).await?;
    let mut letters = Vec::with_capacity(found.len());
    for (letter, failures) in found {
        let failure = failure_since(conn, &letter, failures).await?;
        letters.push(SentLetter { failure, ..letter });
    }
    Ok(letters)
}

/// Its last failure since it was sent.
async fn failure_since(conn: &Conn, letter: &SentLetter, failures: Option<i64>) -> Result<Option<Failure>, Fault> {
    let sql = "SELECT failure FROM failure WHERE job = $1 AND n > $2 ORDER BY n DESC LIMIT 1";
    conn.query_opt(sql, args![letter.job, failures.unwrap_or(0)], |row| rows::json(row, 0)).await
}

/// Takes letters back, as far as they are as they were found; says how many.
pub(super) async fn withdraw(batch: &mut Batch, params: &WithdrawLetters) -> Result<u64, Fault> {
    let Some(replay) = replay_letters::cancelling(batch, params.id).await? else { return Ok(0) };
    let mut withdrawn: u64 = 0;
    for letter in &params.letters {
        withdrawn += u64::from(take_back(batch, replay, letter, params.now).await?);
    }
    batch.conn().execute("UPDATE replay SET running = running - $2 WHERE id = $1", args![replay, withdrawn]).await?;
    Ok(withdrawn)
}

async fn take_back(batch: &mut Batch, replay: i64, taken: &WithdrawLetter, now: Timestamp) -> Result<bool, Fault> {
    let WithdrawLetter { sent, withdrawn, print } = taken;
    let Some(letter) = waiting(batch, replay, sent).await? else { return Ok(false) };
    if !take_from_lane(batch, sent, &letter).await? {
        return Ok(false);
    }
    bury_as_it_was(batch, &letter, withdrawn).await?;
    match sent.failure.as_ref().zip(print.as_ref()) {
        Some(told) => retell(batch, (sent.job, &letter), told, now).await?,
        None => {
            if let Some(key) = letter.cause_key {
                batch.tallies.key(key).dead += 1;
                cause_rules::begin(batch, key).await?;
            }
        }
    }
    batch.conn().execute("DELETE FROM job WHERE seq = $1", args![letter.seq]).await?;
    let sql = "UPDATE replay_letter SET state = 'cancelled', claimed = false, ended_at = $2, letter = NULL
               WHERE job = $1 AND claimed";
    batch.conn().execute(sql, args![sent.job, now]).await?;
    batch.shift((letter.pipeline, &letter.round), JobState::Queued, Move::Withdraw)?;
    batch.ledger(letter.pipeline).replaying -= 1;
    Ok(true)
}

/// The letter, if nothing has happened to it since it was found.
async fn waiting(batch: &Batch, replay: i64, sent: &SentLetter) -> Result<Option<Waiting>, Fault> {
    let sql =
        "SELECT seq, pipeline, target, cause_key, attempts, attempts_before, crashes, replays, suspect, uncounted, by_name, round FROM job
               WHERE id = $1 AND replay = $2";
    let found = batch.conn().query_opt(sql, args![sent.job, replay], |row| {
        Ok(Waiting {
            seq: row.get(0)?,
            pipeline: row.get(1)?,
            target: row.get(2)?,
            cause_key: row.get(3)?,
            tally: rows::tally(row, 4)?,
            round: row.get(11)?,
        })
    });
    Ok(found.await?.filter(|letter| letter.tally == sent.tally))
}

/// Takes a letter out of where it waits, or from a worker that is gone; says whether it was there.
async fn take_from_lane(batch: &mut Batch, sent: &SentLetter, letter: &Waiting) -> Result<bool, Fault> {
    let Waiting { seq, pipeline, tally, .. } = *letter;
    if let Some(lease) = &sent.lost {
        let sql = "DELETE FROM lease WHERE job = $1 AND token = $2 AND epoch = $3";
        let taken = batch.conn().execute(sql, args![lease.job, lease.token, lease.epoch]).await? == 1;
        if taken {
            batch.shift((pipeline, &letter.round), JobState::Leased, Move::Requeue)?;
        }
        return Ok(taken);
    }
    let taken = lanes::pull_anywhere(batch, seq).await?;
    batch.ledger(pipeline).retrying -= i64::from(taken && tally.tried());
    Ok(taken)
}

async fn bury_as_it_was(batch: &Batch, letter: &Waiting, decided: &Withdrawn) -> Result<(), Fault> {
    let Withdrawn { attempts, replays, counts, suspect, gate, verdict } = decided;
    let sql = "INSERT INTO dead (id, pipeline, key, target, accepted_at, died_at, kept_from, attempts, crashes, replays, gate,
                                 reason, code, http_status, proxy, message, payload, input, cause_key, verdict, original,
                                 payload_cut, auto_replays, suspect, payload_lost, progress, seq, round, origin,
                                 definition, opened_before, refailed, uncounted)
               SELECT j.id, j.pipeline, j.key, j.target, j.accepted_at, (l.letter ->> 'died_at')::bigint,
                      (l.letter ->> 'kept_from')::bigint, $2, j.crashes, $3, $5, j.reason, j.code,
                      (l.letter ->> 'http_status')::bigint, l.letter ->> 'proxy', l.letter ->> 'message',
                      decode(nullif(l.letter ->> 'payload', ''), 'hex'), j.input, j.cause_key, $6, j.original,
                      (l.letter ->> 'cut')::bigint, j.auto_replays - CASE WHEN NOT $4 AND r.automatic THEN 1 ELSE 0 END,
                      $7, coalesce((l.letter ->> 'lost')::boolean, false), coalesce(j.progress, l.letter ->> 'progress'), j.seq, j.round,
                      j.origin, j.definition, (SELECT coalesce(max(id), 0) FROM replay), coalesce((l.letter ->> 'refailed')::boolean, false),
                      j.uncounted + CASE WHEN j.by_name THEN $2 - j.attempts_before ELSE 0 END
               FROM job j JOIN replay r ON r.id = j.replay JOIN replay_letter l ON l.job = j.id AND l.claimed
               WHERE j.seq = $1";
    let buried = args![letter.seq, attempts, replays, counts, gate.as_str(), verdict, suspect];
    batch.conn().execute(sql, buried).await?;
    Ok(())
}

/// All that a letter says comes from one failure, its last. As when it is buried, its payload is the newest that any of its
/// attempts brought.
async fn retell(
    batch: &mut Batch,
    (job, letter): (JobId, &Waiting),
    (failure, print): (&Failure, &Print),
    now: Timestamp,
) -> Result<(), Fault> {
    let (of, death) = ((letter.pipeline, letter.target.as_deref()), (Death::Again, failure.at));
    let key = cause_keys::file(batch, of, (print, failure), death).await?;
    // It keeps the payload that it had, unless an attempt brought one.
    let payload = KeptPayload::of_letter(None, payloads::newest_of(batch.conn(), &[job]).await?.remove(&job), None);
    let sql = "UPDATE dead SET died_at = $2, kept_from = $3, reason = $4, code = $5, http_status = $6, proxy = $7, message = $8,
                      cause_key = $9, payload_lost = $10, payload = coalesce($11, payload),
                      payload_cut = coalesce($12, payload_cut), refailed = true
               WHERE id = $1";
    let told = args![
        job,
        failure.at,
        now,
        failure.reason.as_str(),
        failure.code,
        failure.http_status,
        failure.proxy,
        failure.message,
        key,
        failure.lost_payload(),
        payload.as_ref().map(|payload| payload.hash),
        payload.map(|payload| i64::from(payload.truncated))
    ];
    batch.conn().execute(sql, told).await?;
    Ok(())
}
