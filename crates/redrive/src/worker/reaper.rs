//! The reaper: takes back the jobs of workers that died or fell silent, and ends what they left running.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use redrive_core::crashes::{LostLease, judge};
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
    loop {
        let now = context.now();
        let lost = context.redrive.store.lost_leases(FindLostLeases { limit: BATCH, now }).await?;
        let full = lost.len() >= BATCH as usize;
        let gone: BTreeSet<_> = lost.iter().filter(|lost| lost.worker_gone).map(|lost| lost.worker).collect();
        for worker in gone {
            end_orphans(worker).await;
        }
        let mut any = false;
        for pipeline in pipelines {
            let own: Vec<_> = lost.iter().filter(|lost| lost.job.pipeline == pipeline.name).collect();
            any |= !own.is_empty();
            take_back(context, pipeline, &own).await?;
        }
        if !(full && any) {
            return Ok(());
        }
    }
}

async fn end_orphans(worker: redrive_core::ids::WorkerId) {
    let killed = tokio::task::spawn_blocking(move || orphans::kill(worker)).await.unwrap_or(0);
    if killed > 0 {
        tracing::info!(%worker, killed, "ended what a dead worker left running");
    }
}

async fn take_back(context: &Context, pipeline: &Pipeline, lost: &[&LostLease]) -> Result<(), Error> {
    if lost.is_empty() {
        return Ok(());
    }
    let settle = |lost: &&LostLease| {
        // A lease that ran out while this very worker holds it is lost all the same.
        context.lose(lost.job.lease.job);
        Settlement { lease: lost.job.lease, decision: judge(&pipeline.policy, lost, context.ending()) }
    };
    let params = SettleJobs {
        settlements: lost.iter().map(settle).collect(),
        worker: context.id,
        breaker: pipeline.policy.breaker.clone(),
        now: context.now(),
    };
    context.redrive.store.settle(params).await?;
    Ok(())
}
