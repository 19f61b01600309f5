//! Taking in dead letters of another store or program. What becomes of a letter is decided by `core::dead::import`; here it is written.

use redrive_core::causes::Print;
use redrive_core::counts::{self, Death};
use redrive_core::dead::DeadLetter;
use redrive_core::dead::import::{
    Arrival, FAILURES_MAX, Grown, Holder, Way, arrival, forget_reports_before, grown, takes_payload,
};
use redrive_core::definitions::DefinitionVersion;
use redrive_core::failures::Failure;
use redrive_core::ids::JobId;
use redrive_core::payloads::Payload;
use redrive_core::state::JobState;
use redrive_core::time::Timestamp;
use redrive_core::traffic::Facts;

use super::batch::Batch;
use super::enqueuing::{Key, owners, places_of};
use super::fault::Fault;
use super::sql::{args, storable};
use super::{cause_keys, dead, payloads, rows};
use crate::contract::BroughtLetter;

/// The payload of a letter can be worked from, only its beginning was kept, or its bytes were never here.
const WHOLE: i64 = 0;
const CUT: i64 = 1;
const MISSING: i64 = 2;

/// Takes a letter in, if it is news.
pub(super) async fn import(batch: &mut Batch, brought: &BroughtLetter, now: Timestamp) -> Result<Arrival, Fault> {
    let BroughtLetter { letter, print, way, .. } = brought;
    let holder = holder(batch, letter, *way).await?;
    let arrival = arrival(letter, *way, holder.as_ref());
    match &arrival {
        Arrival::New => insert(batch, brought, now).await?,
        Arrival::FailedAgain(id) => fail_again(batch, *id, (letter, print), now).await?,
        Arrival::FailedBesides(id) => add_to_history(batch, *id, letter, now).await?,
        Arrival::Known(_) | Arrival::KeyTaken { .. } => {}
    }
    for (delta, at) in counts::of_arrival(&arrival, *way, letter, now) {
        let pipeline = batch.pipeline(&letter.pipeline).await?;
        batch.count(pipeline, at, delta);
    }
    if *way == Way::Reported {
        count_report(batch, brought, &arrival, now).await?;
    }
    Ok(arrival)
}

fn key_of(letter: &DeadLetter) -> Option<Key> {
    Some((storable(letter.key.as_ref()?), rows::round_text(letter.round.as_ref()).to_owned()))
}

/// The job that has the letter's id, or of which it was reported before, or else its key.
async fn holder(batch: &mut Batch, letter: &DeadLetter, way: Way) -> Result<Option<Holder>, Fault> {
    if let Some(holder) = found(batch, letter.id, true).await? {
        return Ok(Some(holder));
    }
    if way == Way::Reported
        && let Some(job) = reported_of(batch, letter.id).await?
    {
        // What it was reported of may be forgotten by now; that it was reported is not.
        let gone = Holder { id: job, is_same: true, state: JobState::Discarded, ended_at: None };
        return Ok(found(batch, job, true).await?.or(Some(gone)));
    }
    let Some(pipeline) = batch.find_pipeline(&letter.pipeline).await? else { return Ok(None) };
    let Some(key) = key_of(letter) else { return Ok(None) };
    let Some((owner, _)) = owners(batch.conn(), pipeline, std::slice::from_ref(&key)).await?.remove(&key) else {
        return Ok(None);
    };
    found(batch, owner, false).await
}

async fn found(batch: &Batch, id: JobId, is_same: bool) -> Result<Option<Holder>, Fault> {
    let place = places_of(batch.conn(), &[id]).await?.remove(&id);
    Ok(place.map(|(state, ended_at)| Holder { id, is_same, state, ended_at }))
}

async fn reported_of(batch: &Batch, id: JobId) -> Result<Option<JobId>, Fault> {
    batch.conn().query_opt("SELECT job FROM report WHERE id = $1", args![id], |row| rows::job_id(row, 0)).await
}

/// Counts a failure that a program reported as one of its attempts; notes which job it was of, if that has another id.
async fn count_report(
    batch: &mut Batch,
    BroughtLetter { letter, tracked, .. }: &BroughtLetter,
    arrival: &Arrival,
    now: Timestamp,
) -> Result<(), Fault> {
    let of_another = match arrival {
        Arrival::New => None,
        Arrival::FailedAgain(id) | Arrival::FailedBesides(id) => Some(*id),
        Arrival::Known(_) | Arrival::KeyTaken { .. } => return Ok(()),
    };
    let pipeline = batch.pipeline(&letter.pipeline).await?;
    let asked = (letter.target.as_deref(), letter.proxy.as_deref());
    batch.tallies.attempt(pipeline, asked, (Some(letter.reason), of_another.is_none()), letter.died_at);
    match of_another {
        Some(job) => note_report(batch, letter.id, job, now).await,
        None => {
            batch.tallies.track(pipeline, &Facts { tracked: tracked.clone(), ..Facts::default() }, false, now);
            Ok(())
        }
    }
}

/// Notes of which job a failure was reported. What was noted long ago is forgotten, and so is the middle of a history that is too long.
async fn note_report(batch: &Batch, id: JobId, job: JobId, now: Timestamp) -> Result<(), Fault> {
    let sql = "INSERT INTO report (id, job, noted_at) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING";
    batch.conn().execute(sql, args![id, job, now]).await?;
    let sql = "DELETE FROM report WHERE id IN (SELECT id FROM report WHERE noted_at < $1 ORDER BY noted_at LIMIT 10)";
    batch.conn().execute(sql, args![forget_reports_before(now)]).await?;
    let sql = "DELETE FROM failure WHERE job = $1 AND n > (SELECT min(n) FROM failure WHERE job = $1)
               AND n <= (SELECT max(n) FROM failure WHERE job = $1) - $2";
    batch.conn().execute(sql, args![job, FAILURES_MAX - 1]).await?;
    Ok(())
}

/// Adds the last failure of a letter to the history of a job that goes on as it is.
async fn add_to_history(batch: &Batch, job: JobId, letter: &DeadLetter, now: Timestamp) -> Result<(), Fault> {
    let Some(last) = letter.failures.iter().flatten().last() else { return Ok(()) };
    claim_payload(batch, job, last.kept_payload(), now).await?;
    add_failures(batch, job, std::iter::once(last)).await
}

/// Gives a key to a letter, whoever had it: that is no longer worked on.
async fn take_key(batch: &Batch, pipeline: i64, (key, round): Key, job: JobId, now: Timestamp) -> Result<(), Fault> {
    let sql = "INSERT INTO identity (pipeline, key, round, job, met_on) VALUES ($1, $2, $3, $4, $5)
               ON CONFLICT (pipeline, key, round) DO UPDATE SET job = excluded.job, met_on = excluded.met_on";
    batch.conn().execute(sql, args![pipeline, key, round, job, now.day()]).await?;
    Ok(())
}

async fn insert(batch: &mut Batch, brought: &BroughtLetter, now: Timestamp) -> Result<(), Fault> {
    let BroughtLetter { letter, print, way, .. } = brought;
    let pipeline = batch.pipeline(&letter.pipeline).await?;
    if let Some(key) = key_of(letter) {
        take_key(batch, pipeline, key, letter.id, now).await?;
    }
    let failures = letter.failures.as_deref().unwrap_or_default();
    let last = failures.last().ok_or_else(|| Fault::Broken("a letter without a failure".to_owned()))?;
    let of = (pipeline, letter.target.as_deref());
    let key = cause_keys::file(batch, of, (print, last), (Death::First, letter.died_at)).await?;
    if matches!(way, Way::Imported { .. }) {
        batch.tallies.imported(key, letter.died_at);
    }
    insert_row(batch, (pipeline, key), letter, now).await?;
    add_failures(batch, letter.id, failures.iter()).await?;
    let ledger = batch.ledger(pipeline);
    ledger.accepted += 1;
    ledger.dead += 1;
    if let Some(ledger) = batch.rounds.add(pipeline, rows::round_text(letter.round.as_ref()), now) {
        ledger.dead += 1;
    }
    Ok(())
}

async fn add_failures<'a>(
    batch: &Batch,
    job: JobId,
    failures: impl Iterator<Item = &'a Failure> + Send,
) -> Result<(), Fault> {
    let failures: Vec<(JobId, &Failure)> = failures.map(|failure| (job, failure)).collect();
    rows::add_failures(batch.conn(), &failures).await
}

async fn insert_row(
    batch: &mut Batch,
    (pipeline, key): (i64, i64),
    letter: &DeadLetter,
    now: Timestamp,
) -> Result<(), Fault> {
    let payload = rows::payload_of(letter);
    let cut = claim_payload(batch, letter.id, payload.as_ref(), now).await?;
    let sql = "INSERT INTO dead (id, pipeline, key, target, accepted_at, died_at, kept_from, attempts, crashes, replays, gate,
                               reason, code, http_status, proxy, message, payload, input, cause_key, verdict, original,
                               payload_cut, payload_lost, progress, seq, round, origin, definition, uncounted, opened_before)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22,
                     $23, $24, nextval('job_number'), $25, $26, $27, $28, (SELECT coalesce(max(id), 0) FROM replay))";
    let row = args![
        letter.id,
        pipeline,
        letter.key,
        letter.target,
        letter.accepted_at,
        letter.died_at,
        now,
        letter.attempts,
        letter.crashes,
        letter.replays,
        letter.gate.as_str(),
        letter.reason.as_str(),
        letter.code,
        letter.http_status,
        letter.proxy,
        letter.message,
        payload.as_ref().map(|payload| payload.hash),
        serde_json::to_string(&letter.input)?,
        key,
        letter.verdict,
        letter.original.as_ref().map(serde_json::to_string).transpose()?,
        cut,
        letter.failures.iter().flatten().last().is_some_and(Failure::lost_payload),
        rows::progress_of(letter),
        rows::round_text(letter.round.as_ref()),
        letter.origin.as_ref().map(serde_json::to_string).transpose()?,
        letter.definition.as_ref().map(DefinitionVersion::as_str),
        letter.uncounted
    ];
    batch.conn().execute(sql, row).await?;
    Ok(())
}

/// Refers to a payload if its bytes are here; says whether it is enough to work from.
async fn claim_payload(batch: &Batch, job: JobId, payload: Option<&Payload>, now: Timestamp) -> Result<i64, Fault> {
    let Some(payload) = payload else { return Ok(WHOLE) };
    if !payloads::refer(batch.conn(), job, payload, now).await? {
        return Ok(MISSING);
    }
    Ok(if payload.truncated { CUT } else { WHOLE })
}

/// Adds what is new of a letter to the one that is here.
async fn fail_again(
    batch: &mut Batch,
    id: JobId,
    (arrived, print): (&DeadLetter, &Print),
    now: Timestamp,
) -> Result<(), Fault> {
    let here = dead::get(batch.conn(), id).await?.ok_or(Fault::NoRow)?;
    let grown = grown(&here, arrived);
    let Some(last) = grown.failures.last() else { return Ok(()) };
    let pipeline = batch.pipeline(&here.pipeline).await?;
    let sql = "SELECT cause_key FROM dead WHERE id = $1";
    let before: Option<i64> = batch.conn().query_one(sql, args![id], |row| row.get(0)).await?;
    let death = (Death::Again, arrived.died_at);
    let key = cause_keys::file(batch, (pipeline, here.target.as_deref()), (print, last), death).await?;
    if let Some(before) = before {
        batch.tallies.key(before).dead -= 1;
    }
    add_failures(batch, id, grown.failures.iter().map(|failure| &**failure)).await?;
    update_row(batch, &here, (&grown, last), (arrived.died_at, key), now).await?;
    if let (true, Some(progress)) = (here.id == arrived.id, rows::progress_of(arrived)) {
        batch.conn().execute("UPDATE dead SET progress = $2 WHERE id = $1", args![id, progress]).await?;
    }
    Ok(())
}

/// Its reason, code, message, status and proxy are those of its last failure. It keeps its payload until another one is here.
async fn update_row(
    batch: &Batch,
    here: &DeadLetter,
    (grown, last): (&Grown<'_>, &Failure),
    (died_at, key): (Timestamp, i64),
    now: Timestamp,
) -> Result<(), Fault> {
    let cut = claim_payload(batch, here.id, last.kept_payload(), now).await?;
    let payload = last.kept_payload().filter(|_| takes_payload(here, cut != MISSING));
    let sql = "UPDATE dead SET died_at = $2, kept_from = $3, attempts = $4, crashes = $5, replays = $6, gate = $7, reason = $8,
                    code = $9, http_status = $10, proxy = $11, message = $12, cause_key = $13, verdict = $14,
                    payload = coalesce($15, payload), payload_cut = CASE WHEN $15 IS NULL THEN payload_cut ELSE $16 END,
                    refailed = true, uncounted = $17
             WHERE id = $1";
    let row = args![
        here.id,
        died_at,
        now,
        grown.attempts,
        grown.crashes,
        grown.replays,
        grown.gate.as_str(),
        last.reason.as_str(),
        last.code,
        last.http_status,
        last.proxy,
        last.message,
        key,
        grown.verdict,
        payload.map(|payload| payload.hash),
        cut,
        grown.uncounted
    ];
    batch.conn().execute(sql, row).await?;
    Ok(())
}
