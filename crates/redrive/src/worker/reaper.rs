//! The reaper: takes back the jobs of workers that died or fell silent, and ends what they left running.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use redrive_core::clock::set_back;
use redrive_core::crashes::{LostLease, judge};
use redrive_core::ids::WorkerId;
use redrive_core::settlements::Settlement;
use redrive_core::time::Timestamp;
use redrive_core::workers::{BEAT_EVERY, FORGOTTEN_AFTER, LastBeat, Silences};
use redrive_store::contract::{FindLostLeases, SettleJobs, Settled, WorkerView};

use super::context::Context;
use crate::error::Error;
use crate::events::Happening;
use crate::handler::exec::orphans;
use crate::pipeline::Pipeline;

/// At most so many leases are taken back at once.
const BATCH: u32 = 500;

/// How long nobody is taken for silent after the clock went ahead, so that who lives can extend its leases.
const GRACE: Duration = Duration::from_secs(10);

/// A time at which no lease has run out: only workers that are known to be gone have lost theirs.
const BEFORE_ALL: Timestamp = Timestamp::from_millis(i64::MIN);

pub(super) async fn run(context: Arc<Context>, pipelines: Vec<Pipeline>) {
    let lasts = pipelines.iter().map(|pipeline| pipeline.policy.lease).max().unwrap_or_default();
    let mut last = context.now();
    let mut believed_from = last + GRACE;
    let mut watched = Watched::default();
    loop {
        context.redrive.clock.sleep(context.look_every()).await;
        let now = context.now();
        let passed = now.since(last);
        // It looks every few seconds: the clock went ahead, or the machine slept, and all leases look as if they had run out.
        if passed > lasts.max(GRACE) {
            believed_from = now + GRACE;
        }
        let back = set_back(believed_from, now + GRACE).is_some();
        last = now;
        let run_out_by = if now >= believed_from || back { run_out_by(&context, now) } else { BEFORE_ALL };
        if let Err(error) = watched.look(&context, &pipelines, passed, run_out_by).await {
            tracing::warn!(%error, "lost leases could not be taken back");
        }
    }
}

/// The time by which leases may have run out: none has while the store does not answer, nor before who lives had the time to extend its
/// own, and by none of the clocks that its holder may go by.
pub(super) fn run_out_by(context: &Context, now: Timestamp) -> Timestamp {
    if context.redrive.reach.is_forgiving() { BEFORE_ALL } else { now - context.redrive.clock.grace() }
}

/// What this worker has seen of the others.
struct Watched {
    silences: Silences,
    /// Those of workers that live elsewhere: their leases run out by themselves, and after that they are forgotten.
    remote: Silences,
    /// Time since a heartbeat of this worker was answered: while none is, nobody else's may be.
    unanswered: Duration,
}

impl Default for Watched {
    fn default() -> Self {
        let remote = Silences::of(FORGOTTEN_AFTER);
        Self { silences: Silences::default(), remote, unanswered: Duration::ZERO }
    }
}

impl Watched {
    async fn look(
        &mut self,
        context: &Context,
        pipelines: &[Pipeline],
        passed: Duration,
        run_out_by: Timestamp,
    ) -> Result<(), Error> {
        self.unanswered = if context.take_beaten() { Duration::ZERO } else { self.unanswered + passed };
        let workers = context.redrive.store.list_workers().await?;
        let watches = self.unanswered <= BEAT_EVERY * 2 && !context.redrive.reach.is_forgiving();
        let counts = if watches { passed } else { Duration::ZERO };
        let silent = self.silences.look(workers.iter().filter_map(WorkerView::unproven_beat), counts);
        let gone_by = self.remote.look(workers.iter().filter_map(WorkerView::remote_beat), counts);
        reap(context, pipelines, &silent, run_out_by).await?;
        let over: Vec<_> = silent.into_iter().chain(gone_by).collect();
        if !over.is_empty() {
            context.redrive.store.forget_workers(over).await?;
        }
        Ok(())
    }
}

/// Takes back what dead workers left, before anything else is done.
pub(super) async fn reap_gone(context: &Context, pipelines: &[Pipeline]) -> Result<(), Error> {
    reap(context, pipelines, &[], BEFORE_ALL).await
}

/// Takes back every lost lease of these pipelines; those of others are left to whoever runs them.
pub(super) async fn reap(
    context: &Context,
    pipelines: &[Pipeline],
    silent: &[LastBeat],
    run_out_by: Timestamp,
) -> Result<(), Error> {
    let names: Vec<_> = pipelines.iter().map(|pipeline| pipeline.name.clone()).collect();
    loop {
        let params =
            FindLostLeases { pipelines: names.clone(), silent: silent.to_vec(), limit: BATCH, now: run_out_by };
        let mut lost = context.redrive.store.lost_leases(params).await?;
        let full = lost.len() >= BATCH as usize;
        // What this worker still has is late, not lost: the heartbeat extends it.
        lost.retain(|lost| !context.holds(&lost.job.lease));
        if lost.is_empty() {
            return Ok(());
        }
        for pipeline in pipelines {
            take_back(context, pipeline, lost.iter().filter(|lost| lost.job.pipeline == pipeline.name)).await?;
        }
        // Only now: a worker that is not dead after all must find that it has lost its jobs, not that they died.
        let gone: BTreeSet<_> = lost.iter().filter(|lost| lost.worker_gone).map(|lost| lost.worker).collect();
        for worker in gone {
            end_orphans(worker).await;
        }
        if !full {
            return Ok(());
        }
    }
}

async fn end_orphans(worker: WorkerId) {
    let killed = tokio::task::spawn_blocking(move || orphans::kill(worker)).await.unwrap_or(0);
    if killed > 0 {
        tracing::info!(%worker, killed, "ended what a dead worker left running");
    }
}

async fn take_back(
    context: &Context,
    pipeline: &Pipeline,
    lost: impl Iterator<Item = &LostLease>,
) -> Result<(), Error> {
    let rules = context.redrive.known_rules().await;
    let settle = |lost: &LostLease| {
        let mut decision = judge(&pipeline.policy, lost, context.ending());
        decision.facts.tracked = pipeline.tracked_in(&lost.job.input);
        Settlement::new(&lost.job, decision, &rules)
    };
    let settlements: Vec<_> = lost.map(settle).collect();
    if settlements.is_empty() {
        return Ok(());
    }
    let params =
        SettleJobs { settlements, worker: context.id, breakers: Vec::new(), keep_late: false, now: context.now() };
    let settled = context.redrive.settle(&pipeline.policy.breaker, params.clone()).await?;
    let answered = params.settlements.iter().zip(&settled);
    let applied =
        || answered.clone().filter(|(_, answer)| **answer == Settled::Applied).map(|(settlement, _)| settlement);
    context.work_done.add(applied());
    for settlement in applied() {
        context.tell_often(|| Happening::settled(&pipeline.name, settlement));
    }
    Ok(())
}
