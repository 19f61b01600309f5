//! A short hand for the cases: one pipeline, one worker, times in seconds.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use redrive_core::actors::{Actor, Via};
use redrive_core::breakers::{BreakerChange, BreakerPolicy, Heard, Known};
use redrive_core::causes::CauseRules;
use redrive_core::dead::{DeadLetter, Gate};
use redrive_core::failures::{Disposition, FailureReport, Reason};
use redrive_core::ids::{JobId, LeaseToken, PipelineName, WorkerId};
use redrive_core::jobs::{Lease, LeasedJob, NewJob};
use redrive_core::ledger::Ledger;
use redrive_core::policy::{Bounds, Policy};
use redrive_core::settlements::{Decision, Destination, Ending, Outcome, Settlement, decide};
use redrive_core::time::Timestamp;
use redrive_core::tokens::PipelinePattern;
use serde_json::{Value, json};

use crate::contract::{
    Beat, BreakersOf, BroughtLetter, Change, Changes, DeadFilter, EnqueueJobs, EnqueuedJob, ImportDead, Lane,
    LeaseJobs, LeasedJobs, ListDead, SettleJobs, Settled,
};
use crate::{Result, Store};

/// The store under test.
pub type Shared = Arc<dyn Store>;

/// So many seconds after the beginning.
pub const fn at(secs: i64) -> Timestamp {
    Timestamp::from_millis(1_700_000_000_000 + secs * 1_000)
}

/// The pipeline of the suite.
pub fn pipeline() -> PipelineName {
    "suite".parse().expect("a pipeline name")
}

/// The pipelines that a token with these patterns is for.
pub fn within(patterns: &[&str]) -> Vec<PipelinePattern> {
    patterns.iter().map(|pattern| pattern.parse().expect("a pattern")).collect()
}

/// A worker by number.
pub fn worker(n: u128) -> WorkerId {
    WorkerId::new(at(0), n)
}

/// A job by number, with an optional key and the input's other fields.
pub fn job(n: u128, fields: Value) -> NewJob {
    let Value::Object(input) = fields else { panic!("an input is an object") };
    NewJob::from_input(JobId::new(at(0), n), input, at(0))
}

/// Enqueues jobs to the suite's pipeline.
pub async fn enqueue(store: &Shared, jobs: Vec<NewJob>) -> Vec<EnqueuedJob> {
    try_enqueue(store, jobs, Bounds::default()).await.expect("accepted")
}

/// Enqueues jobs to a pipeline with a bound.
pub async fn try_enqueue(store: &Shared, jobs: Vec<NewJob>, bounds: Bounds) -> Result<Vec<EnqueuedJob>> {
    store.enqueue(EnqueueJobs { pipeline: pipeline(), jobs: jobs.into(), bounds, now: at(0) }).await
}

/// A heartbeat of worker `n`, whose leases last another 30 seconds.
pub fn beat(n: u128, leases: Vec<Lease>, now: Timestamp) -> Beat {
    let until = now + Duration::from_secs(30);
    let host = crate::host().to_owned();
    Beat { worker: worker(n), host, pid: 4_242, remote: false, runs: Vec::new(), leases, until, now }
}

/// Attaches worker `n`.
pub async fn attach(store: &Shared, n: u128) {
    store.beat(beat(n, Vec::new(), at(0))).await.expect("attached");
}

/// Leases up to `limit` jobs for worker 1 until 30 seconds later.
pub async fn lease_all(store: &Shared, limit: u32, now: Timestamp) -> LeasedJobs {
    lease_past_breakers(store, lease_of(Lane::Queue, limit, now)).await
}

/// What worker 1 asks for that wants jobs until 30 seconds later.
pub fn lease_of(lane: Lane, limit: u32, now: Timestamp) -> LeaseJobs {
    static TOKENS: AtomicU64 = AtomicU64::new(1);
    LeaseJobs {
        pipeline: pipeline(),
        lane,
        worker: worker(1),
        definition: None,
        token: LeaseToken::new(now, u128::from(TOKENS.fetch_add(1, Ordering::Relaxed))),
        limit,
        until: now + Duration::from_secs(30),
        gates: Vec::new(),
        gates_seen: None,
        freed: Vec::new(),
        with_tried: true,
        only: None,
        now,
    }
}

/// Leases as somebody does who knows nothing of the breakers: what they are is told, and heeded then.
pub async fn lease_past_breakers(store: &Shared, params: LeaseJobs) -> LeasedJobs {
    let mut known = Known::new(params.pipeline.clone());
    let (mut asked, mut held) = (params, BTreeMap::new());
    loop {
        let leased = store.lease(asked.clone()).await.expect("leased");
        let Some(gates) = leased.gates else {
            let held = leased.held.as_ref().unwrap_or(&held);
            let next_due = known.next_due(leased.next_due, held, asked.now);
            return LeasedJobs { next_due, ..leased };
        };
        known.learn_gates(gates);
        let rewound = known.rewind(asked.now);
        if !rewound.is_empty() {
            store.change_breakers(rewound).await.expect("changed").into_iter().for_each(|row| known.learn(row));
        }
        held = leased.held.unwrap_or(held);
        let (gates, freed) = (known.gates(asked.now), known.freed(&held, asked.now));
        asked = LeaseJobs { gates, freed, gates_seen: known.seen(), ..asked };
    }
}

/// Leases exactly one job.
pub async fn lease_one(store: &Shared, now: Timestamp) -> LeasedJob {
    let mut leased = lease_all(store, 1, now).await.jobs;
    assert_eq!(leased.len(), 1, "one job is due");
    leased.remove(0)
}

/// Settles a job as the default policy decides.
pub async fn settle(store: &Shared, job: &LeasedJob, outcome: Outcome, now: Timestamp) -> Settled {
    let ending = Ending { at: now, duration: None, worker: Some(worker(1)), chance: 0.0 };
    settle_as(store, job, decide(&Policy::default(), job, outcome, ending), now).await
}

/// Settles a job with a decision.
pub async fn settle_as(store: &Shared, job: &LeasedJob, decision: Decision, now: Timestamp) -> Settled {
    let rules = store.cause_rules().await.expect("read");
    settle_all(store, vec![Settlement::new(job, decision, &rules)], now).await[0]
}

/// Settles a job that was lost, as somebody does who does not have its lease.
pub async fn reap(store: &Shared, job: &LeasedJob, decision: Decision, now: Timestamp) -> Settled {
    let rules = store.cause_rules().await.expect("read");
    let settlements = vec![Settlement::new(job, decision, &rules)];
    let breakers = changes(&settlements, &known(store).await, now);
    let params = SettleJobs { settlements, worker: worker(1), breakers, keep_late: false, now };
    store.settle(params).await.expect("settled").settled[0]
}

/// Hands settlements over.
pub async fn settle_all(store: &Shared, settlements: Vec<Settlement>, now: Timestamp) -> Vec<Settled> {
    let breakers = changes(&settlements, &known(store).await, now);
    let params = SettleJobs { settlements, worker: worker(1), breakers, keep_late: true, now };
    store.settle(params).await.expect("settled").settled
}

/// The breakers of the suite's pipeline.
pub async fn known(store: &Shared) -> Known {
    let mut known = Known::new(pipeline());
    let all = BreakersOf { pipeline: pipeline(), after: None, limit: 1_000 };
    store.breakers_of(all).await.expect("read").into_iter().for_each(|row| known.learn(row));
    known
}

/// What settlements make of the breakers that are known.
pub fn changes(settlements: &[Settlement], known: &Known, now: Timestamp) -> Vec<BreakerChange> {
    let mut said: BTreeMap<&str, Vec<Heard>> = BTreeMap::new();
    for (by, settlement) in settlements.iter().enumerate() {
        if let Some((target, heard)) = settlement.heard(by, now) {
            said.entry(target).or_default().push(heard);
        }
    }
    let policy = BreakerPolicy::default();
    said.into_iter().filter_map(|(target, heard)| known.clone().change(target, heard, &policy)).collect()
}

/// A failure that is worth a retry.
pub fn timeout() -> Outcome {
    Outcome::Failed(FailureReport::new(Reason::Timeout, "took too long").with_code("ETIMEDOUT"))
}

/// A failure that discards its job.
pub fn gone() -> Outcome {
    let report = FailureReport::new(Reason::NotFound, "page is gone").with_code("http_404");
    Outcome::Failed(FailureReport { disposition: Some(Disposition::Discard), ..report })
}

/// A failure that is not.
pub fn fatal(reason: Reason, message: &str) -> Outcome {
    Outcome::Failed(FailureReport {
        http_status: Some(200),
        proxy: Some("p1".into()),
        ..FailureReport::new(reason, message)
    })
}

/// Enqueues a job and buries it at a time.
pub async fn bury(store: &Shared, new: NewJob, reason: Reason, message: &str, now: Timestamp) -> JobId {
    let id = new.id;
    enqueue(store, vec![new]).await;
    let leased = lease_one(store, now).await;
    assert_eq!(leased.lease.job, id, "nothing else is queued");
    let ending = Ending { at: now, duration: None, worker: None, chance: 0.0 };
    let mut decision = decide(&Policy::default(), &leased, fatal(reason, message), ending);
    decision.destination = Destination::bury(Gate::Review, None);
    settle_as(store, &leased, decision, now).await;
    id
}

/// Letters of another store, as a store without rules recognises them.
pub fn brought(letters: Vec<DeadLetter>, now: Timestamp) -> ImportDead {
    let rules = CauseRules::default();
    let recognised = |letter| BroughtLetter::recognised(letter, &rules).expect("it has a failure");
    ImportDead { letters: letters.into_iter().map(recognised).collect::<Vec<_>>().into(), by: ada(), now }
}

/// The suite's ledger.
pub async fn ledger(store: &Shared) -> Ledger {
    store.ledgers().await.expect("ledgers").get(&pipeline()).copied().unwrap_or_default()
}

/// All dead letters that a filter finds.
pub async fn dead(store: &Shared, filter: DeadFilter) -> Vec<DeadLetter> {
    let params = ListDead { with_failures: true, ..ListDead::newest(filter, 1_000) };
    store.list_dead(params).await.expect("listed").items
}

/// Listens to changes, past the first hint.
pub async fn listen(store: &Shared) -> Changes {
    let mut changes = store.changes();
    assert_eq!(changes.next().await.expect("a hint"), Change::ALL, "the first hint is about everything");
    changes
}

/// Asserts that an audit finds nothing.
pub async fn assert_sound(store: &Shared) {
    let audit = store.audit().await.expect("audited");
    assert_eq!(audit.problems, Vec::<String>::new());
}

/// Somebody.
pub fn ada() -> Actor {
    Actor::new("ada", Via::Cli)
}

/// An input of no importance.
pub fn plain() -> Value {
    json!({"url": "https://example.com/"})
}
