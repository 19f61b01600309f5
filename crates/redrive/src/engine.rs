//! The handle that users of the engine hold.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use redrive_core::ids::{JobId, PipelineName, WorkerId};
use redrive_core::jobs::{Input, NewJob, check_key};
use redrive_core::ledger::Ledger;
use redrive_core::outages::Waiter;
use redrive_core::policy::Bounds;
use redrive_core::time::Timestamp;
use redrive_store::contract::{EnqueueJobs, EnqueuedJob};
use redrive_store::{Location, Options, Store};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::alerts::Alerts;
use crate::breakers::Breakers;
use crate::causes::KnownRules;
use crate::chance::{Chance, SystemChance};
use crate::clock::{Clock, ServerClock, SystemClock};
use crate::config::Setting;
use crate::error::Error;
use crate::events::Events;
use crate::good::GoodPages;
use crate::pipeline::Pipeline;
use crate::reach::{Away, Reach, Working};
use crate::worker::{Until, Worker};

/// What a store is opened for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// To ask or change something: if it does not answer, somebody wants to know soon.
    Command,
    /// To work: nobody would start it again.
    Work,
}

/// Redrive over one store. Cheap to clone.
#[derive(Clone)]
pub struct Redrive {
    /// The store, of which every call waits for it to answer for as long as is worth it.
    pub(crate) store: Arc<dyn Store>,
    /// The store as it is, for calls that are made anew for each try.
    pub(crate) at_once: Arc<dyn Store>,
    pub(crate) reach: Arc<Reach>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) chance: Arc<dyn Chance>,
    /// What happens in this process.
    pub(crate) events: Events,
    pub(crate) rules: Arc<KnownRules>,
    pub(crate) breakers: Arc<Breakers>,
    /// Pages that worked, as far as they are kept here.
    pub(crate) good: Arc<GoodPages>,
    /// What workers watch, and whom they tell.
    pub(crate) alerts: Alerts,
    /// Address of the vault without credentials, for callers that may see where payloads are.
    pub(crate) vault_address: Option<Arc<str>>,
    /// The configuration, if there is one: operations find pipelines there that the store does not know yet.
    setting: Arc<RwLock<Option<Arc<Setting>>>>,
}

impl Redrive {
    /// Opens the store at an address, such as `sqlite:PATH`, `memory:` or `postgres://USER@HOST/DATABASE`, and makes it if it is not there.
    pub async fn open(address: &str) -> Result<Self, Error> {
        Self::open_for(&address.parse()?, Options::create(), Purpose::Command).await
    }

    /// Opens a store. One that does not answer is waited for, which is told: for a while, or, to work, for as long as it takes.
    pub async fn open_for(location: &Location, options: Options, purpose: Purpose) -> Result<Self, Error> {
        let events = Events::default();
        let reach = Arc::new(Reach::new(events.clone()));
        let waiter = if purpose == Purpose::Work { Waiter::Starting } else { Waiter::Command };
        let store = reach.open(location, options, waiter).await?;
        let system: Arc<dyn Clock> = Arc::new(SystemClock);
        let look = || ServerClock::of(&store, Arc::clone(&system));
        let clock = reach.call_for(Some(waiter), &|| store.trouble(), look).await?;
        let redrive = Self::over_with(store, events, reach);
        Ok(match clock {
            Some(clock) => Self { clock, ..redrive },
            None => redrive,
        })
    }

    /// Redrive over a store that is open.
    pub fn over(store: Arc<dyn Store>) -> Self {
        let events = Events::default();
        let reach = Arc::new(Reach::new(events.clone()));
        Self::over_with(store, events, reach)
    }

    fn over_with(store: Arc<dyn Store>, events: Events, reach: Arc<Reach>) -> Self {
        Self {
            store: reach.around(&store, None),
            at_once: store,
            reach,
            clock: Arc::new(SystemClock),
            chance: Arc::new(SystemChance),
            events,
            rules: Arc::default(),
            breakers: Arc::default(),
            good: Arc::default(),
            alerts: Alerts::default(),
            vault_address: None,
            setting: Arc::default(),
        }
    }

    /// The same with another clock and source of randomness.
    pub fn with_surroundings(self, clock: Arc<dyn Clock>, chance: Arc<dyn Chance>) -> Self {
        Self { clock, chance, ..self }
    }

    /// Says where payloads are, in a vault at an address without credentials.
    pub fn with_vault_at(self, address: Option<&str>) -> Self {
        Self { vault_address: address.map(Into::into), ..self }
    }

    /// The store.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// The same for who answers others while workers run in this process: calls give up as those of a command do.
    pub fn answering(&self) -> Self {
        Self { store: self.reach.around(&self.at_once, Some(Waiter::Command)), ..self.clone() }
    }

    /// The same for a worker.
    pub(crate) fn waiting(self) -> Self {
        Self { store: self.reach.around(&self.at_once, None), ..self }
    }

    /// What is waited for, if the store has not answered for some time.
    pub fn away(&self) -> Option<Away> {
        self.reach.away()
    }

    /// Has every call wait for as long as it takes while that is kept, as a worker does.
    pub fn keep_waiting(&self) -> Working {
        self.reach.work()
    }

    /// What happens in this process, for who listens.
    pub const fn events(&self) -> &Events {
        &self.events
    }

    /// What workers watch, and whom they tell: nothing and nobody unless something is put there.
    pub const fn alerts(&self) -> &Alerts {
        &self.alerts
    }

    /// Takes up a configuration, or another one when its file changed.
    pub fn configure(&self, setting: Arc<Setting>) {
        *self.setting.write().unwrap_or_else(PoisonError::into_inner) = Some(setting);
    }

    /// Returns the configuration as it is now.
    pub(crate) fn setting(&self) -> Option<Arc<Setting>> {
        self.setting.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What time it is.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// How long to wait at most before it is looked for what hints should have told of, since one may get lost. A store that many share
    /// is spared.
    pub fn look_anyway_every(&self) -> Duration {
        Duration::from_secs(if self.store.capabilities().instant_presence { 2 } else { 5 })
    }

    /// A job for an input, with a fresh id; its key and target are the input's own.
    pub fn new_job(&self, input: Input) -> NewJob {
        let (at, bits) = self.new_id();
        NewJob::from_input(JobId::new(at, bits), input, self.now())
    }

    /// Accepts jobs, each from a JSON object. Answered when they are on disk.
    pub async fn enqueue(
        &self,
        pipeline: &Pipeline,
        inputs: impl IntoIterator<Item = Value>,
    ) -> Result<Vec<EnqueuedJob>, Error> {
        let job = |input| match input {
            Value::Object(input) => {
                let job = self.new_job(input);
                Ok(NewJob { target: pipeline.receivers.own_target.clone().or(job.target), ..job })
            }
            other => Err(Error::InputNotAnObject(other.to_string())),
        };
        let jobs = inputs.into_iter().map(job).collect::<Result<_, _>>()?;
        self.enqueue_jobs(&pipeline.name, pipeline.policy.bounds(), jobs).await
    }

    /// Accepts jobs that are made already.
    pub async fn enqueue_jobs(
        &self,
        pipeline: &PipelineName,
        bounds: Bounds,
        jobs: Vec<NewJob>,
    ) -> Result<Vec<EnqueuedJob>, Error> {
        check_keys(&jobs)?;
        let params = EnqueueJobs { pipeline: pipeline.clone(), jobs: jobs.into(), bounds, now: self.now() };
        Ok(self.store.enqueue(params).await?)
    }

    /// Works until the pipeline has no job left that is queued or leased, and says how they ended.
    pub async fn drain(&self, pipeline: Pipeline) -> Result<Ledger, Error> {
        let name = pipeline.name.clone();
        self.worker(vec![pipeline]).run(Until::Drained, CancellationToken::new()).await?;
        self.ledger(&name).await
    }

    /// Works on pipelines until `stop` is cancelled; then finishes what runs and returns the rest.
    pub async fn work(&self, pipelines: Vec<Pipeline>, stop: CancellationToken) -> Result<(), Error> {
        self.worker(pipelines).run(Until::Stopped, stop).await
    }

    /// A worker for pipelines, to be run.
    pub fn worker(&self, pipelines: Vec<Pipeline>) -> Worker {
        let id = WorkerId::new(self.now(), self.chance.bits());
        Worker::new(self.clone(), id, pipelines)
    }

    /// The ledger of a pipeline.
    pub async fn ledger(&self, pipeline: &PipelineName) -> Result<Ledger, Error> {
        Ok(self.store.ledgers().await?.get(pipeline).copied().unwrap_or_default())
    }
}

/// Refuses jobs whose keys are too long.
pub(crate) fn check_keys(jobs: &[NewJob]) -> Result<(), Error> {
    Ok(jobs.iter().filter_map(|job| job.key.as_deref()).try_for_each(check_key)?)
}
