//! Taking in dead letters of another store. What becomes of a letter is decided by `core::dead::import`; here it is written.

use redrive_core::causes::Print;
use redrive_core::counts::{self, Death};
use redrive_core::dead::DeadLetter;
use redrive_core::dead::import::{Arrival, Grown, Holder, arrival, grown, takes_payload};
use redrive_core::definitions::DefinitionVersion;
use redrive_core::failures::Failure;
use redrive_core::ids::JobId;
use redrive_core::jobs::progress_of_task;
use redrive_core::payloads::Payload;
use redrive_core::state::JobState;
use redrive_core::time::Timestamp;
use rusqlite::params;

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
    let BroughtLetter { letter, print, dated } = brought;
    let holder = holder(batch, letter)?;
    let arrival = arrival(letter, *dated, holder.as_ref());
    match &arrival {
        Arrival::New => insert(batch, brought, now)?,
        Arrival::FailedAgain(id) => fail_again(batch, *id, (letter, print), now)?,
        Arrival::Known | Arrival::KeyTaken { .. } => {}
    }
    if let Some(delta) = counts::of_arrival(&arrival, letter.reason) {
        let pipeline = batch.pipeline(&letter.pipeline)?;
        batch.count(pipeline, now, delta);
    }
    Ok(arrival)
}

/// The job that has the letter's id, or else its key.
fn holder(batch: &mut Batch<'_>, letter: &DeadLetter) -> Result<Option<Holder>, Fault> {
    let found = |id: JobId, place: (JobState, Option<Timestamp>)| Holder { id, state: place.0, ended_at: place.1 };
    if let Some(place) = jobs::place_of(batch.connection(), letter.id)? {
        return Ok(Some(found(letter.id, place)));
    }
    let (Some(pipeline), Some(key)) = (batch.find_pipeline(&letter.pipeline)?, &letter.key) else { return Ok(None) };
    let Some(owner) = jobs::key_owner(batch, pipeline, letter.round.as_ref(), key)? else { return Ok(None) };
    Ok(jobs::place_of(batch.connection(), owner)?.map(|place| found(owner, place)))
}

fn insert(batch: &mut Batch<'_>, brought: &BroughtLetter, now: Timestamp) -> Result<(), Fault> {
    let BroughtLetter { letter, print, .. } = brought;
    let pipeline = batch.pipeline(&letter.pipeline)?;
    if let Some(key) = &letter.key {
        jobs::claim_key(batch, pipeline, (letter.round.as_ref(), key), letter.id, now)?;
    }
    let failures = letter.failures.as_deref().unwrap_or_default();
    let last = failures.last().ok_or(rusqlite::Error::InvalidQuery)?;
    let key =
        cause_keys::file(batch, (pipeline, letter.target.as_deref()), (print, last), (Death::First, letter.died_at))?;
    batch.tallies.imported(key, letter.died_at);
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

fn insert_row(
    batch: &mut Batch<'_>,
    (pipeline, key): (i64, i64),
    letter: &DeadLetter,
    now: Timestamp,
) -> Result<(), Fault> {
    let payload = payload_of(letter);
    let cut = claim_payload(batch, letter.id, payload.as_ref(), now)?;
    let number = batch.next_number()?;
    batch
        .statement(
            "INSERT INTO dead (id, pipeline, key, target, accepted_at, died_at, kept_from, attempts, crashes, replays, gate,
                               reason, code, http_status, proxy, message, payload, input, cause_key, verdict, original,
                               payload_cut, payload_lost, progress, seq, round, origin, definition, opened_before)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22,
                     ?23, ?24, ?25, ifnull(?26, ''), ?27, ?28, (SELECT ifnull(max(id), 0) FROM replay))",
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
            progress_of(letter),
            number,
            rows::round_text(letter.round.as_ref()),
            letter.origin.as_ref().map(serde_json::to_string).transpose()?,
            letter.definition.as_ref().map(DefinitionVersion::as_str)
        ])?;
    Ok(())
}

/// The task that a letter left at a provider, as it is kept.
fn progress_of(letter: &DeadLetter) -> Option<String> {
    letter.task_id.as_deref().map(|id| progress_of_task(id).to_string())
}

/// The payload that a letter names, with what its failures know of it.
fn payload_of(letter: &DeadLetter) -> Option<Payload> {
    let hash = letter.payload?;
    Some(letter.saved_payload().cloned().unwrap_or_else(|| Payload::bare(hash, 0)))
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
    if let (true, Some(progress)) = (here.id == arrived.id, progress_of(arrived)) {
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
                    refailed = 1
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
            cut
        ])?;
    Ok(())
}
