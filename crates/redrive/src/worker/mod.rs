//! A worker: one process's part of the work.
//!
//! Per pipeline, `fetch` leases batches into a local queue and starts jobs, `announce` notes
//! that they begin, `run` runs one, `settle` writes the results
//! and settles in batches. Beside them, one task each: `heartbeat` extends the leases, `reaper` takes back the jobs of
//! dead workers, `replays` sends dead letters through again, `strays` ends what jobs left running, `chores` does what one
//! worker of all does (`leader`), `history` forgets what ended long ago, `alerts` judges and tells, `watch` notices what other processes changed, `clock` that the clock was set back, `uploader`
//! brings payloads that wait in the spool to their vault, `marks` whether other hosts have the same one, `holds` knows which pipelines cannot work for now. `reload` has a
//! worker make way for one with newer pipelines. `elsewhere` runs jobs that a server leased.

mod alerts;
mod announce;
mod chores;
mod clock;
mod context;
pub mod elsewhere;
mod fetch;
mod heartbeat;
mod history;
mod holds;
mod leader;
mod marks;
mod overdue;
pub mod pace;
mod pauses;
mod reaper;
mod recovery;
pub mod reload;
mod replays;
pub(crate) mod run;
mod running;
mod settle;
mod slots;
mod strays;
mod uploader;
mod watch;
mod work_done;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use redrive_core::hand_on::feeders;
use redrive_core::ids::{ReplayId, WorkerId};
use redrive_core::workers::TakesReplays;
use redrive_store::contract::{AttachWorker, Lane, WorkerView};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use self::context::Context;
use self::fetch::Fetcher;
use self::holds::Patience;
use self::reload::Source;
use self::replays::Driver;
use crate::engine::Redrive;
use crate::error::Error;
use crate::events::Happening;
use crate::handler::Isolation;
use crate::pipeline::{Pipeline, acquainted};

pub use self::running::Running;
pub use self::work_done::{JobEnd, WorkDone, WorkDoneSoFar};

/// The name of this machine, by which others know where a worker is.
pub fn host() -> String {
    redrive_store::host().to_owned()
}

/// When a worker is finished.
#[derive(Clone, Debug)]
pub enum Until {
    /// When it is told to stop.
    Stopped,
    /// When its pipelines have no job left that is queued or leased.
    Drained,
    /// The same, but not before the token is cancelled: more jobs are on their way until then.
    DrainedAfter(CancellationToken),
    /// The same of jobs that come as they come: while none does, and there is room for more, nothing is waited for in vain.
    DrainedAfterStream {
        /// Cancelled when no more will come.
        ended: CancellationToken,
        /// Set while there is no room for more.
        is_full: Arc<AtomicBool>,
    },
}

impl Until {
    /// Whether nothing more is on its way.
    pub fn may_end(&self) -> bool {
        match self {
            Self::Stopped => false,
            Self::Drained => true,
            Self::DrainedAfter(fed) | Self::DrainedAfterStream { ended: fed, .. } => fed.is_cancelled(),
        }
    }

    /// Whether jobs may still come, whenever they do.
    pub fn is_open(&self) -> bool {
        match self {
            Self::DrainedAfterStream { ended, is_full } => !ended.is_cancelled() && !is_full.load(Ordering::Relaxed),
            Self::Stopped | Self::Drained | Self::DrainedAfter(_) => false,
        }
    }
}

/// How long running jobs may go on after a worker was told to stop.
const GRACE: Duration = Duration::from_secs(20);

/// How often a pipeline that cannot work is tried by a worker that is to end when nothing is left to do.
const TRIES_MAX: u32 = 3;

/// One process's part of the work, ready to run.
pub struct Worker {
    context: Arc<Context>,
    pipelines: Vec<Pipeline>,
    task: Task,
    max_wait: Option<Duration>,
    /// Set if jobs stay queued however long they wait for a target.
    waits_forever: bool,
    source: Option<Box<dyn Source>>,
}

/// What a worker works on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Task {
    /// The queues of its pipelines.
    Queues,
    /// The same, and all replays of them.
    All,
    /// One replay.
    Replay(ReplayId),
    /// None: the jobs of its pipelines are worked on elsewhere. It does what else a worker does for them.
    Upkeep,
}

impl Task {
    const fn has_queues(self) -> bool {
        matches!(self, Self::Queues | Self::All)
    }
}

/// Returns leases of these pipelines that ran out, or whose workers are gone, for who runs no worker.
pub(crate) async fn take_back(redrive: &Redrive, pipelines: &[Pipeline]) -> Result<(), Error> {
    let id = WorkerId::new(redrive.now(), redrive.chance.bits());
    let context = Context::new(redrive.clone(), id, pipelines);
    reaper::reap(&context, pipelines, &[], reaper::run_out_by(&context, redrive.now())).await?;
    let (workers, now) = (redrive.store.list_workers().await?, redrive.now());
    let silent = workers.iter().filter_map(WorkerView::remote_beat).filter(|beat| beat.is_forgotten(now));
    let silent: Vec<_> = silent.collect();
    if !silent.is_empty() {
        redrive.store.forget_workers(silent).await?;
    }
    Ok(())
}

impl Worker {
    pub(crate) fn new(redrive: Redrive, id: WorkerId, pipelines: Vec<Pipeline>) -> Self {
        let pipelines = acquainted(pipelines);
        let context = Arc::new(Context::new(redrive.waiting(), id, &pipelines));
        Self { context, pipelines, task: Task::Queues, max_wait: None, waits_forever: false, source: None }
    }

    /// The same, but it also drives the replays of its pipelines and begins those that their policies ask for.
    pub fn with_replays(self) -> Self {
        Self { task: Task::All, ..self }
    }

    /// The same, but it works on one replay and nothing else. It is finished when the replay is, or is paused.
    pub fn only_replay(self, id: ReplayId) -> Self {
        Self { task: Task::Replay(id), ..self }
    }

    /// The same, but it runs no jobs: those of its pipelines are worked on elsewhere. It sends letters of replays, takes back leases
    /// that ran out, and does the chores, until it is told to stop.
    pub fn only_upkeep(self) -> Self {
        self.context.run_nothing();
        Self { task: Task::Upkeep, ..self }
    }

    /// The same, but a worker that ends when its pipelines are drained also ends, with [`Error::WaitedInVain`], when
    /// nothing runs, nothing has been settled and nothing is due for so long.
    pub fn max_wait(self, max_wait: Duration) -> Self {
        Self { max_wait: Some(max_wait), ..self }
    }

    /// Has jobs stay queued however long their target stays away.
    pub fn wait_forever(self) -> Self {
        self.context.wait_forever();
        let pipelines = self.pipelines.into_iter().map(Pipeline::waiting_forever).collect();
        Self { max_wait: None, waits_forever: true, pipelines, ..self }
    }

    /// The same, but it takes up pipelines that changed, between jobs: what runs ends as it began.
    pub fn following(self, source: impl Source + 'static) -> Self {
        Self { source: Some(Box::new(source)), ..self }
    }

    fn patience(&self, until: &Until) -> Patience {
        Patience {
            tries_max: (!matches!(until, Until::Stopped)).then_some(TRIES_MAX),
            max_wait: self.max_wait,
            alone: self.pipelines.len() == 1 || matches!(self.task, Task::Replay(_)),
        }
    }

    /// A token that, once cancelled after the worker was told to stop, makes it return running jobs at once.
    pub fn hurry(&self) -> CancellationToken {
        self.context.hurry.clone()
    }

    /// What comes of the jobs that it runs, as far as it has worked when this is read.
    pub fn work_done(&self) -> WorkDoneSoFar {
        self.context.work_done.clone()
    }

    /// What runs in this worker, for who shows it.
    pub fn running(&self) -> Running {
        self.context.running.clone()
    }

    /// Works until it is finished or `stop` is cancelled. Then it starts nothing more, lets running jobs end for a while
    /// and returns the rest without blame. The future is boxed so that it is compiled here, and not again in each crate
    /// that awaits it.
    pub fn run(mut self, until: Until, stop: CancellationToken) -> BoxFuture<'static, Result<(), Error>> {
        Box::pin(async move {
            match self.source.take() {
                Some(source) => reload::run(self, source, until, stop).await,
                None => self.run_as_it_is(until, stop).await,
            }
        })
    }

    async fn run_as_it_is(self, until: Until, stop: CancellationToken) -> Result<(), Error> {
        let patience = self.patience(&until);
        let Self { context, pipelines, task, .. } = self;
        context.take_replays(match task {
            Task::All => TakesReplays::All,
            Task::Replay(replay) => TakesReplays::One { replay },
            Task::Queues | Task::Upkeep => TakesReplays::None,
        });
        let working = context.redrive.reach.work();
        tokio::select! {
            begun = begin(&context, &pipelines) => begun?,
            // It has nothing yet: what it was about to note can stay unknown.
            () = stop.cancelled() => {
                working.leave();
                return Ok(());
            }
        }
        let mut upkeep = JoinSet::new();
        upkeep.spawn(heartbeat::run(Arc::clone(&context), pipelines.clone()));
        upkeep.spawn(reaper::run(Arc::clone(&context), pipelines.clone()));
        upkeep.spawn(chores::run(Arc::clone(&context), pipelines.clone()));
        upkeep.spawn(clock::run(Arc::clone(&context), pipelines.clone()));
        upkeep.spawn(watch::run(Arc::clone(&context)));
        upkeep.spawn(holds::run(Arc::clone(&context)));
        let telling = alerts::Telling::start(&context);
        upkeep.spawn(uploader::run(pipelines.clone()));
        upkeep.spawn(marks::run(Arc::clone(&context), pipelines.clone()));
        upkeep.spawn(overdue::run(Arc::clone(&context), pipelines.clone()));
        let all = pipelines.clone();
        let has_children = pipelines.iter().any(|pipeline| pipeline.handler.isolation() == Isolation::OwnProcess);
        if has_children {
            upkeep.spawn(strays::run(Arc::clone(&context)));
        } else if pipelines.iter().any(|pipeline| pipeline.isolated.is_some()) {
            upkeep.spawn(strays::sweep_files());
        }
        let stopper = Arc::clone(&context);
        upkeep.spawn(async move {
            tokio::select! {
                () = stop.cancelled() => {}
                () = stopper.retired.cancelled() => {
                    stopper.stop.cancel();
                    stop.cancelled().await;
                }
            }
            stopper.ending.cancel();
            stopper.stop.cancel();
        });
        let mut work = JoinSet::new();
        let replayed = (task != Task::Queues).then(CancellationToken::new);
        if let Some(replayed) = replayed.clone() {
            let only = if let Task::Replay(id) = task { Some(id) } else { None };
            let driver = Driver::new(Arc::clone(&context), pipelines.clone(), only, patience);
            let driver = driver.sending_only(task == Task::Upkeep).run(until.clone());
            work.spawn(async move {
                let _over = replayed.drop_guard();
                driver.await;
            });
        }
        let handing_on: Vec<_> =
            all.iter().map(|p| (p.name.clone(), p.receivers.others.keys().cloned().collect::<Vec<_>>())).collect();
        for pipeline in pipelines.into_iter().filter(|_| task.has_queues()) {
            let feeders = feeders(&pipeline.name, &handing_on).into_iter().cloned().collect();
            let fetcher =
                Fetcher::new(Arc::clone(&context), pipeline, Lane::Queue, patience).fed_by(feeders, replayed.clone());
            work.spawn(fetcher.run(until.clone()));
        }
        let abandoned = context.abandoned();
        tokio::pin!(abandoned);
        let mut is_left = false;
        while !work.is_empty() && !is_left {
            let (what, ended) = tokio::select! {
                Some(ended) = work.join_next() => ("a pipeline's work", ended),
                Some(ended) = upkeep.join_next() => ("a worker's upkeep", ended),
                () = &mut abandoned => {
                    is_left = true;
                    context.left.cancel();
                    continue;
                }
                else => break,
            };
            if let Err(panic) = ended {
                context.fail(Error::Internal(format!("{what} ended: {panic}")));
            }
        }
        upkeep.shutdown().await;
        if is_left {
            work.shutdown().await;
            telling.stop();
            working.leave();
            if has_children {
                strays::end_all(&context).await;
            }
            return leave_unsettled(&context);
        }
        drop(working);
        uploader::finish(&all).await;
        history::share(&context, &all).await;
        telling.share(&context).await;
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

/// Ends without the store: says what is done again by others, when the leases of it are over.
fn leave_unsettled(context: &Context) -> Result<(), Error> {
    let jobs = context.leases().len();
    if jobs > 0 {
        context.tell(Happening::LeftUnsettled { jobs });
    }
    context.take_failure().map_or(Ok(()), Err)
}

/// Puts a worker on the list and takes back what dead ones left, before anything else is leased.
async fn begin(context: &Context, pipelines: &[Pipeline]) -> Result<(), Error> {
    marks::leave(context, pipelines).await;
    let defined = |pipeline: &Pipeline| Some((pipeline.name.clone(), pipeline.definition.clone()?));
    let Redrive { at_once: store, reach, clock, .. } = &context.redrive;
    let attach = || {
        let beat = heartbeat::next(context, heartbeat::lease_of(pipelines));
        let definitions = pipelines.iter().filter_map(defined).collect();
        store.attach_worker(AttachWorker { beat, definitions, uptime: clock.uptime() })
    };
    let looked = reach.call(&|| store.trouble(), attach).await?;
    context.note_beat();
    // What is to become old is measured by a clock that was looked at before: a jump shows only against an earlier look.
    chores::heed_jump(&looked);
    reaper::reap_gone(context, pipelines).await
}
