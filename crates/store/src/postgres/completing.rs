//! Completing: from the lease to the receipt, all jobs of a batch by one statement. How the rest of a batch is settled is in `settlements`.

use std::collections::HashMap;

use redrive_core::definitions::DefinitionVersion;
use redrive_core::ids::{JobId, LeaseToken};
use redrive_core::payloads::PayloadHash;
use redrive_core::replays::LetterState;
use redrive_core::settlements::{Destination, Settlement};
use redrive_core::state::{JobState, Move};

use super::batch::Batch;
use super::fault::Fault;
use super::settlements::{Leased, Moving, leased_job, note_end, token};
use super::sql::{Conn, Row, args};
use super::{leases, payloads, rows};
use crate::contract::SettleJobs;

/// Settlements of which nothing can be refused, and the others: those that complete a job and bring no payload. Of jobs that are settled
/// twice in a batch it is looked which settlement is the holder's.
pub(super) fn plain(settlements: &[Settlement]) -> (Vec<&Settlement>, Vec<&Settlement>) {
    let mut times: HashMap<JobId, usize> = HashMap::with_capacity(settlements.len());
    for settlement in settlements {
        *times.entry(settlement.lease.job).or_default() += 1;
    }
    settlements.iter().partition(|settlement| {
        let decision = &settlement.decision;
        decision.destination == Destination::Done
            && decision.failure.is_none()
            && decision.payload().is_none()
            && times.get(&settlement.lease.job) == Some(&1)
    })
}

/// Completes jobs as far as they are leased, in one statement from the lease to the receipt; says what there was to know of them.
pub(super) async fn complete_at_once(
    conn: &Conn,
    plain: &[&Settlement],
    params: &SettleJobs,
) -> Result<HashMap<JobId, Leased>, Fault> {
    if plain.is_empty() {
        return Ok(HashMap::new());
    }
    let (jobs, tokens) = leases::pairs(plain.iter().map(|settlement| &settlement.lease));
    let attempts: Vec<u32> = plain.iter().map(|settlement| settlement.decision.tally.attempts).collect();
    let crashes: Vec<u32> = plain.iter().map(|settlement| settlement.decision.tally.crashes).collect();
    let replays: Vec<u32> = plain.iter().map(|settlement| settlement.decision.tally.replays).collect();
    let definitions: Vec<Option<&str>> =
        plain.iter().map(|settlement| settlement.definition.as_ref().map(DefinitionVersion::as_str)).collect();
    let sql = "WITH u AS MATERIALIZED (
                   SELECT * FROM unnest($1::uuid[], $2::uuid[], $5::bigint[], $6::bigint[], $7::bigint[], $8::text[])
                                 AS u(job, token, attempts, crashes, replays, definition)),
               l AS (DELETE FROM lease WHERE job = ANY($1) AND (job, token) IN (SELECT job, token FROM u) RETURNING seq),
               gone AS (DELETE FROM job WHERE seq = ANY(ARRAY(SELECT seq FROM l))
                        RETURNING seq, id, pipeline, key, target, accepted_at, round, origin, replay, cause_key, saved, reason),
               ended AS (
                   INSERT INTO done (job, pipeline, key, target, accepted_at, done_at, attempts, crashes, replays, number, round,
                                     origin, definition, token)
                   SELECT g.id, g.pipeline, g.key, g.target, g.accepted_at, $3, u.attempts, u.crashes, u.replays, g.seq, g.round,
                          g.origin, u.definition, CASE WHEN $4 THEN u.token END
                   FROM gone g JOIN u ON u.job = g.id)
               SELECT id, seq, pipeline, target, round, replay, cause_key, saved, reason IS NOT NULL FROM gone";
    let ending = args![jobs, tokens, params.now, params.keep_late, attempts, crashes, replays, definitions];
    let tokens: HashMap<JobId, LeaseToken> = jobs.iter().copied().zip(tokens).collect();
    let read = |row: &Row<'_>| {
        let id = rows::job_id(row, 0)?;
        let token = *tokens.get(&id).ok_or(Fault::NoRow)?;
        // Whether its attempt had begun, and by which rules letters are filed, matters only for those that are not done.
        Ok((id, leased_job(row, token, (false, 0))?))
    };
    Ok(conn.query(sql, ending, read).await?.into_iter().collect())
}

/// Completes jobs of which something could have been refused.
pub(super) async fn complete(batch: &mut Batch, moves: &[&Moving<'_>], params: &SettleJobs) -> Result<(), Fault> {
    if moves.is_empty() {
        return Ok(());
    }
    let seqs: Vec<i64> = moves.iter().map(|moving| moving.leased.seq).collect();
    let tally = |moving: &&Moving<'_>| moving.settlement.decision.tally;
    let attempts: Vec<u32> = moves.iter().map(|moving| tally(moving).attempts).collect();
    let crashes: Vec<u32> = moves.iter().map(|moving| tally(moving).crashes).collect();
    let replays: Vec<u32> = moves.iter().map(|moving| tally(moving).replays).collect();
    let definitions: Vec<Option<&str>> =
        moves.iter().map(|moving| moving.settlement.definition.as_ref().map(DefinitionVersion::as_str)).collect();
    let tokens: Vec<Option<LeaseToken>> = moves.iter().map(|moving| token(moving, params)).collect();
    let sql = "WITH gone AS (DELETE FROM job WHERE seq = ANY($1) RETURNING seq, id, pipeline, key, target, accepted_at, round, origin)
               INSERT INTO done (job, pipeline, key, target, accepted_at, done_at, attempts, crashes, replays, number, round,
                                 origin, definition, token)
               SELECT g.id, g.pipeline, g.key, g.target, g.accepted_at, $2, u.attempts, u.crashes, u.replays, g.seq, g.round,
                      g.origin, u.definition, u.token
               FROM gone g JOIN unnest($1::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::text[], $7::uuid[])
                    AS u(seq, attempts, crashes, replays, definition, token) ON u.seq = g.seq";
    let done = args![seqs, params.now, attempts, crashes, replays, definitions, tokens];
    batch.conn().send(sql, done).await?;
    note_done(batch, moves, params).await
}

/// Notes that jobs are done: in the ledger, in their replays, and that payloads of attempts before are not needed any more.
pub(super) async fn note_done(batch: &mut Batch, moves: &[&Moving<'_>], params: &SettleJobs) -> Result<(), Fault> {
    let kept = |moving: &&&Moving<'_>| {
        let payload = moving.settlement.decision.payload();
        moving.may_have_payloads().then(|| (moving.leased.id, payload.map(|payload| payload.hash)))
    };
    let kept: Vec<(JobId, Option<PayloadHash>)> = moves.iter().filter_map(|moving| kept(&moving)).collect();
    payloads::let_go_except(batch, &kept).await?;
    for Moving { settlement, leased } in moves {
        batch.shift((leased.pipeline, &leased.round), JobState::Leased, Move::Complete)?;
        if settlement.decision.tally.replays > 0 {
            batch.ledger(leased.pipeline).recovered += 1;
        }
        note_end(batch, leased, (LetterState::Recovered, None), params.now).await?;
    }
    Ok(())
}
