//! The handle that users of the engine hold.

use std::sync::Arc;

use redrive_core::ids::{JobId, PipelineName, WorkerId};
use redrive_core::jobs::{Input, KEY_BYTES_MAX, NewJob};
use redrive_core::ledger::Ledger;
use redrive_core::time::Timestamp;
use redrive_store::contract::{EnqueueJobs, EnqueuedJob};
use redrive_store::{Options, Store};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::alerts::Alerts;
use crate::breakers::Breakers;
use crate::causes::KnownRules;
use crate::chance::{Chance, SystemChance};
use crate::clock::{Clock, SystemClock};
use crate::error::Error;
use crate::events::Events;
use crate::pipeline::Pipeline;
use crate::worker::{Until, Worker};

/// Redrive over one store. Cheap to clone.
#[derive(Clone)]
pub struct Redrive {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) chance: Arc<dyn Chance>,
    /// What happens in this process.
    pub(crate) events: Events,
    pub(crate) rules: Arc<KnownRules>,
    pub(crate) breakers: Arc<Breakers>,
    /// What workers watch, and whom they tell.
    pub(crate) alerts: Alerts,
}

impl Redrive {
    /// Opens the store at an address, `sqlite:PATH`, `postgres://USER@HOST/DATABASE` or `memory:`, and makes it if it is not there.
    pub async fn open(address: &str) -> Result<Self, Error> {
        Ok(Self::over(redrive_store::open(address, Options::create()).await?))
    }

    /// Redrive over a store that is open.
    pub fn over(store: Arc<dyn Store>) -> Self {
        Self {
            store,
            clock: Arc::new(SystemClock),
            chance: Arc::new(SystemChance),
            events: Events::default(),
            rules: Arc::default(),
            breakers: Arc::default(),
            alerts: Alerts::default(),
        }
    }

    /// The same with another clock and source of randomness.
    pub fn with_surroundings(self, clock: Arc<dyn Clock>, chance: Arc<dyn Chance>) -> Self {
        Self { clock, chance, ..self }
    }

    /// The store.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// What happens in this process, for who listens.
    pub const fn events(&self) -> &Events {
        &self.events
    }

    /// What workers watch, and whom they tell: nothing and nobody unless something is put there.
    pub const fn alerts(&self) -> &Alerts {
        &self.alerts
    }

    /// What time it is.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// A job for an input, with a fresh id; its key and target are the input's own.
    pub fn new_job(&self, input: Input) -> NewJob {
        let now = self.now();
        NewJob::from_input(JobId::new(now, self.chance.bits()), input, now)
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
        self.enqueue_jobs(&pipeline.name, pipeline.policy.queued_max, jobs).await
    }

    /// Accepts jobs that are made already.
    pub async fn enqueue_jobs(
        &self,
        pipeline: &PipelineName,
        queued_max: Option<u64>,
        jobs: Vec<NewJob>,
    ) -> Result<Vec<EnqueuedJob>, Error> {
        let mut keys = jobs.iter().filter_map(|job| job.key.as_deref());
        if let Some(long) = keys.find(|key| key.len() > KEY_BYTES_MAX) {
            return Err(Error::KeyTooLong(long.len()));
        }
        let params = EnqueueJobs { pipeline: pipeline.clone(), jobs, queued_max, now: self.now() };
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
