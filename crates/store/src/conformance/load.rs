//! Many at once: several handles accept, work, cancel, replay, turn breakers and change causes, while somebody else makes trouble. Each
//! notes what it was answered; at the end that is compared with what is there.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use redrive_core::breakers::{BreakerTurn, HeldBy, NextBreaker, turned};
use redrive_core::causes::CauseChange;
use redrive_core::failures::Reason;
use redrive_core::hand_on::HandedJob;
use redrive_core::ids::JobId;
use redrive_core::jobs::LeasedJob;
use redrive_core::policy::Policy;
use redrive_core::replays::Advance;
use redrive_core::settlements::{Destination, Ending, Outcome, Settlement, decide};
use redrive_core::time::Timestamp;
use serde_json::json;
use tokio::task::JoinSet;

use super::causes::{self, causes};
use super::recount::assert_recounted;
use super::replays;
use super::script::{
    Shared, ada, assert_sound, at, attach, enqueue, fatal, job, lease_all, ledger, pipeline, settle_all, timeout,
    worker,
};
use crate::contract::{CancelJobs, EnqueuedJob, NoteProgress, Settled, StartJobs, TurnBreaker};

/// What was answered, by all together.
#[derive(Default)]
struct Answered {
    accepted: BTreeSet<JobId>,
    /// Jobs that somebody is at.
    leased: BTreeSet<JobId>,
    done: BTreeSet<JobId>,
    recovered: u64,
    cancelled: BTreeSet<JobId>,
    /// Whose settlement came too late.
    stale: BTreeSet<JobId>,
}

/// Handles under load.
pub struct Load {
    stores: Vec<Shared>,
    shared: Arc<Together>,
    tasks: JoinSet<()>,
}

#[derive(Default)]
struct Together {
    is_over: AtomicBool,
    answered: Mutex<Answered>,
    settled: AtomicU64,
    numbers: AtomicU64,
}

impl Together {
    fn note<T>(&self, note: impl FnOnce(&mut Answered) -> T) -> T {
        note(&mut self.answered.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn number(&self) -> u128 {
        u128::from(self.numbers.fetch_add(1, Ordering::SeqCst)) + 1
    }

    fn goes_on(&self) -> bool {
        !self.is_over.load(Ordering::SeqCst)
    }
}

impl Load {
    /// Puts handles of one store under load. Their clocks are minutes apart.
    pub async fn begin(stores: Vec<Shared>) -> Self {
        attach(&stores[0], 1).await;
        let (shared, mut tasks) = (Arc::<Together>::default(), JoinSet::new());
        for (n, store) in (0..).zip(&stores) {
            tasks.spawn(accept(Arc::clone(store), Arc::clone(&shared)));
            tasks.spawn(work(Arc::clone(store), Arc::clone(&shared), at(n * 180)));
        }
        let [first, last] = [&stores[0], &stores[stores.len() - 1]];
        tasks.spawn(cancel(Arc::clone(first), Arc::clone(&shared)));
        tasks.spawn(replay(Arc::clone(last), Arc::clone(&shared)));
        tasks.spawn(meddle(Arc::clone(first), Arc::clone(&shared)));
        Self { stores, shared, tasks }
    }

    /// How many settlements were answered so far.
    pub fn settled(&self) -> u64 {
        self.shared.settled.load(Ordering::SeqCst)
    }

    /// Waits until so many more settlements were answered. Fails if a caller does.
    pub async fn settle_more(&mut self, more: u64) {
        let enough = self.settled() + more;
        while self.settled() < enough {
            tokio::time::sleep(Duration::from_millis(10)).await;
            while let Some(ended) = self.tasks.try_join_next() {
                ended.expect("nobody fails");
            }
        }
    }

    /// Ends the load, brings all to its end and compares: what was answered is there once, and nothing else.
    pub async fn end(mut self) {
        self.shared.is_over.store(true, Ordering::SeqCst);
        while let Some(ended) = self.tasks.join_next().await {
            ended.expect("nobody fails");
        }
        let store = &self.stores[0];
        let mut now = at(1_000_000);
        while ledger(store).await.queued > 0 {
            now = now + Duration::from_secs(3_600);
            take(store, &self.shared, lease_all(store, 50, now).await.jobs, now).await;
        }
        let counts = ledger(store).await;
        let together = std::mem::take(&mut *self.shared.answered.lock().unwrap_or_else(PoisonError::into_inner));
        let count = |set: &BTreeSet<JobId>| i64::try_from(set.len()).expect("few");
        let answered = (count(&together.accepted), count(&together.done), count(&together.cancelled));
        assert_eq!((counts.accepted, counts.done, counts.discarded), answered, "what is there, and what was answered");
        assert_eq!((counts.queued, counts.leased), (0, 0));
        assert_eq!(u64::try_from(counts.recovered), Ok(together.recovered));
        assert!(together.stale.is_subset(&together.cancelled), "a lease was lost: {:?}", together.stale);
        for store in &self.stores {
            assert_recounted(store).await;
        }
        assert_sound(store).await;
    }
}

/// Accepts jobs, three at a time, some of them twice.
async fn accept(store: Shared, shared: Arc<Together>) {
    while shared.goes_on() {
        let numbers = [shared.number(), shared.number(), shared.number()];
        let new = |n: &u128| job(*n, json!({"key": format!("k{n}"), "url": format!("https://h{}/", n % 5)}));
        let jobs: Vec<_> = numbers.iter().map(new).collect();
        let ids: Vec<JobId> = jobs.iter().map(|job| job.id).collect();
        let all: Vec<_> = ids.iter().map(|id| EnqueuedJob::Accepted(*id)).collect();
        assert_eq!(enqueue(&store, jobs.clone()).await, all);
        if numbers[0].is_multiple_of(4) {
            assert_eq!(enqueue(&store, jobs).await, all, "sent again");
        }
        shared.note(|answered| answered.accepted.extend(ids));
        // Not more than can be worked on.
        tokio::time::sleep(Duration::from_millis(30)).await;
    }
}

/// Leases and settles.
async fn work(store: Shared, shared: Arc<Together>, from: Timestamp) {
    let mut now = from;
    while shared.goes_on() {
        now = now + Duration::from_secs(1);
        let leased = lease_all(&store, 7, now).await.jobs;
        if leased.is_empty() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        take(&store, &shared, leased, now).await;
    }
}

/// Works on jobs that were leased: some are done, and of these some hand others on; some die, some are tried again.
async fn take(store: &Shared, shared: &Together, leased: Vec<LeasedJob>, now: Timestamp) {
    if leased.is_empty() {
        return;
    }
    for job in &leased {
        assert!(shared.note(|answered| answered.leased.insert(job.lease.job)), "leased by two");
    }
    let leases: Vec<_> = leased.iter().map(|job| job.lease).collect();
    store.start(StartJobs { leases, own_process: false }).await.expect("started");
    let progress = NoteProgress { lease: leased[0].lease, progress: Some(json!({"page": 2})) };
    store.note_progress(progress).await.expect("noted");
    let rules = store.cause_rules().await.expect("read");
    let mut handed = Vec::new();
    let settlements: Vec<Settlement> = leased
        .iter()
        .map(|job| {
            let n = shared.number();
            let outcome = match (n % 8, job.tally.replays) {
                (0, 0) => fatal(Reason::SchemaValidation, "the price is missing"),
                (1, _) if job.tally.attempts == 0 => timeout(),
                _ => Outcome::Done,
            };
            let hands_on = matches!(outcome, Outcome::Done) && n % 8 == 2;
            let ending = Ending { at: now, duration: None, worker: Some(worker(1)), chance: 0.0 };
            let settlement = Settlement::new(job, decide(&Policy::default(), job, outcome, ending), &rules);
            if !hands_on {
                return settlement;
            }
            let next = super::script::job(n, json!({"key": format!("k{n}"), "url": "https://next/"}));
            handed.push((job.lease.job, next.id));
            settlement.handing_on(vec![HandedJob { pipeline: pipeline(), job: next }])
        })
        .collect();
    let is_done: Vec<bool> = settlements.iter().map(|s| s.decision.destination == Destination::Done).collect();
    // Once it is settled, somebody else may have it before this one hears of it.
    shared.note(|answered| leased.iter().for_each(|job| assert!(answered.leased.remove(&job.lease.job))));
    let answers = settle_all(store, settlements, now).await;
    shared.settled.fetch_add(answers.len() as u64, Ordering::SeqCst);
    shared.note(|answered| {
        for ((job, answer), is_done) in leased.iter().zip(answers).zip(is_done) {
            let id = job.lease.job;
            if answer != Settled::Applied {
                answered.stale.insert(id);
            } else if is_done {
                assert!(answered.done.insert(id), "settled twice");
                answered.recovered += u64::from(job.tally.replays > 0);
                answered.accepted.extend(handed.iter().filter(|(by, _)| *by == id).map(|(_, next)| *next));
            }
        }
    });
}

/// Cancels one job after another, wherever it is.
async fn cancel(store: Shared, shared: Arc<Together>) {
    while shared.goes_on() {
        let some = shared.note(|answered| answered.accepted.iter().next_back().copied());
        let Some(id) = some.filter(|id| !shared.note(|answered| answered.cancelled.contains(id))) else {
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        let params = CancelJobs { ids: vec![id], by: ada(), why: "not wanted".into(), now: at(9) };
        let cancelled = store.cancel_jobs(params).await.expect("cancelled");
        shared.note(|answered| answered.cancelled.extend(cancelled));
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// Replays what is dead, again and again, and works on what was sent.
async fn replay(store: Shared, shared: Arc<Together>) {
    let (mut n, mut now) = (0, at(100));
    while shared.goes_on() {
        n += 1;
        now = now + Duration::from_secs(10);
        if replays::start(&store, n, replays::at_once()).await.included == 0 {
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        }
        while !matches!(replays::advance(&store, n, now).await, Advance::Finish) {
            now = now + Duration::from_secs(60);
            take(&store, &shared, replays::lease(&store, n, now).await, now).await;
        }
    }
}

/// Turns a breaker and changes a cause, again and again.
async fn meddle(store: Shared, shared: Arc<Together>) {
    let mut turns = 0;
    while shared.goes_on() {
        turns += 1;
        let hold = HeldBy { by: ada(), why: Some("no money".into()), until: None };
        turn(&store, if turns % 2 == 1 { BreakerTurn::Hold(hold) } else { BreakerTurn::Close }, at(turns)).await;
        if let Some(cause) = causes(&store, at(100)).await.first() {
            causes::change(&store, &cause.id, CauseChange::Note(format!("note {turns}"))).await;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    // Others wait for what is held.
    while !turn(&store, BreakerTurn::Close, at(turns + 1)).await {}
}

/// Turns the breaker of a target, if it can be turned so; says whether nobody else did at the same time.
async fn turn(store: &Shared, turn: BreakerTurn, now: Timestamp) -> bool {
    let target = "h3".to_owned();
    let row = store.get_breaker(pipeline(), target.clone()).await.expect("read");
    let Ok(breaker) = turned(row.breaker.as_ref(), &turn, now) else { return true };
    let next = NextBreaker { was: row.version, breaker, folded_to: row.pending_to };
    let (verb, why) = (turn.as_str(), turn.why().map(str::to_owned));
    let params = TurnBreaker { pipeline: pipeline(), target, next, verb, why, by: ada(), now };
    store.turn_breaker(params).await.expect("answered")
}
