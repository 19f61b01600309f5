//! Settling: the lease is checked, then the job goes where the decision says, with its failure and its ledger entry.

use redrive_core::causes::Print;
use redrive_core::counts::Death;
use redrive_core::dead::{Gate, KeptPayload};
use redrive_core::definitions::DefinitionVersion;
use redrive_core::failures::Failure;
use redrive_core::hand_on::HandedJob;
use redrive_core::ids::{JobId, LeaseToken};
use redrive_core::jobs::Lease;
use redrive_core::payloads::PayloadHash;
use redrive_core::replays::LetterState;
use redrive_core::settlements::{Decision, Destination, RULE_ACTOR, Settlement};
use redrive_core::state::{JobState, Move};
use redrive_core::time::Timestamp;
use rusqlite::{Connection, OptionalExtension, params};

use super::batch::Batch;
use super::breakers;
use super::fault::Fault;
use super::replay_letters::{self, Ended};
use super::{cause_keys, jobs, lanes, leases, payloads, rows};
use crate::contract::{SettleJobs, Settled, SettledJobs};

/// Settles jobs; `inputs` are those of the jobs that each of them hands on.
pub(super) fn settle(batch: &mut Batch<'_>, params: &SettleJobs, inputs: &[Vec<String>]) -> Result<SettledJobs, Fault> {
    let mut settled = Vec::with_capacity(params.settlements.len());
    let mut moved = Vec::with_capacity(params.settlements.len());
    for (settlement, inputs) in params.settlements.iter().zip(inputs) {
        let answer = settle_one(batch, settlement, params)?;
        moved.push(answer == Some(Settled::Applied));
        settled.push(answer.unwrap_or(Settled::Applied));
        if answer == Some(Settled::Applied) {
            hand_on(batch, &settlement.handed_on, inputs, params.now)?;
        }
    }
    let breakers = breakers::change(batch, &params.breakers, &moved)?;
    Ok(SettledJobs { settled, breakers })
}

/// Accepts the jobs that one that is done hands on, however full their queues are.
fn hand_on(batch: &mut Batch<'_>, jobs: &[HandedJob], inputs: &[String], now: Timestamp) -> Result<(), Fault> {
    for (handed, input) in jobs.iter().zip(inputs) {
        let pipeline = batch.pipeline(&handed.pipeline)?;
        jobs::accept(batch, pipeline, &handed.job, input, now)?;
    }
    Ok(())
}

/// Settles a job; nothing if that was done before, and is asked for again because its answer was lost.
fn settle_one(batch: &mut Batch<'_>, settlement: &Settlement, params: &SettleJobs) -> Result<Option<Settled>, Fault> {
    let Some(Leased { seq, begun, marked }) = leased(batch, settlement)? else {
        if settlement.is_resent(settled_by(batch.connection(), &settlement.lease)?) {
            return Ok(None);
        }
        if params.keep_late {
            keep_late(batch, settlement, params)?;
        }
        return Ok(Some(Settled::Stale));
    };
    let (decision, job) = (&settlement.decision, settlement.lease.job);
    // What a reaper settles was not settled by who has the lease.
    let token = params.keep_late.then_some(settlement.lease.token);
    let payload = decision.payload();
    // Refused before anything else is written.
    if let Some(payload) = payload
        && !payloads::refer(batch, job, payload, params.now)?
    {
        return Ok(Some(Settled::PayloadGone));
    }
    batch.hot("DELETE FROM lease WHERE job = ?1")?.execute([job.as_bytes()])?;
    if marked {
        leases::unmark(batch, job, settlement.lease.token)?;
    }
    if let Some(failure) = &decision.failure {
        add_failure(batch, job, failure)?;
    }
    let Moved { pipeline, target } = match &decision.destination {
        Destination::Done => complete(batch, (seq, token), settlement, params.now)?,
        Destination::Queue { due_at } => requeue(batch, (seq, begun), (decision, token), *due_at)?,
        Destination::Dead { gate, verdict } => {
            bury(batch, (seq, job, token), settlement, (*gate, verdict.as_deref()), params.now)?
        }
        Destination::Discarded { why } => discard(batch, (seq, job, token), (decision, why), params.now)?,
    };
    for delta in decision.deltas() {
        batch.count(pipeline, params.now, delta);
    }
    count(batch, (pipeline, target.as_deref()), decision, params.now);
    batch.tallies.succeeded(pipeline, settlement, params.now);
    Ok(Some(Settled::Applied))
}

/// Adds a failure to a job's history, or puts it in place of the last.
fn add_failure(batch: &Batch<'_>, job: JobId, failure: &Failure) -> Result<(), Fault> {
    let last = if failure.probe { rows::last_failure(batch.connection(), job)? } else { None };
    let Some((n, last)) = last.filter(|(_, last)| failure.replaces(last)) else {
        return rows::add_failure(batch.connection(), job, failure);
    };
    let mut update = batch.statement("UPDATE failure SET failure = ?3 WHERE job = ?1 AND n = ?2")?;
    update.execute(params![job.as_bytes(), n, serde_json::to_string(failure)?])?;
    last.kept_payload().map_or(Ok(()), |payload| payloads::let_go_of(batch, job, payload.hash))
}

/// Counts the attempt, if it was one.
fn count(batch: &mut Batch<'_>, (pipeline, target): (i64, Option<&str>), decision: &Decision, now: Timestamp) {
    let (failure, facts) = (decision.failure.as_ref(), &decision.facts);
    if decision.asked_target() {
        let proxy = failure.and_then(|failure| failure.proxy.as_deref()).or(facts.proxy.as_deref());
        let reason = failure.map(|failure| failure.reason);
        batch.tallies.attempt(pipeline, (target, proxy), (reason, decision.is_first_end()), now);
    }
    if decision.counts_fields() {
        batch.tallies.cover(pipeline, facts, now);
    }
    if decision.is_first_end() {
        batch.tallies.track(pipeline, facts, decision.destination == Destination::Done, now);
    }
}

/// A job that is settled.
struct Leased {
    /// Which row it is.
    seq: i64,
    /// Whether its attempt is known to have begun.
    begun: bool,
    /// Whether its lease is a probe, or the first of its token.
    marked: bool,
}

/// The job, if the lease is the right one.
fn leased(batch: &mut Batch<'_>, settlement: &Settlement) -> Result<Option<Leased>, Fault> {
    let lease = &settlement.lease;
    // Asked first and deleted then: `RETURNING` costs more than both.
    let found = batch
        .hot("SELECT seq, started > 0, probe OR first FROM lease WHERE job = ?1 AND token = ?2")?
        .query_row(params![lease.job.as_bytes(), lease.token.as_bytes()], |row| {
            Ok(Leased { seq: row.get(0)?, begun: row.get(1)?, marked: row.get(2)? })
        })
        .optional()?;
    Ok(found)
}

/// The state into which a job was settled by a lease, if its holder did so and nothing else has become of it since.
pub(super) fn settled_by(conn: &Connection, lease: &Lease) -> Result<Option<JobState>, Fault> {
    for (state, sql) in [
        (JobState::Done, "SELECT 1 FROM done WHERE job = ?1 AND token = ?2"),
        (JobState::Dead, "SELECT 1 FROM dead WHERE id = ?1 AND token = ?2"),
        (JobState::Queued, "SELECT 1 FROM job WHERE id = ?1 AND token = ?2"),
        (JobState::Discarded, "SELECT 1 FROM discarded WHERE job = ?1 AND token = ?2"),
    ] {
        if conn.prepare_cached(sql)?.exists(params![lease.job.as_bytes(), lease.token.as_bytes()])? {
            return Ok(Some(state));
        }
    }
    Ok(None)
}

/// Keeps a settlement that came too late, once however often it is sent.
fn keep_late(batch: &Batch<'_>, settlement: &Settlement, params: &SettleJobs) -> Result<(), Fault> {
    let destination = settlement.decision.destination.state();
    let failure = settlement.decision.failure.as_ref().map(serde_json::to_string).transpose()?;
    batch
        .statement(
            "INSERT INTO late (job, at, worker, epoch, destination, failure) SELECT ?1, ?2, ?3, ?4, ?5, ?6
             WHERE NOT EXISTS (SELECT 1 FROM late WHERE (job, at, worker, epoch, destination) = (?1, ?2, ?3, ?4, ?5))",
        )?
        .execute(params![
            settlement.lease.job.as_bytes(),
            params.now.as_millis(),
            params.worker.as_bytes(),
            settlement.lease.epoch,
            destination.as_str(),
            failure
        ])?;
    Ok(())
}

/// What a settled job leaves to be noted.
struct Moved {
    pipeline: i64,
    target: Option<String>,
}

fn complete(
    batch: &mut Batch<'_>,
    (seq, token): (i64, Option<LeaseToken>),
    settlement: &Settlement,
    now: Timestamp,
) -> Result<Moved, Fault> {
    let Settlement { lease: Lease { job, .. }, decision, definition, .. } = settlement;
    let select = batch.hot(
        "SELECT pipeline, key, target, accepted_at, replay, cause_key, round, origin, reason IS NOT NULL
         FROM job WHERE seq = ?1",
    )?;
    let (pipeline, key, target, accepted_at, replay, cause_key, round, origin, has_failed) =
        select.query_row([seq], |row| {
            let (pipeline, accepted_at): (i64, i64) = (row.get(0)?, row.get(3)?);
            let (key, replay): (Option<String>, Option<i64>) = (row.get(1)?, row.get(4)?);
            let (round, origin): (String, Option<String>) = (row.get(6)?, row.get(7)?);
            let has_failed: bool = row.get(8)?;
            Ok((pipeline, key, row.get(2)?, accepted_at, replay, row.get(5)?, round, origin, has_failed))
        })?;
    batch.hot("DELETE FROM job WHERE seq = ?1")?.execute([seq])?;
    let tally = decision.tally;
    // Only failures bring payloads besides the one that is kept.
    if has_failed || tally.replays > 0 {
        payloads::let_go(batch, *job, decision.payload().map(|payload| payload.hash))?;
    }
    batch
        .hot(
            "INSERT INTO done (job, pipeline, key, target, accepted_at, done_at, attempts, crashes, replays, number, round,
                               origin, definition, token)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)",
        )?
        .execute(params![
            job.as_bytes(),
            pipeline,
            key,
            target,
            accepted_at,
            now.as_millis(),
            tally.attempts,
            tally.crashes,
            tally.replays,
            seq,
            round,
            origin,
            definition.as_ref().map(DefinitionVersion::as_str),
            token.as_ref().map(LeaseToken::as_bytes)
        ])?;
    batch.shift((pipeline, &round), JobState::Leased, Move::Complete)?;
    if tally.replays > 0 {
        batch.ledger(pipeline).recovered += 1;
    }
    if let Some(replay) = replay {
        let ended = Ended { replay, job: *job, pipeline, state: LetterState::Recovered, keys: (cause_key, None) };
        replay_letters::note_end(batch, &ended, now)?;
    }
    Ok(Moved { pipeline, target })
}

/// Discards a job as a rule says, with a record of why.
fn discard(
    batch: &mut Batch<'_>,
    (seq, job, token): (i64, JobId, Option<LeaseToken>),
    (decision, why): (&Decision, &str),
    now: Timestamp,
) -> Result<Moved, Fault> {
    let (tally, failure) = (decision.tally, decision.failure.as_ref());
    batch
        .statement(
            "INSERT INTO discarded (job, pipeline, key, target, was, reason, code, attempts, crashes, replays, accepted_at,
                                    discarded_at, actor, why, number, round, origin, token)
             SELECT id, pipeline, key, target, ?2, ?3, ?4, ?5, ?6, replays, accepted_at, ?7, ?8, ?9, seq, round, origin, ?10
             FROM job WHERE seq = ?1",
        )?
        .execute(params![
            seq,
            JobState::Leased.as_str(),
            failure.map(|failure| failure.reason.as_str()),
            failure.and_then(|failure| failure.code.as_deref()),
            tally.attempts,
            tally.crashes,
            now.as_millis(),
            RULE_ACTOR,
            why,
            token.as_ref().map(LeaseToken::as_bytes)
        ])?;
    let mut delete = batch.statement("DELETE FROM job WHERE seq = ?1 RETURNING pipeline, target, replay, round")?;
    let (pipeline, target, replay, round) = delete.query_row([seq], |row| {
        Ok((row.get(0)?, row.get(1)?, row.get::<_, Option<i64>>(2)?, row.get::<_, String>(3)?))
    })?;
    batch.shift((pipeline, &round), JobState::Leased, Move::Discard)?;
    if let Some(replay) = replay {
        let ended = Ended { replay, job, pipeline, state: LetterState::Gone, keys: (None, None) };
        replay_letters::note_end(batch, &ended, now)?;
    }
    payloads::let_go(batch, job, None)?;
    Ok(Moved { pipeline, target })
}

/// Puts a job back. If its attempt had begun and came to no verdict, that is noted, for who takes the job out of its replay.
fn requeue(
    batch: &mut Batch<'_>,
    (seq, begun): (i64, bool),
    (decision, token): (&Decision, Option<LeaseToken>),
    due_at: Timestamp,
) -> Result<Moved, Fault> {
    let (tally, failure) = (decision.tally, decision.failure.as_ref());
    let mut update = batch.statement(
        "UPDATE job SET due_at = ?2, attempts = ?3, crashes = ?4, suspect = ?5, reason = ifnull(?6, reason),
                        code = iif(?6 IS NULL, code, ?7), begun = iif(?6 IS NULL, max(begun, ?8), 0),
                        definition = ifnull(?9, definition), token = ?10
         WHERE seq = ?1 RETURNING pipeline, target, replay, round",
    )?;
    let (pipeline, target, replay, round) = update.query_row(
        params![
            seq,
            due_at.as_millis(),
            tally.attempts,
            tally.crashes,
            tally.suspect,
            failure.map(|f| f.reason.as_str()),
            failure.and_then(|f| f.code.as_deref()),
            begun,
            failure.and_then(|f| f.definition.as_ref()).map(DefinitionVersion::as_str),
            token.as_ref().map(LeaseToken::as_bytes)
        ],
        |row| Ok((row.get(0)?, row.get(1)?, row.get::<_, Option<i64>>(2)?, row.get::<_, String>(3)?)),
    )?;
    let lane = lanes::home(batch, pipeline, replay)?;
    lanes::push(batch, lane, due_at, seq)?;
    batch.shift((pipeline, &round), JobState::Leased, Move::Requeue)?;
    batch.ledger(pipeline).retrying += i64::from(tally.tried());
    Ok(Moved { pipeline, target })
}

fn bury(
    batch: &mut Batch<'_>,
    (seq, job, token): (i64, JobId, Option<LeaseToken>),
    settlement: &Settlement,
    (gate, verdict): (Gate, Option<&str>),
    now: Timestamp,
) -> Result<Moved, Fault> {
    let decision = &settlement.decision;
    let tally = decision.tally;
    let print: &Print = settlement.print.as_ref().ok_or(rusqlite::Error::InvalidQuery)?;
    let failure: &Failure = decision.failure.as_ref().ok_or(rusqlite::Error::InvalidQuery)?;
    let mut select =
        batch.statement("SELECT pipeline, target, replay, cause_key, saved, round FROM job WHERE seq = ?1")?;
    let (pipeline, target, replay, before, saved, round) = select.query_row([seq], |row| {
        let (pipeline, target): (i64, Option<String>) = (row.get(0)?, row.get(1)?);
        let (replay, before): (Option<i64>, Option<i64>) = (row.get(2)?, row.get(3)?);
        let saved = row.get::<_, Option<[u8; 32]>>(4)?.map(PayloadHash::from_bytes);
        Ok((pipeline, target, replay, before, saved, row.get::<_, String>(5)?))
    })?;
    let death = decision.death();
    let key = cause_keys::file(batch, (pipeline, target.as_deref()), (print, failure), (death, now))?;
    batch.tallies.died_here(key, pipeline, settlement);
    let last = decision.payload().map(|payload| KeptPayload { hash: payload.hash, truncated: payload.truncated });
    let newest = if last.is_none() { payloads::newest_of(batch.connection(), job)? } else { None };
    let payload = KeptPayload::of_letter(last, newest, saved);
    batch
        .statement(
            "INSERT INTO dead (id, pipeline, key, target, accepted_at, died_at, kept_from, attempts, crashes, replays, gate,
                               reason, code, http_status, proxy, message, payload, input, cause_key, verdict, original,
                               payload_cut, auto_replays, payload_lost, progress, seq, round, origin, definition,
                               opened_before, token, refailed)
             SELECT id, pipeline, key, target, accepted_at, ?2, ?2, ?3, ?4, replays, ?5, ?6, ?7, ?8, ?9, ?10, ?11, input, ?12, ?13,
                    original, ?14, auto_replays, ?15, progress, seq, round, origin, ifnull(?16, definition),
                    (SELECT ifnull(max(id), 0) FROM replay), ?17, ?18
             FROM job WHERE seq = ?1",
        )?
        .execute(params![
            seq,
            now.as_millis(),
            tally.attempts,
            tally.crashes,
            gate.as_str(),
            failure.reason.as_str(),
            failure.code,
            failure.http_status,
            failure.proxy,
            failure.message,
            payload.as_ref().map(|payload| payload.hash.as_bytes()),
            key,
            verdict,
            payload.is_some_and(|payload| payload.truncated),
            failure.lost_payload(),
            failure.definition.as_ref().map(DefinitionVersion::as_str),
            token.as_ref().map(LeaseToken::as_bytes),
            death == Death::Again
        ])?;
    batch.statement("DELETE FROM job WHERE seq = ?1")?.execute([seq])?;
    batch.shift((pipeline, &round), JobState::Leased, Move::Bury)?;
    if let Some(replay) = replay {
        let ended = Ended { replay, job, pipeline, state: LetterState::Failed, keys: (before, Some(key)) };
        replay_letters::note_end(batch, &ended, now)?;
    }
    Ok(Moved { pipeline, target })
}
