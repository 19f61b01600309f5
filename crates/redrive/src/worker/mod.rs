//! A worker: one process's part of the work.
//!
//! Per pipeline, `fetch` leases batches into a local queue and starts jobs, `run` runs one, `settle` writes the results
//! and settles in batches. Beside them, one task each: `heartbeat` extends the leases, `reaper` takes back the jobs of
//! dead workers, `strays` ends what jobs left running, `retention` lets old dead letters go, `watch` notices what other
//! processes changed.

mod context;
mod fetch;
mod heartbeat;
mod pace;
mod reaper;
mod retention;
mod run;
mod settle;
mod strays;
mod watch;

use std::sync::Arc;
use std::time::Duration;

use redrive_core::ids::WorkerId;
use redrive_store::contract::AttachWorker;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use self::context::Context;
use self::fetch::Fetcher;
use crate::engine::Redrive;
use crate::error::Error;
use crate::handler::Isolation;
use crate::pipeline::Pipeline;

/// When a worker is finished.
#[derive(Clone, Debug)]
pub enum Until {
    /// When it is told to stop.
    Stopped,
    /// When its pipelines have no job left that is queued or leased.
    Drained,
    /// The same, but not before the token is cancelled: more jobs are on their way until then.
    DrainedAfter(CancellationToken),
}

impl Until {
    fn may_end(&self) -> bool {
        match self {
            Self::Stopped => false,
            Self::Drained => true,
            Self::DrainedAfter(fed) => fed.is_cancelled(),
        }
    }
}

/// How long running jobs may go on after a worker was told to stop.
const GRACE: Duration = Duration::from_secs(20);

/// One process's part of the work, ready to run.
pub struct Worker {
    context: Arc<Context>,
    pipelines: Vec<Pipeline>,
}

impl Worker {
    pub(crate) fn new(redrive: Redrive, id: WorkerId, pipelines: Vec<Pipeline>) -> Self {
        Self { context: Arc::new(Context::new(redrive, id)), pipelines }
    }

    /// A token that, once cancelled after the worker was told to stop, makes it return running jobs at once.
    pub fn hurry(&self) -> CancellationToken {
        self.context.hurry.clone()
    }

    /// Works until it is finished or `stop` is cancelled. Then it starts nothing more, lets running jobs end for a while
    /// and returns the rest without blame.
    pub async fn run(self, until: Until, stop: CancellationToken) -> Result<(), Error> {
        let Self { context, pipelines } = self;
        let store = &context.redrive.store;
        let params = AttachWorker { worker: context.id, pid: std::process::id(), now: context.now() };
        store.attach_worker(params).await?;
        // What dead workers left is taken back before anything else is leased.
        reaper::reap(&context, &pipelines).await?;
        let mut upkeep = JoinSet::new();
        upkeep.spawn(heartbeat::run(Arc::clone(&context), pipelines.clone()));
        upkeep.spawn(reaper::run(Arc::clone(&context), pipelines.clone()));
        upkeep.spawn(retention::run(Arc::clone(&context), pipelines.clone()));
        upkeep.spawn(watch::run(Arc::clone(&context)));
        let has_children = pipelines.iter().any(|pipeline| pipeline.handler.isolation() == Isolation::OwnProcess);
        if has_children {
            upkeep.spawn(strays::run(Arc::clone(&context)));
        }
        let stopper = Arc::clone(&context);
        upkeep.spawn(async move {
            stop.cancelled().await;
            stopper.stop.cancel();
        });
        let mut work = JoinSet::new();
        for pipeline in pipelines {
            work.spawn(Fetcher::new(Arc::clone(&context), pipeline).run(until.clone()));
        }
        while let Some(ended) = work.join_next().await {
            if let Err(panic) = ended {
                context.fail(Error::Internal(format!("a pipeline's work ended: {panic}")));
            }
        }
        upkeep.shutdown().await;
        if has_children {
            strays::end_all(&context).await;
        }
        let detached = context.redrive.store.detach_worker(context.id).await;
        match context.take_failure() {
            Some(error) => Err(error),
            None => Ok(detached?),
        }
    }
}
