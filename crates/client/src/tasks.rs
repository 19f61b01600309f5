//! Tasks that are brought to a server: in batches, each under a key, so that one whose answer was lost is not taken in twice.

use std::sync::Arc;

use async_trait::async_trait;
use redrive::Error;
use redrive::chance::{Chance, SystemChance};
use redrive::clock::{Clock, SystemClock};
use redrive::contract::{EnqueuedJob, FindTasks, KnownTask};
use redrive::tasks::{Intake, Moves, Naming, Recognised, Tasks, recognise};
use redrive_core::actors::Actor;
use redrive_core::ids::{JobId, PipelineName, RoundName};
use redrive_core::jobs::{Input, NewJob, Origin};
use redrive_core::policy::Bounds;
use redrive_core::rounds::next_name;
use redrive_core::state::JobState;
use redrive_core::time::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::desk::Desk;
use crate::server::Server;
use crate::status::Hints;

#[derive(Deserialize)]
struct Jobs<T> {
    jobs: Vec<T>,
}

/// What became of a job.
#[derive(Deserialize)]
struct Enqueued {
    id: JobId,
    #[serde(default)]
    state: Option<JobState>,
    #[serde(default)]
    ended_at: Option<Timestamp>,
}

/// A job that has a key.
#[derive(Deserialize)]
struct Known {
    id: JobId,
    state: JobState,
    #[serde(default)]
    ended_at: Option<Timestamp>,
}

#[derive(Deserialize)]
struct Begun {
    round: RoundName,
}

impl Desk {
    /// Where tasks are brought.
    pub fn intake(&self) -> Arc<dyn Intake> {
        match self {
            Self::Here(redrive) => Arc::new(redrive.clone()),
            Self::There(server) => Arc::new(server.clone()),
        }
    }

    /// See [`redrive::Redrive::recognise_tasks`].
    pub async fn recognise_tasks(
        &self,
        pipeline: &PipelineName,
        tasks: &Tasks,
        naming: &Naming,
    ) -> Result<Recognised, Error> {
        recognise(&*self.intake(), pipeline, tasks, naming).await
    }

    /// See [`redrive::Redrive::next_round`].
    pub async fn next_round(&self, pipeline: &PipelineName) -> Result<RoundName, Error> {
        let taken = self.rounds(Some(pipeline), u32::MAX).await?;
        Ok(next_name(self.now(), |name| taken.iter().any(|round| round.round == *name)))
    }

    /// See [`redrive::Redrive::begin_round`]. A server knows by itself who it is by.
    pub async fn begin_round(&self, pipeline: &PipelineName, by: &Actor) -> Result<RoundName, Error> {
        match self {
            Self::Here(redrive) => redrive.begin_round(pipeline, by).await,
            Self::There(server) => {
                let ask = server.post(&["rounds"]).body(&json!({ "pipeline": pipeline }))?;
                Ok(ask.read::<Begun>().await?.round)
            }
        }
    }
}

#[async_trait]
impl Intake for Server {
    fn now(&self) -> Timestamp {
        SystemClock.now()
    }

    fn new_job(&self, input: Input) -> NewJob {
        let now = SystemClock.now();
        NewJob::from_input(JobId::new(now, SystemChance.bits()), input, now)
    }

    /// The server applies its own limits.
    async fn enqueue(
        &self,
        pipeline: &PipelineName,
        _bounds: Bounds,
        jobs: Vec<NewJob>,
    ) -> Result<Vec<EnqueuedJob>, Error> {
        let round = jobs.first().and_then(|job| job.round.clone());
        let job = |job: &NewJob| {
            let trace = job.origin.as_ref().and_then(Origin::traceparent);
            json!({ "input": job.input, "key": job.key, "target": job.target, "traceparent": trace })
        };
        let told_of: Vec<Value> = jobs.iter().map(job).collect();
        let ask = self.post(&["jobs"]).body(&json!({ "pipeline": pipeline, "round": round, "jobs": told_of }))?;
        drop(told_of);
        let told = |job: Enqueued| match job.state {
            Some(state) => EnqueuedJob::Known { id: job.id, state, ended_at: job.ended_at },
            None => EnqueuedJob::Accepted(job.id),
        };
        match ask.read::<Jobs<Enqueued>>().await {
            // Fewer at once may be taken; what was taken already is known by its key.
            Err(Error::Server { code, .. }) if code == "too_large" && jobs.len() > 1 => {
                let (mut first, mut all) = (jobs, Vec::new());
                let second = first.split_off(first.len() / 2);
                for half in [first, second] {
                    all.extend(self.enqueue(pipeline, Bounds::default(), half).await?);
                }
                Ok(all)
            }
            answer => Ok(answer?.jobs.into_iter().map(told).collect()),
        }
    }

    async fn known_tasks(&self, params: FindTasks) -> Result<Vec<Option<KnownTask>>, Error> {
        let FindTasks { pipeline, round, keys } = params;
        let asked = json!({ "pipeline": pipeline, "round": round, "keys": keys });
        let found = self.post(&["jobs", "known"]).body(&asked)?.read::<Jobs<Option<Known>>>().await?.jobs;
        let known = |Known { id, state, ended_at }| KnownTask { id, state, ended_at };
        Ok(found.into_iter().map(|found| found.map(known)).collect())
    }

    /// Files of before are looked for where the store is.
    async fn task_files(&self, _pipeline: &PipelineName) -> Result<Vec<String>, Error> {
        Ok(Vec::new())
    }

    fn moves(&self) -> Box<dyn Moves> {
        Box::new(Hints::There(self.clone(), None))
    }
}

#[async_trait]
impl Moves for Hints {
    async fn next(&mut self) -> Result<(), Error> {
        Hints::next(self).await
    }
}
