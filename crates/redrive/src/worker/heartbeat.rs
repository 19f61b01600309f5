//! The heartbeat: extends the leases of this worker, and ends the runs of jobs it has lost.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use redrive_store::contract::ExtendLeases;

use super::context::Context;
use crate::pipeline::Pipeline;

pub(super) async fn run(context: Arc<Context>, pipelines: Vec<Pipeline>) {
    let leases = || pipelines.iter().map(|pipeline| pipeline.policy.lease);
    let lasts = leases().max().unwrap_or(Duration::from_secs(30));
    let every = leases().min().unwrap_or(lasts) / 3;
    loop {
        context.redrive.clock.sleep_until(context.now() + every).await;
        beat(&context, lasts).await;
    }
}

async fn beat(context: &Context, lasts: Duration) {
    let held = context.held_jobs();
    if held.is_empty() {
        return;
    }
    let now = context.now();
    match context.redrive.store.extend(ExtendLeases { worker: context.id, until: now + lasts, now }).await {
        Ok(still) => {
            let still: HashSet<_> = still.into_iter().collect();
            held.into_iter().filter(|job| !still.contains(job)).for_each(|job| context.lose(job));
        }
        Err(error) => tracing::warn!(%error, "the leases could not be extended"),
    }
}
