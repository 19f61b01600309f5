//! Settling in batches: results are written first, then everything that has ended meanwhile is settled at once.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use redrive_core::failures::with_sources;
use redrive_core::good::GoodPage;
use redrive_core::hand_on::HandedJob;
use redrive_core::ids::PipelineName;
use redrive_core::jobs::LeasedJob;
use redrive_core::settlements::{Decision, Destination, Ending, Outcome, Settlement, decide};
use redrive_core::traffic::Facts;
use redrive_store::contract::{SettleJobs, Settled};
use serde_json::Value;
use tokio::sync::Notify;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio_util::task::AbortOnDropHandle;

use super::context::Context;
use super::heartbeat;
use super::holds::{Patience, Trouble};
use crate::error::Error;
use crate::events::Happening;
use crate::pipeline::Pipeline;
use crate::sink::JobResult;
use crate::vault::Kept;

/// At most so many jobs are settled at once.
const BATCH_MAX: usize = 256;

/// How often a payload that was collected before its settlement came is kept again.
const KEPT_AGAIN_MAX: u32 = 3;

/// How long results may take to be written when everything is to be returned at once.
pub(super) const HURRIED: Duration = Duration::from_secs(1);

/// A job that has come to an end, one way or another.
pub(super) struct Ended {
    pub(super) job: LeasedJob,
    pub(super) outcome: Outcome,
    pub(super) result: Option<Value>,
    /// Lines that it printed before its result.
    pub(super) log: Option<String>,
    /// The result as the store keeps it.
    pub(super) kept_result: Option<Arc<str>>,
    pub(super) handed_on: Vec<HandedJob>,
    pub(super) payload: Option<Kept>,
    pub(super) facts: Facts,
    pub(super) duration: Option<Duration>,
    /// The page that worked, if it is to be kept, and the shape of its address.
    pub(super) good: Option<Box<GoodPage>>,
    pub(super) shape: Option<String>,
}

impl Ended {
    /// A job that was leased but not started.
    pub(super) fn unstarted(job: LeasedJob) -> Self {
        let facts = Facts::default();
        Self {
            job,
            outcome: Outcome::Returned,
            result: None,
            log: None,
            kept_result: None,
            handed_on: Vec::new(),
            payload: None,
            facts,
            duration: None,
            good: None,
            shape: None,
        }
    }
}

/// A job whose end is decided.
struct Decided {
    job: LeasedJob,
    decision: Decision,
    payload: Option<Kept>,
    handed_on: Vec<HandedJob>,
    good: Option<Box<GoodPage>>,
    shape: Option<String>,
    kept_result: Option<Arc<str>>,
}

/// Whether results could not be written because the disk is full.
fn is_full(error: &Error) -> bool {
    let full = [io::ErrorKind::StorageFull, io::ErrorKind::QuotaExceeded];
    matches!(error, Error::Sink { source, .. } if full.contains(&source.kind()))
}

/// A handle to the task that settles the jobs of one pipeline.
pub(super) struct Settler {
    ended: UnboundedSender<Ended>,
    task: AbortOnDropHandle<()>,
    progress: Arc<Progress>,
}

/// How far it is.
#[derive(Default)]
struct Progress {
    outstanding: AtomicUsize,
    requeued: AtomicBool,
    troubled: AtomicBool,
    moved: AtomicBool,
    settled: Notify,
}

impl Settler {
    pub(super) fn start(context: Arc<Context>, pipeline: Pipeline, patience: Patience) -> Self {
        let (ended, waiting) = unbounded_channel();
        let progress = Arc::<Progress>::default();
        let work = Settling { context, pipeline, patience, progress: Arc::clone(&progress) };
        Self { ended, task: AbortOnDropHandle::new(tokio::spawn(work.run(waiting))), progress }
    }

    /// Notes that so many jobs were leased, which it will have to settle.
    pub(super) fn expect(&self, jobs: usize) {
        self.progress.outstanding.fetch_add(jobs, Ordering::Relaxed);
    }

    /// Jobs that were leased and are not settled yet.
    pub(super) fn outstanding(&self) -> usize {
        self.progress.outstanding.load(Ordering::Relaxed)
    }

    /// Whether jobs went back to the queue since it was last asked.
    pub(super) fn take_requeued(&self) -> bool {
        self.progress.requeued.swap(false, Ordering::Relaxed)
    }

    /// Whether a target gave trouble since it was last asked.
    pub(super) fn take_troubled(&self) -> bool {
        self.progress.troubled.swap(false, Ordering::Relaxed)
    }

    /// Whether anything was settled since it was last asked, other than by failing for its target's sake.
    pub(super) fn take_moved(&self) -> bool {
        self.progress.moved.swap(false, Ordering::Relaxed)
    }

    /// Returns when more jobs were settled.
    pub(super) fn settled(&self) -> impl Future<Output = ()> + use<> {
        let progress = Arc::clone(&self.progress);
        async move { progress.settled.notified().await }
    }

    pub(super) fn sender(&self) -> UnboundedSender<Ended> {
        self.ended.clone()
    }

    pub(super) fn send(&self, ended: Ended) {
        // The task lives as long as this sender, unless it panicked, which stops the worker.
        let _ = self.ended.send(ended);
    }

    /// Whether it can settle no more.
    pub(super) fn is_broken(&self) -> bool {
        self.ended.is_closed()
    }

    /// Settles what is still waiting, and ends.
    pub(super) async fn finish(self) {
        drop(self.ended);
        // A panic has been noted where it happened.
        let _ = self.task.await;
    }
}

struct Settling {
    context: Arc<Context>,
    pipeline: Pipeline,
    patience: Patience,
    progress: Arc<Progress>,
}

impl Settling {
    async fn run(self, mut waiting: UnboundedReceiver<Ended>) {
        let _watched = self.context.watched("settling");
        let mut batch = Vec::new();
        while waiting.recv_many(&mut batch, BATCH_MAX).await > 0 {
            let jobs = batch.len();
            if self.settle(std::mem::take(&mut batch)).await {
                self.progress.requeued.store(true, Ordering::Relaxed);
            }
            self.progress.outstanding.fetch_sub(jobs, Ordering::Relaxed);
            self.progress.settled.notify_one();
        }
    }

    /// Settles a batch; says whether anything went back to the queue.
    async fn settle(&self, mut batch: Vec<Ended>) -> bool {
        // What was taken from this worker is no longer its to return.
        batch.retain(|ended| ended.outcome != Outcome::Returned || self.context.holds(&ended.job.lease));
        if batch.is_empty() {
            return false;
        }
        self.write_results(&mut batch).await;
        let leases: Vec<_> = batch.iter().map(|ended| ended.job.lease).collect();
        let decided: Vec<_> = batch.into_iter().map(|ended| self.decide(ended)).collect();
        let settlements = self.recognise(decided).await;
        let troubled = |s: &Settlement| s.decision.signal.is_trouble();
        let any_troubled = settlements.iter().any(|(s, _)| troubled(s));
        let requeued = settlements.iter().any(|(s, _)| matches!(s.decision.destination, Destination::Queue { .. }));
        let attempted = |s: &Settlement| s.decision.failure.is_some() || s.decision.destination == Destination::Done;
        let moved = settlements.iter().any(|(s, _)| attempted(s) && !troubled(s));
        self.store(settlements).await;
        if moved {
            self.progress.moved.store(true, Ordering::Relaxed);
        }
        if any_troubled {
            self.progress.troubled.store(true, Ordering::Relaxed);
        }
        leases.iter().for_each(|lease| self.context.release(lease));
        requeued
    }

    /// Writes the results of what is done. If that cannot be, the jobs are not done: they go back to the queue. What is
    /// known to be another worker's by now has its result from there.
    async fn write_results(&self, batch: &mut [Ended]) {
        self.look_after_late_leases(batch).await;
        let results: Vec<JobResult> = batch
            .iter_mut()
            .filter_map(|ended| {
                let result = ended.result.take().filter(|_| self.context.holds(&ended.job.lease))?;
                let result = JobResult {
                    id: ended.job.lease.job,
                    pipeline: ended.job.pipeline.clone(),
                    round: ended.job.round.clone(),
                    key: ended.job.key.clone(),
                    input: std::mem::take(&mut ended.job.input),
                    result,
                    log: ended.log.take(),
                };
                ended.kept_result = self.pipeline.kept_line(&result);
                Some(result)
            })
            .collect();
        if results.is_empty() {
            return;
        }
        if !self.write_patiently(&results).await {
            for ended in batch.iter_mut().filter(|ended| ended.outcome == Outcome::Done) {
                ended.outcome = Outcome::Returned;
            }
        }
    }

    /// Writes results, again and again while that fails: the pipeline is held meanwhile. Says whether they are written; if
    /// not, the worker is to stop or has given up. A slow reader is waited for, but not by a worker that was told to stop
    /// long ago.
    async fn write_patiently(&self, results: &[JobResult]) -> bool {
        let Context { holds, stop, redrive, .. } = &*self.context;
        loop {
            let written = tokio::select! {
                biased;
                written = self.pipeline.sink.write(results) => written,
                () = self.out_of_time() => {
                    tracing::warn!(pipeline = %self.pipeline.name, "nobody takes the results: their tasks are queued again");
                    return false;
                }
            };
            let error = match written {
                Ok(()) => {
                    self.context.works(&self.pipeline.name, Trouble::Sink, self.context.now());
                    return true;
                }
                Err(closed @ Error::SinkClosed(_)) => {
                    self.context.fail(closed);
                    return false;
                }
                Err(error) => error,
            };
            let trouble = if is_full(&error) { Trouble::Room } else { Trouble::Sink };
            let hold = self.context.hold_pipeline(&self.pipeline.name, trouble, with_sources(&error));
            if holds.given_up(&self.pipeline.name, &self.patience).is_some() {
                return false;
            }
            tokio::select! {
                () = stop.cancelled() => return false,
                () = redrive.clock.sleep_until(hold.next_try) => {}
            }
        }
    }

    /// Returns when a write that does not come back is to be left: some time after the worker was told to stop, or to hurry.
    async fn out_of_time(&self) {
        let Context { stop, hurry, .. } = &*self.context;
        let stopped = async {
            stop.cancelled().await;
            self.context.grace().await;
        };
        let hurried = async {
            hurry.cancelled().await;
            tokio::time::sleep(HURRIED).await;
        };
        tokio::select! {
            () = stopped => hurry.cancel(),
            () = hurried => {}
        }
    }

    /// Asks whose the jobs are whose leases have run out by this worker's own account: it may have been suspended, or the store away. While
    /// it is, nobody can tell.
    async fn look_after_late_leases(&self, batch: &[Ended]) {
        if batch.iter().any(|ended| ended.result.is_some()) {
            self.context.answered().await;
        }
        let now = self.context.now();
        let late = |ended: &Ended| ended.result.is_some() && self.context.is_late(&ended.job.lease, now);
        if batch.iter().any(late)
            && let Err(error) = heartbeat::beat(&self.context, self.pipeline.policy.lease).await
        {
            tracing::warn!(%error, "the heartbeat was not answered");
        }
    }

    fn decide(&self, ended: Ended) -> Decided {
        let Ended { job, outcome, kept_result, handed_on, payload, facts, duration, good, shape, .. } = ended;
        let ending = Ending { duration, ..self.context.ending() };
        let mut decision = decide(&self.pipeline.policy, &job, outcome, ending);
        decision.keep(payload.as_ref().map(|kept| kept.payload.clone()));
        decision.facts = facts;
        Decided { job, decision, payload, handed_on, good, shape, kept_result }
    }

    /// Adds what letters are recognised by. Only a burial asks for the rules of causes.
    async fn recognise(&self, decided: Vec<Decided>) -> Vec<(Settlement, Option<Kept>)> {
        let rules = match decided.iter().any(|decided| decided.decision.buries()) {
            true => self.context.redrive.known_rules().await,
            false => Arc::default(),
        };
        let settle = |Decided { job, decision, payload, handed_on, good, shape, kept_result }| {
            let settlement = Settlement::new(&job, decision, &rules).tried_with(self.pipeline.definition());
            (settlement.handing_on(handed_on).about_page(good, shape).with_result(kept_result), payload)
        };
        decided.into_iter().map(settle).collect()
    }

    /// Hands the settlements to the store. Those whose payload was collected meanwhile are refused, and come again when it
    /// is kept again, or known to be lost.
    async fn store(&self, mut settlements: Vec<(Settlement, Option<Kept>)>) {
        for turn in 0.. {
            let Some(answers) = self.try_store(settlements.iter().map(|(s, _)| s.clone()).collect()).await else {
                return;
            };
            let answered = settlements.iter().zip(&answers);
            let applied =
                answered.filter(|(_, answer)| **answer == Settled::Applied).map(|((settlement, _), _)| settlement);
            self.context.work_done.add(applied);
            for ((settlement, _), answer) in settlements.iter().zip(&answers) {
                tell(&self.context, &self.pipeline.name, settlement, *answer);
            }
            let refused = settlements.into_iter().zip(answers).filter(|(_, answer)| *answer == Settled::PayloadGone);
            settlements = refused.map(|(refused, _)| refused).collect();
            if settlements.is_empty() {
                return;
            }
            for (settlement, kept) in &mut settlements {
                if let Err(why) = self.keep_again(settlement, kept.as_ref(), turn).await {
                    settlement.decision.lose_payload(&why);
                    self.context.tell(Happening::PayloadLost { job: settlement.lease.job, why });
                }
            }
        }
    }

    /// Keeps a payload again that was collected before its settlement came; says why that cannot be.
    async fn keep_again(&self, settlement: &Settlement, kept: Option<&Kept>, turn: u32) -> Result<(), String> {
        let collected = "it was collected before the attempt was settled";
        let (Some(vault), Some(kept)) = (&self.pipeline.vault, kept) else { return Err(collected.to_owned()) };
        if turn >= KEPT_AGAIN_MAX {
            return Err(format!("{collected}, {turn} times"));
        }
        match vault.save_again(kept, settlement.lease.job).await {
            Ok(true) => Ok(()),
            Ok(false) => Err(format!("{collected}, and its bytes were not at hand any more")),
            Err(error) => Err(format!("{collected}, and could not be kept again: {}", with_sources(&error))),
        }
    }

    /// Settles once. While the store does not answer the settlements wait; if it fails, the leases stay behind and the jobs are taken
    /// back by whoever comes next.
    async fn try_store(&self, settlements: Vec<Settlement>) -> Option<Vec<Settled>> {
        let params = SettleJobs {
            settlements,
            worker: self.context.id,
            breakers: Vec::new(),
            keep_late: true,
            now: self.context.now(),
        };
        let (redrive, policy) = (&self.context.redrive, &self.pipeline.policy.breaker);
        let answered = redrive.settle(policy, params).await;
        answered.map_err(|error| self.context.fail(error.into())).ok()
    }
}

/// Tells what became of a settlement.
fn tell(context: &Context, pipeline: &PipelineName, settlement: &Settlement, answer: Settled) {
    match answer {
        Settled::Applied => context.tell_often(|| Happening::settled(pipeline, settlement)),
        Settled::Stale => {
            context.tell(Happening::SettledLate { pipeline: pipeline.clone(), job: settlement.lease.job });
        }
        Settled::PayloadGone => {}
    }
}
