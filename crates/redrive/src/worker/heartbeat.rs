//! The heartbeat: shows that this worker lives, extends its leases, and ends the runs of jobs it has lost.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use redrive_core::workers::BEAT_EVERY;
use redrive_store::contract::Beat;
use redrive_store::host;

use super::context::Context;
use crate::error::Error;
use crate::pipeline::Pipeline;

/// How long the leases of these pipelines last.
pub(super) fn lease_of(pipelines: &[Pipeline]) -> Duration {
    pipelines.iter().map(|pipeline| pipeline.policy.lease).max().unwrap_or(Duration::from_secs(30))
}

pub(super) async fn run(context: Arc<Context>, pipelines: Vec<Pipeline>) {
    let lasts = lease_of(&pipelines);
    let shortest = pipelines.iter().map(|pipeline| pipeline.policy.lease).min().unwrap_or(lasts);
    let every = (shortest / 3).min(BEAT_EVERY);
    let mut ended = context.leases_ended.subscribe();
    loop {
        tokio::select! {
            () = context.redrive.clock.sleep(every) => {}
            // A job was cancelled, perhaps one of ours.
            _ = ended.changed() => {}
        }
        if let Err(error) = beat(&context, lasts).await {
            tracing::warn!(%error, "the heartbeat was not answered");
        }
    }
}

/// The next heartbeat of a worker.
pub(super) fn next(context: &Context, lasts: Duration) -> Beat {
    let now = context.now();
    Beat {
        worker: context.id,
        host: host().to_owned(),
        pid: std::process::id(),
        remote: false,
        runs: context.runs(),
        leases: context.leases(),
        until: now + lasts,
        now,
    }
}

/// Beats once, and learns which leases are lost.
pub(super) async fn beat(context: &Context, lasts: Duration) -> Result<(), Error> {
    let store = &context.redrive.at_once;
    // Made anew for each try: leases are extended from when it is answered.
    let beat = || async {
        let beat = next(context, lasts);
        let (leases, now) = (beat.leases.clone(), beat.now);
        Ok((leases, now, store.beat(beat).await?))
    };
    let (leases, now, still) = context.redrive.reach.call(&|| store.trouble(), beat).await?;
    let still: HashSet<_> = still.into_iter().collect();
    context.note_beat();
    for lease in &leases {
        match still.contains(lease) {
            true => context.keep(lease, now + lasts),
            false => context.lose(lease),
        }
    }
    Ok(())
}
