//! The reaper: takes back the jobs of workers that died or fell silent, and ends what they left running.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use redrive_core::crashes::{LostLease, judge};
use redrive_core::ids::WorkerId;
use redrive_core::settlements::Settlement;
use redrive_store::contract::{FindLostLeases, SettleJobs};

use super::context::Context;
use crate::error::Error;
use crate::handler::exec::orphans;
use crate::pipeline::Pipeline;

/// How often it looks.
const EVERY: Duration = Duration::from_secs(1);

/// At most so many leases are taken back at once.
const BATCH: u32 = 500;

pub(super) async fn run(context: Arc<Context>, pipelines: Vec<Pipeline>) {
    loop {
        context.redrive.clock.sleep_until(context.now() + EVERY).await;
        if let Err(error) = reap(&context, &pipelines).await {
            tracing::warn!(%error, "lost leases could not be taken back");
        }
    }
}

/// Takes back every lost lease of these pipelines; those of others are left to whoever runs them.
pub(super) async fn reap(context: &Context, pipelines: &[Pipeline]) -> Result<(), Error> {
    let names: Vec<_> = pipelines.iter().map(|pipeline| pipeline.name.clone()).collect();
    loop {
        let params = FindLostLeases { pipelines: names.clone(), limit: BATCH, now: context.now() };
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
    let settle = |lost: &LostLease| {
        let mut decision = judge(&pipeline.policy, lost, context.ending());
        decision.facts.tracked = pipeline.tracked_in(&lost.job.input);
        Settlement { lease: lost.job.lease, decision }
    };
    let settlements: Vec<_> = lost.map(settle).collect();
    if settlements.is_empty() {
        return Ok(());
    }
    let params = SettleJobs {
        settlements,
        worker: context.id,
        breaker: pipeline.policy.breaker.clone(),
        keep_late: false,
        now: context.now(),
    };
    context.redrive.store.settle(params).await?;
    Ok(())
}
