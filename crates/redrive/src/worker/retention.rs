//! Retention: dead letters that are older than their pipeline keeps them are discarded, with a record; breakers that have
//! nothing more to say, old counts and old replays are forgotten; payloads that nothing refers to are removed.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use redrive_store::contract::{ExpireDead, SweepBreakers};

use super::context::Context;
use crate::error::Error;
use crate::pipeline::Pipeline;

/// How often it looks.
const EVERY: Duration = Duration::from_secs(60);

/// At most so many letters go in one transaction.
const BATCH: u32 = 500;

/// How often the vault is cleared, and how long what nothing refers to is spared.
const COLLECT_EVERY: Duration = Duration::from_secs(3_600);

/// How long counts and replays that ended are kept.
const HISTORY: Duration = Duration::from_secs(90 * 86_400);

pub(super) async fn run(context: Arc<Context>, pipelines: Vec<Pipeline>) {
    let mut collected_at = context.now();
    loop {
        for pipeline in &pipelines {
            if let Err(error) = expire(&context, pipeline).await {
                tracing::warn!(%error, pipeline = %pipeline.name, "old dead letters could not be discarded");
            }
            if let Err(error) = sweep(&context, pipeline).await {
                tracing::warn!(%error, pipeline = %pipeline.name, "old breakers could not be forgotten");
            }
        }
        if context.now().since(collected_at) >= COLLECT_EVERY {
            collected_at = context.now();
            collect(&pipelines).await;
            if let Err(error) = context.redrive.store.forget_history(context.now() - HISTORY).await {
                tracing::warn!(%error, "old counts could not be forgotten");
            }
        }
        context.redrive.clock.sleep_until(context.now() + EVERY).await;
    }
}

async fn expire(context: &Context, pipeline: &Pipeline) -> Result<(), Error> {
    let Some(kept) = pipeline.policy.retention else { return Ok(()) };
    loop {
        let now = context.now();
        let params = ExpireDead { pipeline: pipeline.name.clone(), before: now - kept, limit: BATCH, now };
        let expired = context.redrive.store.expire_dead(params).await?;
        if expired > 0 {
            tracing::info!(pipeline = %pipeline.name, expired, "dead letters discarded by retention");
        }
        if expired < u64::from(BATCH) {
            return Ok(());
        }
    }
}

/// Clears each vault of what nothing refers to.
async fn collect(pipelines: &[Pipeline]) {
    let vaults: BTreeMap<_, _> = pipelines.iter().filter_map(|p| p.vault.as_ref()).map(|v| (v.address(), v)).collect();
    for vault in vaults.into_values() {
        match vault.collect(COLLECT_EVERY).await {
            Ok(collected) => tracing::debug!(?collected, "vault cleared"),
            Err(error) => tracing::warn!(%error, "the vault could not be cleared"),
        }
    }
}

async fn sweep(context: &Context, pipeline: &Pipeline) -> Result<(), Error> {
    let policy = pipeline.policy.breaker.clone();
    let params = SweepBreakers { pipeline: pipeline.name.clone(), policy, now: context.now() };
    context.redrive.store.sweep_breakers(params).await?;
    Ok(())
}
