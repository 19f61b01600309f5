//! Leasing for one lane of a pipeline: keeps a local queue filled, starts jobs as slots become free, and knows when there is
//! nothing left.

mod idle;

use std::collections::VecDeque;
use std::future::{Future, pending};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use redrive_core::ids::{LeaseToken, PipelineName};
use redrive_core::jobs::LeasedJob;
use redrive_core::ledger::Ledger;
use redrive_core::pipelines::Pause;
use redrive_core::time::Timestamp;
use redrive_store::Result as StoreResult;
use redrive_store::contract::{Lane, LeaseJobs, LeasedJobs};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::context::Context;
use super::holds::{self, Patience};
use super::pace::Pace;
use super::run::{self, Waiting};
use super::settle::{Ended, Settler};
use super::{Until, announce};
use crate::clock::Clock;
use crate::error::Error;
use crate::handler::Isolation;
use crate::pipeline::Pipeline;

/// Jobs that have ended but wait to be settled, above which nothing more is begun.
const UNSETTLED_MAX: usize = 512;

type Leasing = Pin<Box<dyn Future<Output = StoreResult<LeasedJobs>> + Send>>;

/// What to wait for before asking for more jobs.
#[derive(Clone, Copy, Debug)]
enum Supply {
    /// There may be more at once.
    Ready,
    /// The last lease came back short: nothing before then, if anything, unless something changes.
    Dry(Option<Timestamp>),
}

pub(super) struct Fetcher {
    context: Arc<Context>,
    pipeline: Pipeline,
    lane: Lane,
    local: VecDeque<Waiting>,
    running: JoinSet<Duration>,
    settler: Settler,
    pace: Pace,
    supply: Supply,
    /// Whether something changed since the lease under way was asked for.
    stirred: bool,
    patience: Patience,
    /// The pipelines of this worker from which jobs may come.
    feeders: Vec<PipelineName>,
    /// Cancelled when this worker has no replay left to work on: letters hand on jobs too.
    replayed: Option<CancellationToken>,
    /// When something last moved, here or with any other worker, and the ledger of the last look at it.
    moved_at: Timestamp,
    seen: Option<Ledger>,
    /// Why the last lease brought nothing, if people have the pipeline rest.
    paused: Option<Pause>,
}

impl Fetcher {
    pub(super) fn new(context: Arc<Context>, pipeline: Pipeline, lane: Lane, patience: Patience) -> Self {
        let settler = Settler::start(Arc::clone(&context), pipeline.clone(), patience);
        let moved_at = context.now();
        Self {
            context,
            pipeline,
            lane,
            local: VecDeque::new(),
            running: JoinSet::new(),
            settler,
            pace: Pace::default(),
            supply: Supply::Ready,
            stirred: false,
            patience,
            feeders: Vec::new(),
            replayed: None,
            moved_at,
            seen: None,
            paused: None,
        }
    }

    /// The same, which has nothing left to do only if these pipelines have not, and the replays that this worker drives are over.
    pub(super) fn fed_by(self, feeders: Vec<PipelineName>, replayed: Option<CancellationToken>) -> Self {
        Self { feeders, replayed, ..self }
    }

    pub(super) async fn run(mut self, until: Until) {
        match self.work(&until).await {
            Ok(()) => {}
            // Whatever else there is to do goes on without it.
            Err(error @ Error::WaitedInVain(_)) => self.context.give_up(&self.pipeline.name, error),
            Err(error @ Error::Held { .. }) if !self.patience.alone => self.context.give_up(&self.pipeline.name, error),
            Err(error) => self.context.fail(error),
        }
        self.finish().await;
    }

    async fn work(&mut self, until: &Until) -> Result<(), Error> {
        let mut leasing: Option<Leasing> = None;
        let mut changed = self.context.jobs_changed.subscribe();
        let stop = self.context.stop.clone();
        loop {
            if self.settler.take_troubled() {
                self.set_aside();
            }
            if let Err(given_up) = self.heed_hold() {
                self.give_back(leasing).await?;
                return Err(given_up);
            }
            self.heed_pause();
            self.start_waiting();
            if leasing.is_none() && matches!(self.supply, Supply::Ready) && self.wanted() > 0 {
                self.stirred = false;
                leasing = Some(self.lease());
            }
            if leasing.is_none() && until.may_end() && self.is_drained().await? {
                return Ok(());
            }
            if leasing.is_none() && matches!(self.supply, Supply::Dry(_)) {
                if let Some(waited) = self.waited_in_vain(until).await? {
                    return Err(Error::WaitedInVain(Box::new(waited)));
                }
                if matches!(self.supply, Supply::Ready) {
                    continue;
                }
            }
            let settled = self.settler.settled();
            let next_due = next_due(&*self.context.redrive.clock, self.wakes_at(), self.context.look_anyway_every());
            let replayed = self.replayed.clone().filter(|replayed| !replayed.is_cancelled());
            let fed = async {
                match (until, replayed) {
                    (Until::DrainedAfter(fed) | Until::DrainedAfterStream { ended: fed, .. }, _)
                        if !fed.is_cancelled() =>
                    {
                        fed.cancelled().await;
                    }
                    (_, Some(replayed)) => replayed.cancelled().await,
                    _ => pending().await,
                }
            };
            tokio::select! {
                biased;
                () = stop.cancelled() => return self.give_back(leasing).await,
                Some(ended) = self.running.join_next() => self.pace.note(ended.unwrap_or_default()),
                leased = poll(&mut leasing) => {
                    leasing = None;
                    self.take_in(leased)?;
                }
                () = settled => {
                    if self.settler.is_broken() {
                        return Err(Error::Internal("nothing is settled any more".to_owned()));
                    }
                    if self.settler.take_requeued() {
                        self.stir();
                    }
                }
                // Something may be due, here or in another process.
                _ = changed.changed() => self.stir(),
                () = next_due => self.stir(),
                () = fed => self.stir(),
            }
        }
    }

    /// Notes that there may be something to lease.
    fn stir(&mut self) {
        self.supply = Supply::Ready;
        self.stirred = true;
    }

    /// Returns the jobs of the local queue whose target's breaker has opened since they were leased.
    fn set_aside(&mut self) {
        let breakers = &self.context.redrive.breakers;
        let open = |job: &LeasedJob| {
            let target = job.target.as_deref().filter(|_| job.saved.is_none() && !job.probe);
            target.is_some_and(|target| breakers.is_shut(&job.pipeline, target))
        };
        let (returned, kept) = self.local.drain(..).partition::<Vec<_>, _>(|waiting| open(&waiting.job));
        self.local.extend(kept);
        returned.into_iter().for_each(|waiting| self.settler.send(Ended::unstarted(waiting.job)));
    }

    /// While people have the pipeline rest, returns what is not begun.
    fn heed_pause(&mut self) {
        if self.context.pauses.has(&self.pipeline.name) {
            self.local.drain(..).for_each(|waiting| self.settler.send(Ended::unstarted(waiting.job)));
        }
    }

    /// While the pipeline cannot work, returns what is not begun: another worker may be able to. It is an error if it has
    /// been tried often enough.
    fn heed_hold(&mut self) -> Result<(), Error> {
        let holds = &self.context.holds;
        if let Some(hold) = holds.given_up(&self.pipeline.name, &self.patience) {
            return Err(holds::failure(hold));
        }
        if holds.of(&self.pipeline.name).is_none() {
            return Ok(());
        }
        let begun_soon = self.room().saturating_sub(self.running.len());
        for waiting in self.local.drain(begun_soon.min(self.local.len())..) {
            self.settler.send(Ended::unstarted(waiting.job));
        }
        Ok(())
    }

    /// How many jobs may run at once now.
    fn room(&self) -> usize {
        self.context.holds.room(&self.pipeline.name, self.pipeline.concurrency, self.context.now())
    }

    /// When to have a look without anything having changed.
    fn wakes_at(&self) -> Option<Timestamp> {
        let now = self.context.now();
        if let Some(hold) = self.context.holds.of(&self.pipeline.name).filter(|hold| !hold.is_due(now)) {
            return Some(hold.next_try);
        }
        let Supply::Dry(due) = self.supply else { return None };
        let given_up_at = self.patience.max_wait.map(|max_wait| self.moved_at + max_wait);
        due.into_iter().chain(given_up_at.filter(|at| *at > now)).min()
    }

    /// Whether so much waits to be settled that nothing more should be begun.
    fn is_clogged(&self) -> bool {
        self.settler.outstanding() > self.local.len() + self.running.len() + UNSETTLED_MAX
    }

    /// Announces jobs of the local queue that begin within moments, and starts them while slots are free.
    fn start_waiting(&mut self) {
        if self.pipeline.handler.isolation() == Isolation::Shared {
            let soon = self.pace.soon(self.room());
            announce::announce(&self.context, self.local.iter_mut().take(soon), soon);
        }
        while self.running.len() < self.room()
            && !self.is_clogged()
            && let Some(waiting) = self.local.pop_front()
        {
            if waiting.ended.is_cancelled() {
                self.settler.send(Ended::unstarted(waiting.job));
                continue;
            }
            let (context, pipeline) = (Arc::clone(&self.context), self.pipeline.clone());
            self.running.spawn(run::run(context, pipeline, waiting, self.settler.sender()));
        }
    }

    /// How many jobs to ask for now. Small top-ups are put off until they are worth a transaction.
    fn wanted(&self) -> usize {
        if self.is_clogged() {
            return 0;
        }
        let room = self.room();
        let free = room.saturating_sub(self.running.len());
        if room < self.pipeline.concurrency {
            return free.saturating_sub(self.local.len());
        }
        let target = free + self.pace.ahead(room);
        let missing = target.saturating_sub(self.local.len());
        if self.local.is_empty() || missing * 2 >= target { missing } else { 0 }
    }

    fn lease(&self) -> Leasing {
        let (context, pipeline, lane) = (Arc::clone(&self.context), self.pipeline.clone(), self.lane);
        let limit = u32::try_from(self.wanted()).unwrap_or(u32::MAX);
        Box::pin(async move {
            let params = || {
                let now = context.now();
                LeaseJobs {
                    pipeline: pipeline.name.clone(),
                    lane,
                    worker: context.id,
                    definition: pipeline.definition().cloned(),
                    token: LeaseToken::new(now, context.redrive.chance.bits()),
                    limit,
                    until: now + pipeline.policy.lease,
                    gates: Vec::new(),
                    gates_seen: None,
                    freed: Vec::new(),
                    with_tried: pipeline.policy.proxies.is_choice(),
                    only: None,
                    now,
                }
            };
            let asked_at = context.now();
            let leased = context.redrive.lease_when_possible(params).await?;
            // A short answer says when there is more; a full one that there may be more at once.
            let next_due = if leased.jobs.len() < limit as usize { leased.next_due } else { Some(asked_at) };
            Ok(LeasedJobs { next_due, ..leased })
        })
    }

    fn take_in(&mut self, leased: StoreResult<LeasedJobs>) -> Result<(), Error> {
        let leased = leased?;
        let now = self.context.now();
        self.paused = leased.paused;
        self.supply = match leased.next_due {
            Some(due) if due <= now => Supply::Ready,
            _ if self.stirred => Supply::Ready,
            due => Supply::Dry(due),
        };
        self.settler.expect(leased.jobs.len());
        for job in leased.jobs {
            let ended = self.context.hold(job.lease, now + self.pipeline.policy.lease);
            self.local.push_back(Waiting { job, ended, announced: None });
        }
        Ok(())
    }

    /// Takes in what a lease under way still brings, so that it can be returned.
    async fn give_back(&mut self, leasing: Option<Leasing>) -> Result<(), Error> {
        match leasing {
            Some(leasing) => self.take_in(leasing.await),
            None => Ok(()),
        }
    }

    /// Returns what was not started, lets what runs come to its end, and settles all of it.
    async fn finish(mut self) {
        for waiting in self.local.drain(..) {
            self.settler.send(Ended::unstarted(waiting.job));
        }
        let all = async { while self.running.join_next().await.is_some() {} };
        tokio::select! {
            () = all => {}
            () = self.context.grace() => self.context.hurry.cancel(),
        }
        while self.running.join_next().await.is_some() {}
        self.settler.finish().await;
    }
}

/// Polls a lease under way; waits for ever if there is none.
async fn poll(leasing: &mut Option<Leasing>) -> StoreResult<LeasedJobs> {
    match leasing {
        Some(leasing) => leasing.await,
        None => pending().await,
    }
}

/// Waits until a time, or long enough to have a look anyway.
async fn next_due(clock: &dyn Clock, due: Option<Timestamp>, look_anyway: Duration) {
    let due = async {
        match due {
            Some(due) => clock.sleep_until(due).await,
            None => pending().await,
        }
    };
    // Whatever comes is the same: it is time to ask again.
    let _ = tokio::time::timeout(look_anyway, due).await;
}
