//! Random histories: two handles whose clocks differ do whatever comes, and a model in memory says where every job must be.
//!
//! `REDRIVE_HISTORIES` says how many seeds are tried; the seed of a failure is printed, and `REDRIVE_HISTORY` tries it alone.

use std::collections::BTreeMap;

use redrive_core::crashes::judge;
use redrive_core::dead::import::Arrival;
use redrive_core::failures::{FailureReport, Reason};
use redrive_core::ids::JobId;
use redrive_core::jobs::LeasedJob;
use redrive_core::policy::Policy;
use redrive_core::replays::Advance;
use redrive_core::settlements::{Destination, Ending, Outcome, decide};
use redrive_core::state::JobState;
use redrive_core::time::Timestamp;
use serde_json::json;

use super::recount::assert_recounted;
use super::replays;
use super::script::{
    Shared, ada, assert_sound, at, attach, brought, dead, enqueue, fatal, gone, job, lease_all, pipeline, reap,
    settle_as, timeout,
};
use crate::contract::{CancelJobs, DeadFilter, DiscardDead, EnqueuedJob, ExpireDead, FindLostLeases, JobFilter};
use crate::contract::{ForgetHistory, ListCauses, ListJobs, ListReplays, Settled};

/// Seeds that are tried unless something else is said.
const SEEDS: u64 = 12;

const DAY: i64 = 86_400;

/// Steps of one history.
const STEPS: i64 = 120;

/// Whatever happens, in whatever order, every job is where the model says, and the ledger agrees.
pub async fn any_history_adds_up(first: Shared, second: Shared) {
    let read = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let seeds: Vec<u64> = match read("REDRIVE_HISTORY") {
        Some(seed) => vec![seed],
        None => (1..=read("REDRIVE_HISTORIES").unwrap_or(SEEDS)).collect(),
    };
    live([first, second], seeds).await;
}

/// Lives the histories of seeds, one after another, through two handles of a store.
pub async fn live(handles: [Shared; 2], seeds: impl IntoIterator<Item = u64>) {
    attach(&handles[0], 1).await;
    let mut history = History::new(handles);
    for seed in seeds {
        eprintln!("history of seed {seed}");
        history.chance = Chance(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        history.live(i64::try_from(seed).unwrap_or(1) * 10_000).await;
    }
}

/// What people see of a store that has lived, as text.
pub async fn seen(store: &Shared) -> String {
    let listed = ListJobs { filter: JobFilter::default(), limit: 999, cursor: None };
    let jobs = store.list_jobs(listed).await.expect("listed").items;
    let all = ListCauses::all(99, at(9_000_000));
    let causes = store.list_causes(all).await.expect("listed");
    let replays = ListReplays::newest(99);
    let replays = store.list_replays(replays).await.expect("listed").items;
    let ledgers = store.ledgers().await.expect("read");
    assert!(!jobs.is_empty() && !causes.is_empty() && !replays.is_empty(), "it has lived");
    format!("{ledgers:#?} {jobs:#?} {:#?} {causes:#?} {replays:#?}", dead(store, DeadFilter::default()).await)
}

/// A source of randomness that can be had again.
struct Chance(u64);

impl Chance {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides.max(1)
    }
}

struct History {
    handles: [Shared; 2],
    chance: Chance,
    /// Where each job must be.
    model: BTreeMap<JobId, JobState>,
    keys: BTreeMap<String, JobId>,
    /// Leases that somebody has, or had.
    leased: Vec<LeasedJob>,
    jobs: u128,
    replays: u128,
    /// How often what is over was looked through.
    laps: i64,
}

impl History {
    fn new(handles: [Shared; 2]) -> Self {
        let (model, keys, leased) = (BTreeMap::new(), BTreeMap::new(), Vec::new());
        Self { handles, chance: Chance(1), model, keys, leased, jobs: 0, replays: 0, laps: 0 }
    }

    async fn live(&mut self, from: i64) {
        for step in 0..STEPS {
            // The second handle's clock is two minutes ahead.
            let which = self.chance.roll(2);
            let store = std::sync::Arc::clone(&self.handles[which as usize]);
            self.step(&store, at(from + step + 120 * which as i64)).await;
            if step % 20 == 19 {
                self.compare(&store).await;
            }
        }
        assert_recounted(&self.handles[0]).await;
        assert_sound(&self.handles[1]).await;
    }

    async fn step(&mut self, store: &Shared, now: Timestamp) {
        match self.chance.roll(15) {
            0..=2 => self.enqueue(store).await,
            3 | 4 => self.lease(store, now).await,
            5..=8 => self.settle(store, now).await,
            9 => self.lose(store, now).await,
            10 => self.cancel(store, now).await,
            11 => self.discard(store, now).await,
            12 => self.import_or_expire(store, now).await,
            13 => self.forget(store).await,
            _ => self.replay(store, now).await,
        }
    }

    fn moves(&mut self, id: JobId, from: &[JobState], to: JobState) {
        let was = self.model.insert(id, to);
        assert!(was.is_some_and(|was| from.contains(&was)), "{id} was {was:?}, not one of {from:?}");
    }

    async fn enqueue(&mut self, store: &Shared) {
        self.jobs += 1;
        let key = format!("k{}", self.chance.roll(300));
        let url = format!("https://h{}/", self.chance.roll(3));
        let new = job(1_000 + self.jobs, json!({"key": key, "url": url}));
        let answers = enqueue(store, vec![new.clone(), new.clone()]).await;
        match self.keys.get(&key) {
            Some(owner) => assert!(matches!(answers[0], EnqueuedJob::Known { id, .. } if id == *owner)),
            None => {
                assert_eq!(answers, [EnqueuedJob::Accepted(new.id); 2], "the second is the first sent again");
                self.keys.insert(key, new.id);
                self.model.insert(new.id, JobState::Queued);
            }
        }
    }

    async fn lease(&mut self, store: &Shared, now: Timestamp) {
        let limit = 1 + self.chance.roll(4) as u32;
        for leased in lease_all(store, limit, now).await.jobs {
            self.take(leased);
        }
    }

    /// A lease that is answered again, to the same token, is the same lease.
    fn take(&mut self, leased: LeasedJob) {
        if self.leased.iter().any(|known| known.lease == leased.lease) {
            assert_eq!(self.model.get(&leased.lease.job), Some(&JobState::Leased));
            return;
        }
        self.moves(leased.lease.job, &[JobState::Queued], JobState::Leased);
        self.leased.push(leased);
    }

    async fn settle(&mut self, store: &Shared, now: Timestamp) {
        if self.leased.is_empty() {
            return;
        }
        let n = self.chance.roll(self.leased.len() as u64) as usize;
        let held = self.leased.swap_remove(n);
        let outcome = match self.chance.roll(7) {
            0 | 1 => Outcome::Done,
            2 => Outcome::Returned,
            3 => fatal(Reason::SchemaValidation, "no"),
            4 => Outcome::Crashed(FailureReport::message("SIGKILL")),
            5 => gone(),
            _ => timeout(),
        };
        let ending = Ending { at: now, duration: None, worker: None, chance: 0.0 };
        let decision = decide(&Policy::default(), &held, outcome, ending);
        let to = after(&decision.destination);
        match settle_as(store, &held, decision.clone(), now).await {
            Settled::Applied => self.moves(held.lease.job, &[JobState::Leased], to),
            Settled::Stale => assert_ne!(self.model.get(&held.lease.job), Some(&JobState::Leased), "its lease held"),
            Settled::PayloadGone => panic!("there was none"),
        }
        settle_as(store, &held, decision, now).await;
    }

    /// What ran out is taken back, as a reaper does.
    async fn lose(&mut self, store: &Shared, now: Timestamp) {
        let limit = 1 + self.chance.roll(3) as u32;
        let params = FindLostLeases { pipelines: vec![pipeline()], silent: Vec::new(), limit, now };
        for lost in store.lost_leases(params).await.expect("asked") {
            let ending = Ending { at: now, duration: None, worker: None, chance: 0.0 };
            let decision = judge(&Policy::default(), &lost, ending);
            let to = after(&decision.destination);
            reap(store, &lost.job, decision, now).await;
            self.moves(lost.job.lease.job, &[JobState::Leased], to);
            self.leased.retain(|held| held.lease != lost.job.lease);
        }
    }

    async fn cancel(&mut self, store: &Shared, now: Timestamp) {
        let Some(id) = self.any() else { return };
        let cancel = CancelJobs { ids: vec![id], by: ada(), why: "x".into(), now };
        if store.cancel_jobs(cancel).await.expect("asked").is_empty() {
            assert!(!matches!(self.model[&id], JobState::Queued | JobState::Leased), "it could be cancelled");
        } else {
            self.moves(id, &[JobState::Queued, JobState::Leased], JobState::Discarded);
            self.leased.retain(|held| held.lease.job != id);
        }
    }

    async fn discard(&mut self, store: &Shared, now: Timestamp) {
        let Some(id) = self.any() else { return };
        let discard = DiscardDead { ids: vec![id, id], by: ada(), why: "x".into(), now };
        let discarded = store.discard_dead(discard).await.expect("asked");
        assert_eq!(discarded.len(), usize::from(self.model[&id] == JobState::Dead));
        discarded.into_iter().for_each(|id| self.moves(id, &[JobState::Dead], JobState::Discarded));
    }

    fn any(&mut self) -> Option<JobId> {
        let n = self.chance.roll(self.model.len() as u64) as usize;
        self.model.keys().nth(n).copied()
    }

    /// Letters that are known change nothing; those of another store are new; what is too old is given up.
    async fn import_or_expire(&mut self, store: &Shared, now: Timestamp) {
        let letters = dead(store, DeadFilter::default()).await;
        let Some(mut letter) = letters.first().cloned() else { return };
        if self.chance.roll(3) == 0 {
            let params = ExpireDead { pipeline: pipeline(), before: letter.died_at, limit: 2, led: None, now };
            let expired = store.expire_dead(params).await.expect("expired");
            let left: Vec<JobId> = dead(store, DeadFilter::default()).await.iter().map(|letter| letter.id).collect();
            let gone: Vec<JobId> = letters.iter().map(|letter| letter.id).filter(|id| !left.contains(id)).collect();
            assert_eq!(gone.len() as u64, expired);
            return gone.into_iter().for_each(|id| self.moves(id, &[JobState::Dead], JobState::Discarded));
        }
        let known = store.import_dead(brought(vec![letter.clone()], now)).await.expect("imported");
        assert_eq!(known, [Arrival::Known(letter.id)]);
        self.jobs += 1;
        letter.id = job(1_000_000 + self.jobs, json!({})).id;
        letter.key = Some(format!("imported {}", self.jobs));
        letter.number = None;
        let new = store.import_dead(brought(vec![letter.clone()], now)).await.expect("imported");
        assert_eq!(new, [Arrival::New]);
        self.model.insert(letter.id, JobState::Dead);
    }

    /// Forgets a piece of what is over: whatever is gone then was done or discarded, and its key is free.
    async fn forget(&mut self, store: &Shared) {
        self.laps += 1;
        let (before, now) = (at(30 * DAY), at((100 + self.laps) * DAY));
        let limit = 1 + self.chance.roll(9) as u32;
        let params = ForgetHistory { pipeline: pipeline(), before, limit, led: None, now };
        store.forget_receipts(params.clone()).await.expect("forgotten");
        store.forget_counts(params).await.expect("forgotten");
        let listed = listed(store).await;
        let gone: Vec<JobId> = self.model.keys().filter(|id| !listed.contains_key(id)).copied().collect();
        for id in gone {
            let was = self.model.remove(&id);
            assert!(matches!(was, Some(JobState::Done | JobState::Discarded)), "{id} was {was:?}");
            self.keys.retain(|_, owner| *owner != id);
        }
    }

    /// Replays what is dead, in one go, and leases what was sent.
    async fn replay(&mut self, store: &Shared, now: Timestamp) {
        self.replays += 1;
        let before: Vec<JobId> = dead(store, DeadFilter::default()).await.iter().map(|letter| letter.id).collect();
        let plan = replays::start(store, self.replays, replays::at_once()).await;
        if plan.included == 0 {
            return;
        }
        while !matches!(replays::advance(store, self.replays, now).await, Advance::Wait(_) | Advance::Finish) {}
        let left: Vec<JobId> = dead(store, DeadFilter::default()).await.iter().map(|letter| letter.id).collect();
        let sent: Vec<JobId> = before.into_iter().filter(|id| !left.contains(id)).collect();
        assert!(sent.len() as u64 <= plan.included);
        sent.into_iter().for_each(|id| self.moves(id, &[JobState::Dead], JobState::Queued));
        for leased in replays::lease(store, self.replays, now).await {
            self.take(leased);
        }
    }

    /// Compares what is listed with the model, job by job.
    async fn compare(&self, store: &Shared) {
        assert_eq!(listed(store).await, self.model, "what is listed beside the model");
    }
}

/// All jobs that are listed.
async fn listed(store: &Shared) -> BTreeMap<JobId, JobState> {
    let mut listed = BTreeMap::new();
    let mut params = ListJobs { filter: JobFilter::default(), limit: 50, cursor: None };
    loop {
        let page = store.list_jobs(params.clone()).await.expect("listed");
        listed.extend(page.items.into_iter().map(|job| (job.id, job.state)));
        params.cursor = page.next;
        if params.cursor.is_none() {
            return listed;
        }
    }
}

const fn after(destination: &Destination) -> JobState {
    match destination {
        Destination::Done => JobState::Done,
        Destination::Queue { .. } => JobState::Queued,
        Destination::Dead { .. } => JobState::Dead,
        Destination::Discarded { .. } => JobState::Discarded,
    }
}
