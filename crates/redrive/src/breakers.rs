//! Breakers, for whoever leases and settles in this process: what is known of them, and folding in what attempts said of their
//! targets. One for each store that is open, so that callers in one process do not get in each other's way.

mod let_go;
mod operations;
mod overdue;

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use redrive_core::breakers::{BreakerChange, BreakerPolicy, BreakerRow, Gates, Heard, Known};
use redrive_core::ids::PipelineName;
use redrive_core::settlements::Settlement;
use redrive_core::time::Timestamp;
use redrive_store::contract::{BreakersOf, Lane, LeaseJobs, LeasedJobs, SettleJobs, Settled};
use redrive_store::{Result, Store};

use crate::engine::Redrive;
use crate::events::Happening;

pub use self::let_go::LetGo;
pub use self::operations::BreakerError;
pub(crate) use self::operations::OPERATIONS;

/// How often to ask again when the gates are others by the time that a lease comes.
const TURNS_MAX: u32 = 8;

/// Breakers that are looked at at once when old ones are forgotten.
const PAGE: u32 = 500;

/// The breakers that this process knows.
#[derive(Default)]
pub(crate) struct Breakers {
    pipelines: Mutex<HashMap<PipelineName, Pipeline>>,
    /// Set when a breaker closes, and cleared by [`Breakers::take_closed`].
    closed: AtomicBool,
}

struct Pipeline {
    known: Known,
    /// What is held beside each lane, as far as it was told.
    held: HashMap<Lane, Held>,
}

/// What is held beside a lane, by target, and the gates with which that was told.
#[derive(Default)]
struct Held {
    jobs: BTreeMap<String, u64>,
    told_with: Option<u64>,
}

/// Pipelines of which nothing but that they were asked for is known are remembered up to so many: whoever names others by the thousand
/// fills no memory.
const PIPELINES_MAX: usize = 1_000;

/// Lanes of which it is remembered what is held beside them. Replays come and go.
const LANES_MAX: usize = 1_000;

impl Pipeline {
    /// Whether nothing is known of it that would not be told again.
    fn is_blank(&self) -> bool {
        self.known.is_blank() && self.held.values().all(|held| held.jobs.is_empty())
    }
}

impl Breakers {
    fn all(&self) -> MutexGuard<'_, HashMap<PipelineName, Pipeline>> {
        self.pipelines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with<T>(&self, name: &PipelineName, run: impl FnOnce(&mut Pipeline) -> T) -> T {
        let mut all = self.all();
        match all.get_mut(name) {
            Some(pipeline) => run(pipeline),
            None => {
                if all.len() >= PIPELINES_MAX {
                    all.retain(|_, pipeline| !pipeline.is_blank());
                }
                let fresh = Pipeline { known: Known::new(name.clone()), held: HashMap::new() };
                run(all.entry(name.clone()).or_insert(fresh))
            }
        }
    }

    /// Whether a target's breaker is not closed, as far as is known.
    pub(crate) fn is_shut(&self, pipeline: &PipelineName, target: &str) -> bool {
        self.all().get(pipeline).is_some_and(|pipeline| pipeline.known.is_shut(target))
    }

    /// Returns true if a breaker closed since the last call, as far as this process knows.
    pub(crate) fn take_closed(&self) -> bool {
        self.closed.swap(false, Ordering::Relaxed)
    }

    /// Leases jobs past the breakers; whatever the parameters say of gates is filled in here. Says when the next job may be
    /// leased, held or not.
    pub(crate) async fn lease(&self, store: &dyn Store, params: LeaseJobs) -> Result<LeasedJobs> {
        let (name, lane, now) = (params.pipeline.clone(), params.lane, params.now);
        let rewound = self.with(&name, |pipeline| pipeline.known.rewind(now));
        if !rewound.is_empty() {
            self.learn(&store.change_breakers(rewound).await?);
        }
        for _ in 0..TURNS_MAX {
            let asked = self.with(&name, |pipeline| {
                if pipeline.held.len() > LANES_MAX {
                    pipeline.held.clear();
                }
                let held = pipeline.held.entry(lane).or_default();
                let (gates, freed) = (pipeline.known.gates(now), pipeline.known.freed(&held.jobs, now));
                // Whoever knows the gates by another lane has still to be told what is held beside this one.
                let gates_seen = pipeline.known.seen().filter(|seen| held.told_with == Some(*seen));
                LeaseJobs { gates, freed, gates_seen, ..params.clone() }
            });
            let mut leased = store.lease(asked).await?;
            let refused = leased.gates.is_some();
            self.take_in_held(&name, lane, leased.held.take());
            if let Some(gates) = leased.gates.take() {
                self.with(&name, |pipeline| pipeline.held.entry(lane).or_default().told_with = Some(gates.version));
                self.learn_gates(&name, gates);
            }
            self.with(&name, |pipeline| {
                let held = pipeline.held.get(&lane).filter(|held| !held.jobs.is_empty());
                if let Some(held) = held {
                    leased.next_due = pipeline.known.next_due(leased.next_due, &held.jobs, now);
                }
            });
            if !refused {
                return Ok(leased);
            }
        }
        Ok(LeasedJobs { next_due: Some(now), ..LeasedJobs::default() })
    }

    /// Notes what is held beside a lane, if that was told.
    fn take_in_held(&self, name: &PipelineName, lane: Lane, held: Option<BTreeMap<String, u64>>) {
        if let Some(jobs) = held {
            self.with(name, |pipeline| pipeline.held.entry(lane).or_default().jobs = jobs);
        }
    }

    /// Takes in the breakers of a pipeline that are not closed.
    fn learn_gates(&self, name: &PipelineName, gates: Gates) {
        let closed = self.with(name, |pipeline| {
            let before = pipeline.known.shut();
            pipeline.known.learn_gates(gates);
            before.iter().any(|target| !pipeline.known.is_shut(target))
        });
        self.closed.fetch_or(closed, Ordering::Relaxed);
    }

    /// Settles jobs and folds in what they say of their targets; whatever the parameters say of breakers is filled in here.
    pub(crate) async fn settle(
        &self,
        store: &dyn Store,
        policy: &BreakerPolicy,
        params: SettleJobs,
    ) -> Result<(Vec<Settled>, Vec<Happening>)> {
        let breakers = self.changes(policy, &params.settlements, params.now);
        let begun = Begun::new(self, &breakers);
        let answer = store.settle(SettleJobs { breakers, ..params }).await?;
        let mut turned = self.learn(&answer.breakers);
        drop(begun);
        // Also what others of this process left word of while this one was at it: they could not.
        for row in &answer.breakers {
            turned.extend(self.catch_up(store, policy, row).await);
        }
        Ok((answer.settled, turned))
    }

    /// The changes that settlements make to breakers.
    fn changes(&self, policy: &BreakerPolicy, settlements: &[Settlement], now: Timestamp) -> Vec<BreakerChange> {
        let mut said: BTreeMap<(&PipelineName, &str), Vec<Heard>> = BTreeMap::new();
        for (by, settlement) in settlements.iter().enumerate() {
            if let Some((target, heard)) = settlement.heard(by, now) {
                said.entry((&settlement.pipeline, target)).or_default().push(heard);
            }
        }
        let change = |((name, target), heard): ((&PipelineName, &str), Vec<Heard>)| {
            self.with(name, |pipeline| pipeline.known.change(target, heard, policy))
        };
        said.into_iter().filter_map(change).collect()
    }

    /// Folds in what others left word of. If that fails it stays, for who settles next.
    async fn catch_up(&self, store: &dyn Store, policy: &BreakerPolicy, row: &BreakerRow) -> Vec<Happening> {
        let mut turned = Vec::new();
        for _ in 0..TURNS_MAX {
            let change = self.with(&row.pipeline, |pipeline| pipeline.known.catch_up(&row.target, policy));
            let Some(change) = change else { return turned };
            let _begun = Begun::new(self, std::slice::from_ref(&change));
            match store.change_breakers(vec![change]).await {
                Ok(rows) => turned.extend(self.learn(&rows)),
                Err(error) => {
                    tracing::debug!(%error, target = row.target, "what was said of a target is folded in later");
                    return turned;
                }
            }
        }
        turned
    }

    /// Takes in breakers as they are; says which opened and which closed since they were last looked at.
    fn learn(&self, rows: &[BreakerRow]) -> Vec<Happening> {
        let turn = |row: &BreakerRow| {
            self.with(&row.pipeline, |pipeline| {
                let was_shut = pipeline.known.is_shut(&row.target);
                pipeline.known.learn(row.clone());
                let is_shut = pipeline.known.is_shut(&row.target);
                self.closed.fetch_or(was_shut && !is_shut, Ordering::Relaxed);
                (was_shut != is_shut).then(|| turned(row, is_shut))
            })
        };
        rows.iter().filter_map(turn).collect()
    }

    /// Forgets the breakers of a pipeline that are closed and whose window is long over, and folds in what was said of targets that
    /// nobody speaks of any more, in pages, while that is to go on.
    pub(crate) async fn sweep(
        &self,
        store: &dyn Store,
        name: &PipelineName,
        policy: &BreakerPolicy,
        now: Timestamp,
        goes_on: impl Fn() -> bool,
    ) -> Result<()> {
        let mut after = None;
        while goes_on() {
            let page = store.breakers_of(BreakersOf { pipeline: name.clone(), after, limit: PAGE }).await?;
            after = page.last().map(|row| row.target.clone());
            let changes: Vec<_> = page.iter().filter_map(|row| row.tidied(policy, now)).collect();
            if !changes.is_empty() {
                self.learn(&store.change_breakers(changes).await?);
            }
            if page.len() < PAGE as usize {
                break;
            }
        }
        Ok(())
    }
}

impl Redrive {
    /// Leases jobs past the breakers: what the parameters say of gates and freed targets is filled in, and jobs of a target
    /// whose breaker is not closed are held, or come as probes.
    pub async fn lease(&self, params: LeaseJobs) -> Result<LeasedJobs> {
        self.breakers.lease(&*self.store, params).await
    }

    /// The same for a worker that waits until the store answers: what it asks for is made anew for each try, since leases begin when they
    /// are asked for.
    pub(crate) async fn lease_when_possible(&self, params: impl Fn() -> LeaseJobs) -> Result<LeasedJobs> {
        let store = &self.at_once;
        let begun = Instant::now();
        let leased = self.reach.call(&|| store.trouble(), || self.breakers.lease(&**store, params())).await;
        self.reach.times.note("lease", begun.elapsed(), leased.is_err());
        leased
    }

    /// Settles jobs: what the parameters say of breakers is filled in, from what the settlements say of their targets.
    pub async fn settle(&self, policy: &BreakerPolicy, params: SettleJobs) -> Result<Vec<Settled>> {
        let (now, worker) = (params.now, params.worker);
        let (settled, turned) = self.breakers.settle(&*self.store, policy, params).await?;
        turned.into_iter().for_each(|what| self.events.tell(now, Some(worker), what));
        Ok(settled)
    }
}

/// What it means that a breaker opened, or closed.
fn turned(row: &BreakerRow, is_shut: bool) -> Happening {
    let (pipeline, target) = (row.pipeline.clone(), row.target.clone());
    match row.breaker.as_ref().filter(|_| is_shut) {
        Some(breaker) => {
            let (why, until) = (breaker.last.as_ref().map(ToString::to_string), breaker.open_until);
            Happening::BreakerOpened { pipeline, target, why, until }
        }
        None => Happening::BreakerClosed { pipeline, target },
    }
}

/// Changes of breakers that are under way. They are released when they are answered, and also when whoever asked for them is gone
/// before: else nobody could ever change those breakers again.
struct Begun<'a> {
    breakers: &'a Breakers,
    places: Vec<(PipelineName, String)>,
}

impl<'a> Begun<'a> {
    fn new(breakers: &'a Breakers, changes: &[BreakerChange]) -> Self {
        let place = |change: &BreakerChange| (change.pipeline.clone(), change.target.clone());
        let places = changes.iter().filter(|change| change.is_begun()).map(place).collect();
        Self { breakers, places }
    }
}

impl Drop for Begun<'_> {
    fn drop(&mut self) {
        for (name, target) in &self.places {
            self.breakers.with(name, |pipeline| pipeline.known.release(target));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pipelines_of_which_nothing_is_known_do_not_fill_the_memory() {
        let breakers = Breakers::default();
        let name = |n: usize| format!("p{n}").parse::<PipelineName>().expect("a name");
        breakers.with(&name(0), |pipeline| {
            pipeline.held.entry(Lane::Queue).or_default().jobs.insert("sick.example".to_owned(), 1);
        });
        (1..5_000).for_each(|n| breakers.with(&name(n), |_| {}));
        assert!(breakers.all().len() <= PIPELINES_MAX);
        assert!(breakers.all().contains_key(&name(0)), "what is held is remembered");
    }
}
