//! The heartbeat: extends the leases of this worker, and ends the runs of jobs it has lost.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use redrive_store::contract::ExtendLeases;

use super::context::Context;
use crate::pipeline::Pipeline;

/// The longest time between two beats: a cancelled job goes on no longer than this.
const EVERY_MAX: Duration = Duration::from_secs(1);

pub(super) async fn run(context: Arc<Context>, pipelines: Vec<Pipeline>) {
    let leases = || pipelines.iter().map(|pipeline| pipeline.policy.lease);
    let lasts = leases().max().unwrap_or(Duration::from_secs(30));
    let every = (leases().min().unwrap_or(lasts) / 3).min(EVERY_MAX);
    loop {
        context.redrive.clock.sleep(every).await;
        beat(&context, lasts).await;
    }
}

/// Extends the leases once, and learns which of them are lost.
pub(super) async fn beat(context: &Context, lasts: Duration) {
    let leases = context.leases();
    let now = context.now();
    let extend = ExtendLeases { worker: context.id, leases: leases.clone(), until: now + lasts, now };
    match context.redrive.store.extend(extend).await {
        Ok(still) => {
            let still: HashSet<_> = still.into_iter().collect();
            for lease in &leases {
                match still.contains(lease) {
                    true => context.keep(lease, now + lasts),
                    false => context.lose(lease),
                }
            }
        }
        Err(error) => tracing::warn!(%error, "the leases could not be extended"),
    }
}
