//! Taking in dead letters of another store or program. What becomes of a letter is decided by `core::dead::import`; here it is written.

use redrive_core::causes::Print;
use redrive_core::counts::{self, Death};
use redrive_core::dead::DeadLetter;
use redrive_core::dead::import::{
    Arrival, FAILURES_MAX, Grown, Holder, Way, arrival, forget_reports_before, grown, takes_payload,
};
use redrive_core::definitions::DefinitionVersion;
use redrive_core::failures::Failure;
use redrive_core::ids::{JobId, RoundName};
use redrive_core::payloads::Payload;
use redrive_core::state::JobState;
use redrive_core::time::Timestamp;
use redrive_core::traffic::Facts;
use rusqlite::{OptionalExtension, params};

use super::batch::Batch;
use super::fault::Fault;
use super::{cause_keys, dead, jobs, payloads, rows};
use crate::contract::BroughtLetter;

/// The payload of a letter can be worked from, only its beginning was kept, or its bytes were never here.
const WHOLE: i64 = 0;
const CUT: i64 = 1;
const MISSING: i64 = 2;

/// Takes a letter in, if it is news.
pub(super) fn import(batch: &mut Batch<'_>, brought: &BroughtLetter, now: Timestamp) -> Result<Arrival, Fault> {
    let BroughtLetter { letter, print, way, .. } = brought;
    let holder = holder(batch, letter, *way)?;
    let arrival = arrival(letter, *way, holder.as_ref());
    match &arrival {
        Arrival::New => insert(batch, brought, now)?,
        Arrival::FailedAgain(id) => fail_again(batch, *id, (letter, print), now)?,
        Arrival::FailedBesides(id) => add_to_history(batch, *id, letter, now)?,
        Arrival::Known(_) | Arrival::KeyTaken { .. } => {}
    }
    for (delta, at) in counts::of_arrival(&arrival, *way, letter, now) {
        let pipeline = batch.pipeline(&letter.pipeline)?;
        batch.count(pipeline, at, delta);
    }
    if *way == Way::Reported {
        count_report(batch, brought, &arrival, now)?;
    }
    Ok(arrival)
}

/// The job that has the letter's id, or of which it was reported before, or else its key.
fn holder(batch: &mut Batch<'_>, letter: &DeadLetter, way: Way) -> Result<Option<Holder>, Fault> {
    if let Some(holder) = found(batch, letter.id, true)? {
        return Ok(Some(holder));
    }
    if way == Way::Reported
        && let Some(job) = reported_of(batch, letter.id)?
    {
        // What it was reported of may be forgotten by now; that it was reported is not.
        let gone = Holder { id: job, is_same: true, state: JobState::Discarded, ended_at: None };
        return Ok(found(batch, job, true)?.or(Some(gone)));
    }
    let (Some(pipeline), Some(key)) = (batch.find_pipeline(&letter.pipeline)?, &letter.key) else { return Ok(None) };
    let Some(owner) = jobs::key_owner(batch, pipeline, letter.round.as_ref(), key)? else { return Ok(None) };
    found(batch, owner, false)
}

fn found(batch: &Batch<'_>, id: JobId, is_same: bool) -> Result<Option<Holder>, Fault> {
    let place = jobs::place_of(batch.connection(), id)?;
    Ok(place.map(|(state, ended_at)| Holder { id, is_same, state, ended_at }))
}

fn reported_of(batch: &Batch<'_>, id: JobId) -> Result<Option<JobId>, Fault> {
    let mut select = batch.statement("SELECT job FROM report WHERE id = ?1")?;
    Ok(select.query_row([id.as_bytes()], |row| rows::job_id(row, 0)).optional()?)
}

/// Counts a failure that a program reported as one of its attempts; notes which job it was of, if that has another id.
fn count_report(
    batch: &mut Batch<'_>,
    BroughtLetter { letter, tracked, .. }: &BroughtLetter,
    arrival: &Arrival,
    now: Timestamp,
) -> Result<(), Fault> {
    let of_another = match arrival {
        Arrival::New => None,
        Arrival::FailedAgain(id) | Arrival::FailedBesides(id) => Some(*id),
        Arrival::Known(_) | Arrival::KeyTaken { .. } => return Ok(()),
    };
    let pipeline = batch.pipeline(&letter.pipeline)?;
    let asked = (letter.target.as_deref(), letter.proxy.as_deref());
    batch.tallies.attempt(pipeline, asked, (Some(letter.reason), of_another.is_none()), letter.died_at);
    match of_another {
        Some(job) => note_report(batch, letter.id, job, now),
        None => {
            batch.tallies.track(pipeline, &Facts { tracked: tracked.clone(), ..Facts::default() }, false, now);
            Ok(())
        }
    }
}

/// Notes of which job a failure was reported. What was noted long ago is forgotten, and so is the middle of a history that is too long.
fn note_report(batch: &Batch<'_>, id: JobId, job: JobId, now: Timestamp) -> Result<(), Fault> {
    batch
        .statement("INSERT INTO report (id, job, noted_at) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING")?
        .execute(params![id.as_bytes(), job.as_bytes(), now.as_millis()])?;
    batch
        .statement(
            "DELETE FROM report WHERE id IN (SELECT id FROM report WHERE noted_at < ?1 ORDER BY noted_at LIMIT 10)",
        )?
        .execute([forget_reports_before(now).as_millis()])?;
    batch
        .statement(
            "DELETE FROM failure WHERE job = ?1 AND n > (SELECT min(n) FROM failure WHERE job = ?1)
             AND n <= (SELECT max(n) FROM failure WHERE job = ?1) - ?2",
        )?
        .execute(params![job.as_bytes(), FAILURES_MAX - 1])?;
    Ok(())
}

/// Adds the last failure of a letter to the history of a job that goes on as it is.
fn add_to_history(batch: &Batch<'_>, job: JobId, letter: &DeadLetter, now: Timestamp) -> Result<(), Fault> {
    let Some(last) = letter.failures.iter().flatten().last() else { return Ok(()) };
    claim_payload(batch, job, last.kept_payload(), now)?;
    rows::add_failure(batch.connection(), job, last)
}

fn insert(batch: &mut Batch<'_>, brought: &BroughtLetter, now: Timestamp) -> Result<(), Fault> {
    let BroughtLetter { letter, print, way, .. } = brought;
    let pipeline = batch.pipeline(&letter.pipeline)?;
    if let Some(key) = &letter.key {
        take_key(batch, pipeline, (letter.round.as_ref(), key), letter.id, now)?;
    }
    let failures = letter.failures.as_deref().unwrap_or_default();
    let last = failures.last().ok_or(rusqlite::Error::InvalidQuery)?;
    let key =
        cause_keys::file(batch, (pipeline, letter.target.as_deref()), (print, last), (Death::First, letter.died_at))?;
    if matches!(way, Way::Imported { .. }) {
        batch.tallies.imported(key, letter.died_at);
    }
    insert_row(batch, (pipeline, key), letter, now)?;
    for failure in failures {
        rows::add_failure(batch.connection(), letter.id, failure)?;
    }
    let ledger = batch.ledger(pipeline);
    ledger.accepted += 1;
    ledger.dead += 1;
    if let Some(ledger) = batch.rounds.add(pipeline, rows::round_text(letter.round.as_ref()).unwrap_or_default(), now) {
        ledger.dead += 1;
    }
    Ok(())
}

/// Gives a key to a letter, whoever had it: that is no longer worked on.
fn take_key(
    batch: &Batch<'_>,
    pipeline: i64,
    (round, key): (Option<&RoundName>, &str),
    job: JobId,
    now: Timestamp,
) -> Result<(), Fault> {
    batch
        .statement(
            "INSERT INTO identity (pipeline, round, key, job, met_on) VALUES (?1, ifnull(?2, ''), ?3, ?4, ?5)
             ON CONFLICT DO UPDATE SET job = excluded.job, met_on = excluded.met_on",
        )?
        .execute(params![pipeline, rows::round_text(round), key, job.as_bytes(), now.day()])?;
    Ok(())
}

fn insert_row(
    batch: &mut Batch<'_>,
    (pipeline, key): (i64, i64),
    letter: &DeadLetter,
    now: Timestamp,
) -> Result<(), Fault> {
    let payload = rows::payload_of(letter);
    let cut = claim_payload(batch, letter.id, payload.as_ref(), now)?;
    let number = batch.next_number()?;
    batch
        .statement(
            "INSERT INTO dead (id, pipeline, key, target, accepted_at, died_at, kept_from, attempts, crashes, replays, gate,
                               reason, code, http_status, proxy, message, payload, input, cause_key, verdict, original,
                               payload_cut, payload_lost, progress, seq, round, origin, definition, uncounted, opened_before)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22,
                     ?23, ?24, ?25, ifnull(?26, ''), ?27, ?28, ?29, (SELECT ifnull(max(id), 0) FROM replay))",
        )?
        .execute(params![
            letter.id.as_bytes(),
            pipeline,
            letter.key,
            letter.target,
            letter.accepted_at.as_millis(),
            letter.died_at.as_millis(),
            now.as_millis(),
            letter.attempts,
            letter.crashes,
            letter.replays,
            letter.gate.as_str(),
            letter.reason.as_str(),
            letter.code,
            letter.http_status,
            letter.proxy,
            letter.message,
            payload.map(|payload| *payload.hash.as_bytes()),
            serde_json::to_string(&letter.input)?,
            key,
            letter.verdict,
            letter.original.as_ref().map(serde_json::to_string).transpose()?,
            cut,
            letter.failures.iter().flatten().last().is_some_and(Failure::lost_payload),
            rows::progress_of(letter),
            number,
            rows::round_text(letter.round.as_ref()),
            letter.origin.as_ref().map(serde_json::to_string).transpose()?,
            letter.definition.as_ref().map(DefinitionVersion::as_str),
            letter.uncounted
        ])?;
    Ok(())
}

/// Refers to a payload if its bytes are here; says whether it is enough to work from.
fn claim_payload(batch: &Batch<'_>, job: JobId, payload: Option<&Payload>, now: Timestamp) -> Result<i64, Fault> {
    let Some(payload) = payload else { return Ok(WHOLE) };
    if payloads::place_of(batch.connection(), payload.hash)?.is_none() {
        return Ok(MISSING);
    }
    payloads::refer(batch, job, payload, now)?;
    Ok(if payload.truncated { CUT } else { WHOLE })
}

/// Adds what is new of a letter to the one that is here.
fn fail_again(
    batch: &mut Batch<'_>,
    id: JobId,
    (arrived, print): (&DeadLetter, &Print),
    now: Timestamp,
) -> Result<(), Fault> {
    let here = dead::get(batch.connection(), id)?.ok_or(rusqlite::Error::QueryReturnedNoRows)?;
    let grown = grown(&here, arrived);
    let Some(last) = grown.failures.last() else { return Ok(()) };
    let pipeline = batch.pipeline(&here.pipeline)?;
    let mut select = batch.statement("SELECT cause_key FROM dead WHERE id = ?1")?;
    let before: Option<i64> = select.query_row([id.as_bytes()], |row| row.get(0))?;
    let death = (Death::Again, arrived.died_at);
    let key = cause_keys::file(batch, (pipeline, here.target.as_deref()), (print, last), death)?;
    if let Some(before) = before {
        batch.tallies.key(before).dead -= 1;
    }
    for failure in &grown.failures {
        rows::add_failure(batch.connection(), id, failure)?;
    }
    update_row(batch, &here, (&grown, last), (arrived.died_at, key), now)?;
    if let (true, Some(progress)) = (here.id == arrived.id, rows::progress_of(arrived)) {
        let mut update = batch.statement("UPDATE dead SET progress = ?2 WHERE id = ?1")?;
        update.execute(params![id.as_bytes(), progress])?;
    }
    Ok(())
}

/// Its reason, code, message, status and proxy are those of its last failure. It keeps its payload until another one is here.
fn update_row(
    batch: &Batch<'_>,
    here: &DeadLetter,
    (grown, last): (&Grown<'_>, &Failure),
    (died_at, key): (Timestamp, i64),
    now: Timestamp,
) -> Result<(), Fault> {
    let cut = claim_payload(batch, here.id, last.kept_payload(), now)?;
    let payload = last.kept_payload().filter(|_| takes_payload(here, cut != MISSING));
    batch
        .statement(
            "UPDATE dead SET died_at = ?2, kept_from = ?3, attempts = ?4, crashes = ?5, replays = ?6, gate = ?7, reason = ?8,
                    code = ?9, http_status = ?10, proxy = ?11, message = ?12, cause_key = ?13, verdict = ?14,
                    payload = ifnull(?15, payload), payload_cut = iif(?15 IS NULL, payload_cut, ?16),
                    refailed = 1, uncounted = ?17
             WHERE id = ?1",
        )?
        .execute(params![
            here.id.as_bytes(),
            died_at.as_millis(),
            now.as_millis(),
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
            payload.map(|payload| payload.hash.as_bytes()),
            cut,
            grown.uncounted
        ])?;
    Ok(())
}
