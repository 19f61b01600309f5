//! Burying: letters of a batch are filed under their causes and written, all by a few statements. How the rest of a batch is settled is in
//! `settlements`.

use redrive_core::counts::Death;
use redrive_core::dead::{Gate, KeptPayload};
use redrive_core::definitions::DefinitionVersion;
use redrive_core::ids::{JobId, LeaseToken};
use redrive_core::payloads::PayloadHash;
use redrive_core::replays::LetterState;
use redrive_core::state::{JobState, Move};
use redrive_core::time::Timestamp;

use super::batch::Batch;
use super::cause_keys::{self, Filing};
use super::fault::Fault;
use super::payloads;
use super::settlements::{Moving, note_end, token};
use super::sql::args;
use crate::contract::SettleJobs;

/// A job that dies: why it may be replayed or not, and what is said of it.
pub(super) type Burying<'a> = (&'a Moving<'a>, (Gate, Option<&'a str>));

pub(super) async fn bury(batch: &mut Batch, dying: &[Burying<'_>], params: &SettleJobs) -> Result<(), Fault> {
    if dying.is_empty() {
        return Ok(());
    }
    let keys = file(batch, dying, params.now).await?;
    let without =
        |(moving, _): &&Burying<'_>| moving.settlement.decision.payload().is_none() && moving.may_have_payloads();
    let without: Vec<JobId> = dying.iter().filter(without).map(|(moving, _)| moving.leased.id).collect();
    let newest = payloads::newest_of(batch.conn(), &without).await?;
    let mut letters = Letters::default();
    for ((moving, said), key) in dying.iter().zip(&keys) {
        letters.add(moving, *said, (*key, newest.get(&moving.leased.id).copied()), token(moving, params))?;
    }
    letters.write(batch, params.now).await?;
    for ((Moving { leased, settlement }, _), key) in dying.iter().zip(keys) {
        batch.tallies.died_here(key, leased.pipeline, settlement);
        batch.shift((leased.pipeline, &leased.round), JobState::Leased, Move::Bury)?;
        note_end(batch, leased, (LetterState::Failed, Some(key)), params.now).await?;
    }
    Ok(())
}

fn broken() -> Fault {
    Fault::Broken("a job is buried without a failure".to_owned())
}

/// Files letters under their causes.
async fn file(batch: &mut Batch, dying: &[Burying<'_>], now: Timestamp) -> Result<Vec<i64>, Fault> {
    let mut letters = Vec::with_capacity(dying.len());
    for (Moving { settlement, leased }, _) in dying {
        letters.push(Filing {
            of: (leased.pipeline, leased.target.as_deref()),
            print: settlement.print.as_ref().ok_or_else(broken)?,
            failure: settlement.decision.failure.as_ref().ok_or_else(broken)?,
            death: settlement.decision.death(),
        });
    }
    let rules = dying.first().map(|(moving, _)| moving.leased.rules);
    cause_keys::file_all(batch, &letters, rules, now).await
}

/// What is written of letters besides what their jobs have, by columns.
#[derive(Default)]
struct Letters<'a> {
    seqs: Vec<i64>,
    attempts: Vec<u32>,
    crashes: Vec<u32>,
    gates: Vec<&'static str>,
    reasons: Vec<&'static str>,
    codes: Vec<Option<&'a str>>,
    statuses: Vec<Option<u16>>,
    proxies: Vec<Option<&'a str>>,
    messages: Vec<&'a str>,
    payloads: Vec<Option<PayloadHash>>,
    keys: Vec<i64>,
    verdicts: Vec<Option<&'a str>>,
    cut: Vec<i64>,
    lost: Vec<bool>,
    definitions: Vec<Option<&'a str>>,
    tokens: Vec<Option<LeaseToken>>,
    refailed: Vec<bool>,
}

impl<'a> Letters<'a> {
    fn add(
        &mut self,
        moving: &'a Moving<'_>,
        (gate, verdict): (Gate, Option<&'a str>),
        (key, newest): (i64, Option<KeptPayload>),
        token: Option<LeaseToken>,
    ) -> Result<(), Fault> {
        let Moving { settlement, leased } = moving;
        let decision = &settlement.decision;
        let failure = decision.failure.as_ref().ok_or_else(broken)?;
        let last = decision.payload().map(|payload| KeptPayload { hash: payload.hash, truncated: payload.truncated });
        let payload = KeptPayload::of_letter(last, newest, leased.saved);
        self.seqs.push(leased.seq);
        self.attempts.push(decision.tally.attempts);
        self.crashes.push(decision.tally.crashes);
        self.gates.push(gate.as_str());
        self.reasons.push(failure.reason.as_str());
        self.codes.push(failure.code.as_deref());
        self.statuses.push(failure.http_status);
        self.proxies.push(failure.proxy.as_deref());
        self.messages.push(&failure.message);
        self.payloads.push(payload.map(|payload| payload.hash));
        self.keys.push(key);
        self.verdicts.push(verdict);
        self.cut.push(i64::from(payload.is_some_and(|payload| payload.truncated)));
        self.lost.push(failure.lost_payload());
        self.definitions.push(failure.definition.as_ref().map(DefinitionVersion::as_str));
        self.tokens.push(token);
        self.refailed.push(decision.death() == Death::Again);
        Ok(())
    }

    async fn write(self, batch: &Batch, now: Timestamp) -> Result<(), Fault> {
        let sql = "WITH gone AS (DELETE FROM job WHERE seq = ANY($1) RETURNING *)
                   INSERT INTO dead (id, pipeline, key, target, accepted_at, died_at, kept_from, attempts, crashes, replays, gate,
                                     reason, code, http_status, proxy, message, payload, input, cause_key, verdict, original,
                                     payload_cut, auto_replays, payload_lost, progress, seq, round, origin, definition,
                                     opened_before, token, refailed, uncounted)
                   SELECT g.id, g.pipeline, g.key, g.target, g.accepted_at, $2, $2, u.attempts, u.crashes, g.replays, u.gate,
                          u.reason, u.code, u.status, u.proxy, u.message, u.payload, g.input, u.cause_key, u.verdict, g.original,
                          u.cut, g.auto_replays, u.lost, g.progress, g.seq, g.round, g.origin,
                          coalesce(u.definition, g.definition), (SELECT coalesce(max(id), 0) FROM replay), u.token, u.refailed,
                          g.uncounted + CASE WHEN g.by_name THEN u.attempts - g.attempts_before ELSE 0 END
                   FROM gone g JOIN unnest($1::bigint[], $3::bigint[], $4::bigint[], $5::text[], $6::text[], $7::text[],
                                           $8::bigint[], $9::text[], $10::text[], $11::bytea[], $12::bigint[], $13::text[],
                                           $14::bigint[], $15::boolean[], $16::text[], $17::uuid[], $18::boolean[])
                        AS u(seq, attempts, crashes, gate, reason, code, status, proxy, message, payload, cause_key, verdict,
                             cut, lost, definition, token, refailed) ON u.seq = g.seq";
        let letters = args![
            self.seqs,
            now,
            self.attempts,
            self.crashes,
            self.gates,
            self.reasons,
            self.codes,
            self.statuses,
            self.proxies,
            self.messages,
            self.payloads,
            self.keys,
            self.verdicts,
            self.cut,
            self.lost,
            self.definitions,
            self.tokens,
            self.refailed
        ];
        batch.conn().send(sql, letters).await
    }
}
