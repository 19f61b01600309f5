//! Where tasks are brought: into the store of this process, or to a server that has one.

use async_trait::async_trait;
use redrive_core::ids::PipelineName;
use redrive_core::jobs::{Input, NewJob};
use redrive_core::policy::Bounds;
use redrive_core::time::Timestamp;
use redrive_store::contract::{Changes, EnqueuedJob, FindTasks, KnownTask, Topic};

use crate::engine::Redrive;
use crate::error::Error;

/// Takes tasks in.
#[async_trait]
pub trait Intake: Send + Sync {
    /// What time it is.
    fn now(&self) -> Timestamp;

    /// A job for an input, with a fresh id.
    fn new_job(&self, input: Input) -> NewJob;

    /// Accepts jobs; answered when they are on disk.
    async fn enqueue(
        &self,
        pipeline: &PipelineName,
        bounds: Bounds,
        jobs: Vec<NewJob>,
    ) -> Result<Vec<EnqueuedJob>, Error>;

    /// The jobs that have keys, in the order asked.
    async fn known_tasks(&self, params: FindTasks) -> Result<Vec<Option<KnownTask>>, Error>;

    /// The hashes of files whose tasks are known by the file and the line, from before they were known by their content.
    async fn task_files(&self, pipeline: &PipelineName) -> Result<Vec<String>, Error>;

    /// Hears from now on that jobs move.
    fn moves(&self) -> Box<dyn Moves>;
}

/// Hears that jobs move.
#[async_trait]
pub trait Moves: Send {
    /// Returns when jobs moved, or may have.
    async fn next(&mut self) -> Result<(), Error>;
}

#[async_trait]
impl Moves for Changes {
    async fn next(&mut self) -> Result<(), Error> {
        while !Changes::next(self).await?.is_about(Topic::Jobs) {}
        Ok(())
    }
}

#[async_trait]
impl Intake for Redrive {
    fn now(&self) -> Timestamp {
        Self::now(self)
    }

    fn new_job(&self, input: Input) -> NewJob {
        Self::new_job(self, input)
    }

    async fn enqueue(
        &self,
        pipeline: &PipelineName,
        bounds: Bounds,
        jobs: Vec<NewJob>,
    ) -> Result<Vec<EnqueuedJob>, Error> {
        self.enqueue_jobs(pipeline, bounds, jobs).await
    }

    async fn known_tasks(&self, params: FindTasks) -> Result<Vec<Option<KnownTask>>, Error> {
        Ok(self.store.known_tasks(params).await?)
    }

    async fn task_files(&self, pipeline: &PipelineName) -> Result<Vec<String>, Error> {
        Ok(self.store.task_files(pipeline.clone()).await?)
    }

    fn moves(&self) -> Box<dyn Moves> {
        Box::new(self.store.changes())
    }
}
