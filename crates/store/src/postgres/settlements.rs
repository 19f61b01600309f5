//! Settling: the leases are checked, then each job goes where the decision says, with its failure and its ledger entry. A few
//! statements for all of them, however many there are, most of which nobody waits for.

use std::collections::{BTreeSet, HashMap};

use redrive_core::failures::Failure;
use redrive_core::ids::{JobId, LeaseToken};
use redrive_core::jobs::Lease;
use redrive_core::payloads::PayloadHash;
use redrive_core::replays::LetterState;
use redrive_core::settlements::{Decision, Destination, RULE_ACTOR, Settlement};
use redrive_core::state::{JobState, Move};
use redrive_core::time::Timestamp;

use super::batch::Batch;
use super::fault::{Fault, all_well};
use super::replay_letters::{self, Ended};
use super::sql::{Conn, Row, args};
use super::{breakers, burying, completing, enqueuing, lanes, payloads, rows};
use crate::contract::{SettleJobs, Settled, SettledJobs};

/// Settlements, and the inputs of the jobs that each of them hands on.
pub(super) struct Settle {
    pub(super) params: SettleJobs,
    pub(super) inputs: Vec<Vec<String>>,
}

pub(super) async fn settle(batch: &mut Batch, asked: &Settle) -> Result<SettledJobs, Fault> {
    let Settle { params, inputs } = asked;
    let (plain, rest) = completing::plain(&params.settlements);
    // Asked at once: neither waits for the other's answer.
    let conn = batch.conn();
    let both = tokio::join!(completing::complete_at_once(conn, &plain, params), leased(conn, &rest));
    let (mut ended, leased) = all_well(both)?;
    let mut answers = vec![None; params.settlements.len()];
    let (mut moves, mut done) = (Vec::new(), Vec::new());
    let mut held: HashMap<JobId, Leased> = leased.into_iter().map(|leased| (leased.id, leased)).collect();
    let mut referred = refer(batch.conn(), &rest, &held, params.now).await?;
    for (at, settlement) in params.settlements.iter().enumerate() {
        let lease = &settlement.lease;
        if let Some(leased) = ended.remove(&lease.job) {
            answers[at] = Some(Settled::Applied);
            done.push(Moving { settlement, leased });
            continue;
        }
        let Some(leased) = held.remove(&lease.job) else { continue };
        if leased.token != lease.token {
            // Another settlement of this batch may be the holder's.
            held.insert(lease.job, leased);
            continue;
        }
        // Refused before anything else is written.
        if let Some(payload) = settlement.decision.payload()
            && !referred.remove(&lease.job)
            && !payloads::refer(batch.conn(), lease.job, payload, params.now).await?
        {
            answers[at] = Some(Settled::PayloadGone);
            held.insert(lease.job, leased);
            continue;
        }
        answers[at] = Some(Settled::Applied);
        moves.push(Moving { settlement, leased });
    }
    let moved: Vec<bool> = answers.iter().map(|answer| *answer == Some(Settled::Applied)).collect();
    let done: Vec<&Moving<'_>> = done.iter().collect();
    completing::note_done(batch, &done, params).await?;
    count_all(batch, done.iter().copied(), params.now);
    apply(batch, &moves, params).await?;
    for (settlement, answer) in params.settlements.iter().zip(&mut answers) {
        if answer.is_none() {
            *answer = Some(without_lease(batch, settlement, params).await?);
        }
    }
    enqueuing::hand_on(batch, params, inputs, &moved).await?;
    let breakers = breakers::change(batch, &params.breakers, &moved).await?;
    Ok(SettledJobs { settled: answers.into_iter().map(|answer| answer.unwrap_or(Settled::Stale)).collect(), breakers })
}

/// What settling needs of a job, from the first nine columns of a row.
pub(super) fn leased_job(row: &Row<'_>, token: LeaseToken, (begun, rules): (bool, u64)) -> Result<Leased, Fault> {
    Ok(Leased {
        id: rows::job_id(row, 0)?,
        seq: row.get(1)?,
        pipeline: row.get(2)?,
        target: row.get(3)?,
        round: row.get(4)?,
        replay: row.get(5)?,
        cause_key: row.get(6)?,
        saved: row.get::<Option<[u8; 32]>>(7)?.map(PayloadHash::from_bytes),
        has_failed: row.get(8)?,
        token,
        begun,
        rules,
    })
}

/// Notes to which payloads the jobs refer that are settled with one; says which of them did. Of several settlements of one job the
/// first is meant that has its lease.
async fn refer(
    conn: &Conn,
    settlements: &[&Settlement],
    held: &HashMap<JobId, Leased>,
    now: Timestamp,
) -> Result<BTreeSet<JobId>, Fault> {
    let mut met = BTreeSet::new();
    let mut uses = Vec::new();
    for settlement in settlements {
        let Lease { job, token, .. } = settlement.lease;
        let is_first = held.get(&job).is_some_and(|leased| leased.token == token) && met.insert(job);
        if let (true, Some(payload)) = (is_first, settlement.decision.payload()) {
            uses.push((job, payload));
        }
    }
    payloads::refer_all(conn, &uses, now).await
}

/// What becomes of a settlement whose lease does not hold: it was applied before and is sent again, or it is too late.
async fn without_lease(batch: &Batch, settlement: &Settlement, params: &SettleJobs) -> Result<Settled, Fault> {
    if settlement.is_resent(settled_by(batch.conn(), &settlement.lease).await?) {
        return Ok(Settled::Applied);
    }
    if params.keep_late {
        keep_late(batch, settlement, params).await?;
    }
    Ok(Settled::Stale)
}

/// A job that is leased, with all that settling needs of it.
pub(super) struct Leased {
    pub(super) id: JobId,
    token: LeaseToken,
    /// Whether its attempt is known to have begun.
    begun: bool,
    pub(super) seq: i64,
    pub(super) pipeline: i64,
    pub(super) target: Option<String>,
    pub(super) round: String,
    replay: Option<i64>,
    cause_key: Option<i64>,
    pub(super) saved: Option<PayloadHash>,
    /// The version of the rules of causes.
    pub(super) rules: u64,
    /// Whether it failed before: only failures bring payloads besides the one that is kept.
    has_failed: bool,
}

/// A settlement whose lease holds.
pub(super) struct Moving<'a> {
    pub(super) settlement: &'a Settlement,
    pub(super) leased: Leased,
}

impl Moving<'_> {
    /// Whether attempts before this one may have brought payloads.
    pub(super) fn may_have_payloads(&self) -> bool {
        self.leased.has_failed || self.settlement.decision.tally.replays > 0
    }
}

/// The jobs of settlements, as far as they are leased. Whoever settles the same at this moment is waited for.
async fn leased(conn: &Conn, settlements: &[&Settlement]) -> Result<Vec<Leased>, Fault> {
    if settlements.is_empty() {
        return Ok(Vec::new());
    }
    let jobs: Vec<JobId> = settlements.iter().map(|settlement| settlement.lease.job).collect();
    let sql = "WITH l AS MATERIALIZED (SELECT seq, token, started > 0 AS begun FROM lease WHERE job = ANY($1) ORDER BY job FOR UPDATE)
               SELECT j.id, j.seq, j.pipeline, j.target, j.round, j.replay, j.cause_key, j.saved, j.reason IS NOT NULL, l.token,
                      l.begun, (SELECT version FROM cause_rules)
               FROM job j JOIN l ON l.seq = j.seq WHERE j.seq = ANY(ARRAY(SELECT seq FROM l))";
    let read = |row: &Row<'_>| leased_job(row, rows::token(row, 9)?, (row.get(10)?, row.get(11)?));
    conn.query(sql, args![jobs], read).await
}

/// Moves jobs to where their decisions say.
async fn apply(batch: &mut Batch, moves: &[Moving<'_>], params: &SettleJobs) -> Result<(), Fault> {
    if moves.is_empty() {
        return Ok(());
    }
    let jobs: Vec<JobId> = moves.iter().map(|moving| moving.leased.id).collect();
    batch.conn().send("DELETE FROM lease WHERE job = ANY($1)", args![jobs]).await?;
    add_failures(batch, moves).await?;
    let (mut done, mut back, mut dead) = (Vec::new(), Vec::new(), Vec::new());
    for moving in moves {
        match &moving.settlement.decision.destination {
            Destination::Done => done.push(moving),
            Destination::Queue { due_at } => back.push((moving, *due_at)),
            Destination::Dead { gate, verdict } => dead.push((moving, (*gate, verdict.as_deref()))),
            Destination::Discarded { why } => discard(batch, moving, why, params).await?,
        }
    }
    burying::bury(batch, &dead, params).await?;
    completing::complete(batch, &done, params).await?;
    requeue(batch, &back, params).await?;
    count_all(batch, moves, params.now);
    Ok(())
}

/// Counts what happened.
fn count_all<'a>(batch: &mut Batch, moves: impl IntoIterator<Item = &'a Moving<'a>>, now: Timestamp) {
    for Moving { settlement, leased } in moves {
        let (decision, pipeline) = (&settlement.decision, leased.pipeline);
        for delta in decision.deltas() {
            batch.count(pipeline, now, delta);
        }
        count(batch, (pipeline, leased.target.as_deref()), decision, now);
        batch.tallies.succeeded(pipeline, settlement, now);
    }
}

/// Adds failures to the histories of jobs, or puts them in place of the last.
async fn add_failures(batch: &Batch, moves: &[Moving<'_>]) -> Result<(), Fault> {
    let mut new = Vec::new();
    for Moving { settlement, leased } in moves {
        let Some(failure) = &settlement.decision.failure else { continue };
        let last = if failure.probe { rows::last_failure(batch.conn(), leased.id).await? } else { None };
        let Some((n, last)) = last.filter(|(_, last)| failure.replaces(last)) else {
            new.push((leased.id, failure));
            continue;
        };
        let sql = "UPDATE failure SET failure = $3 WHERE job = $1 AND n = $2";
        batch.conn().execute(sql, args![leased.id, n, serde_json::to_string(failure)?]).await?;
        if let Some(payload) = last.kept_payload() {
            payloads::let_go_of(batch.conn(), leased.id, payload.hash).await?;
        }
    }
    rows::add_failures(batch.conn(), &new).await
}

/// Counts the attempt, if it was one.
fn count(batch: &mut Batch, (pipeline, target): (i64, Option<&str>), decision: &Decision, now: Timestamp) {
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

/// The state into which a job was settled by a lease, if its holder did so and nothing else has become of it since.
pub(super) async fn settled_by(conn: &Conn, lease: &Lease) -> Result<Option<JobState>, Fault> {
    let sql = "SELECT 'done' FROM done WHERE job = $1 AND token = $2
               UNION ALL SELECT 'dead' FROM dead WHERE id = $1 AND token = $2
               UNION ALL SELECT 'queued' FROM job WHERE id = $1 AND token = $2
               UNION ALL SELECT 'discarded' FROM discarded WHERE job = $1 AND token = $2 LIMIT 1";
    conn.query_opt(sql, args![lease.job, lease.token], |row| rows::parsed(row, 0)).await
}

/// Keeps a settlement that came too late, once however often it is sent.
async fn keep_late(batch: &Batch, settlement: &Settlement, params: &SettleJobs) -> Result<(), Fault> {
    let destination = settlement.decision.destination.state();
    let failure = settlement.decision.failure.as_ref().map(serde_json::to_string).transpose()?;
    let sql = "INSERT INTO late (job, at, worker, epoch, destination, failure)
               SELECT $1::uuid, $2::bigint, $3::uuid, $4::bigint, $5::text, $6::text
               WHERE NOT EXISTS (SELECT 1 FROM late WHERE (job, at, worker, epoch, destination) = ($1, $2, $3, $4, $5))";
    let Lease { job, epoch, .. } = settlement.lease;
    let late = args![job, params.now, params.worker, epoch, destination.as_str(), failure];
    batch.conn().execute(sql, late).await?;
    Ok(())
}

/// The token by which a job is settled. What a reaper settles was not settled by who has the lease.
pub(super) fn token(moving: &Moving<'_>, params: &SettleJobs) -> Option<LeaseToken> {
    params.keep_late.then_some(moving.settlement.lease.token)
}

/// Notes how a job came to its end, if a replay had sent it.
pub(super) async fn note_end(
    batch: &mut Batch,
    leased: &Leased,
    (state, after): (LetterState, Option<i64>),
    now: Timestamp,
) -> Result<(), Fault> {
    let Some(replay) = leased.replay else { return Ok(()) };
    let ended = Ended { replay, job: leased.id, pipeline: leased.pipeline, state, keys: (leased.cause_key, after) };
    replay_letters::note_end(batch, &ended, now).await
}

/// Discards a job as a rule says, with a record of why.
async fn discard(batch: &mut Batch, moving: &Moving<'_>, why: &str, params: &SettleJobs) -> Result<(), Fault> {
    let Moving { settlement, leased } = moving;
    let (tally, failure) = (settlement.decision.tally, settlement.decision.failure.as_ref());
    let sql = "WITH gone AS (DELETE FROM job WHERE seq = $1 RETURNING *)
               INSERT INTO discarded (job, pipeline, key, target, was, reason, code, attempts, crashes, replays, accepted_at,
                                      discarded_at, actor, why, number, round, origin, token)
               SELECT id, pipeline, key, target, $2, $3, $4, $5, $6, replays, accepted_at, $7, $8, $9, seq, round, origin, $10
               FROM gone";
    let record = args![
        leased.seq,
        JobState::Leased.as_str(),
        failure.map(|failure| failure.reason.as_str()),
        failure.and_then(|failure| failure.code.as_deref()),
        tally.attempts,
        tally.crashes,
        params.now,
        RULE_ACTOR,
        why,
        token(moving, params)
    ];
    batch.conn().execute(sql, record).await?;
    batch.shift((leased.pipeline, &leased.round), JobState::Leased, Move::Discard)?;
    if let Some(replay) = leased.replay {
        let (job, pipeline) = (leased.id, leased.pipeline);
        let ended = Ended { replay, job, pipeline, state: LetterState::Gone, keys: (None, None) };
        replay_letters::note_end(batch, &ended, params.now).await?;
    }
    payloads::let_go(batch, &[leased.id]).await
}

/// Puts jobs back. If an attempt had begun and came to no verdict, that is noted, for who takes the job out of its replay.
async fn requeue(batch: &mut Batch, moves: &[(&Moving<'_>, Timestamp)], params: &SettleJobs) -> Result<(), Fault> {
    if moves.is_empty() {
        return Ok(());
    }
    let decisions: Vec<&Decision> = moves.iter().map(|(moving, _)| &moving.settlement.decision).collect();
    let failures: Vec<Option<&Failure>> = decisions.iter().map(|decision| decision.failure.as_ref()).collect();
    let seqs: Vec<i64> = moves.iter().map(|(moving, _)| moving.leased.seq).collect();
    let due: Vec<Timestamp> = moves.iter().map(|(_, due_at)| *due_at).collect();
    let attempts: Vec<u32> = decisions.iter().map(|decision| decision.tally.attempts).collect();
    let crashes: Vec<u32> = decisions.iter().map(|decision| decision.tally.crashes).collect();
    let suspects: Vec<bool> = decisions.iter().map(|decision| decision.tally.suspect).collect();
    let reasons: Vec<Option<&str>> = failures.iter().map(|f| f.map(|f| f.reason.as_str())).collect();
    let codes: Vec<Option<&str>> = failures.iter().map(|f| f.and_then(|f| f.code.as_deref())).collect();
    let begun: Vec<bool> = moves.iter().map(|(moving, _)| moving.leased.begun).collect();
    let definitions: Vec<Option<&str>> =
        failures.iter().map(|f| Some(f.as_ref()?.definition.as_ref()?.as_str())).collect();
    let tokens: Vec<Option<LeaseToken>> = moves.iter().map(|(moving, _)| token(moving, params)).collect();
    let sql = "UPDATE job j SET due_at = u.due_at, attempts = u.attempts, crashes = u.crashes, suspect = u.suspect,
                      reason = coalesce(u.reason, j.reason), code = CASE WHEN u.reason IS NULL THEN j.code ELSE u.code END,
                      begun = u.reason IS NULL AND (j.begun OR u.begun),
                      definition = coalesce(u.definition, j.definition), token = u.token
               FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::boolean[], $6::text[], $7::text[],
                           $8::boolean[], $9::text[], $10::uuid[])
                    AS u(seq, due_at, attempts, crashes, suspect, reason, code, begun, definition, token)
               WHERE j.seq = u.seq";
    let back = args![seqs, due, attempts, crashes, suspects, reasons, codes, begun, definitions, tokens];
    batch.conn().send(sql, back).await?;
    let mut by_lane: HashMap<(i64, Option<i64>), Vec<_>> = HashMap::new();
    for (Moving { settlement, leased }, due_at) in moves {
        by_lane.entry((leased.pipeline, leased.replay)).or_default().push((due_at.as_millis(), leased.seq));
        batch.shift((leased.pipeline, &leased.round), JobState::Leased, Move::Requeue)?;
        batch.ledger(leased.pipeline).retrying += i64::from(settlement.decision.tally.tried());
    }
    for ((pipeline, replay), jobs) in by_lane {
        let lane = lanes::home(batch, pipeline, replay).await?;
        lanes::push(batch, lane, &jobs).await?;
    }
    Ok(())
}
