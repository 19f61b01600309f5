//! Retention: dead letters that are older than their pipeline keeps them are discarded, with a record; breakers that have
//! nothing more to say, old counts and old replays are forgotten; payloads that nothing refers to are removed.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use redrive_core::clock::{WAIT, set_back};
use redrive_core::time::Timestamp;
use redrive_store::contract::{ExpireDead, FoldCounts, ForgetReplays, LookAtClock};

use super::context::Context;
use crate::engine::Redrive;
use crate::error::Error;
use crate::pipeline::Pipeline;

/// How often it looks.
const EVERY: Duration = Duration::from_secs(60);

/// At most so many letters go in one transaction.
const BATCH: u32 = 500;

/// How often the vault is cleared, and how long what nothing refers to is spared.
const COLLECT_EVERY: Duration = Duration::from_secs(3_600);

/// How long events are counted by the minute.
const MINUTES_KEPT: Duration = Duration::from_secs(6 * 3_600);

/// How long counts and replays that ended are kept.
const HISTORY: Duration = Duration::from_secs(90 * 86_400);

pub(super) async fn run(context: Arc<Context>, pipelines: Vec<Pipeline>) {
    let mut collected_at = context.now();
    loop {
        let by = expires_by(&context).await;
        for pipeline in &pipelines {
            if let Some(by) = by
                && let Err(error) = expire(&context, pipeline, by).await
            {
                tracing::warn!(%error, pipeline = %pipeline.name, "old dead letters could not be discarded");
            }
            if let Err(error) = sweep(&context, pipeline).await {
                tracing::warn!(%error, pipeline = %pipeline.name, "old breakers could not be forgotten");
            }
        }
        if let Err(error) = resolve(&context).await {
            tracing::warn!(%error, "letters of causes that were split could not be brought to where they belong");
        }
        if let Err(error) = fold(&context).await {
            tracing::warn!(%error, "counts could not be folded");
        }
        let now = context.now();
        if now.since(collected_at) >= COLLECT_EVERY || set_back(collected_at, now).is_some() {
            collected_at = now;
            collect(&pipelines).await;
            if let Some(by) = by
                && let Err(error) = forget(&context, by - HISTORY).await
            {
                tracing::warn!(%error, "old counts and replays could not be forgotten");
            }
        }
        context.redrive.clock.sleep(EVERY).await;
    }
}

/// Brings letters that were filed by older rules of causes to where they belong.
async fn resolve(context: &Context) -> Result<(), Error> {
    while !context.stop.is_cancelled() && context.redrive.resolve_letters().await? {}
    Ok(())
}

/// Folds what was counted by the minute into hours, once it is old enough.
async fn fold(context: &Context) -> Result<(), Error> {
    let params = FoldCounts { before: context.now() - MINUTES_KEPT, limit: BATCH };
    while context.redrive.store.fold_counts(params).await? {}
    Ok(())
}

/// The time by which things expire: not that of a clock that has just jumped. Nothing if it could not be asked.
async fn expires_by(context: &Context) -> Option<Timestamp> {
    let look = LookAtClock { now: context.now(), uptime: context.redrive.clock.uptime() };
    match context.redrive.store.look_at_clock(look).await {
        Ok(looked) => {
            if let Some(by) = looked.jumped {
                let hours = WAIT.as_secs() / 3_600;
                tracing::warn!(
                    ?by,
                    "the clock went ahead by more than a day since it was last looked at: it may have been wrong, so nothing that \
                     became old by that is discarded for {hours} hours"
                );
            }
            Some(looked.seen.expires_by())
        }
        Err(error) => {
            tracing::warn!(%error, "the clock could not be checked, so nothing is discarded for its age");
            None
        }
    }
}

/// Forgets old counts and old replays.
async fn forget(context: &Context, before: Timestamp) -> Result<(), Error> {
    let store = &context.redrive.store;
    store.forget_history(before).await?;
    while store.forget_replays(ForgetReplays { before, limit: BATCH }).await? {}
    Ok(())
}

async fn expire(context: &Context, pipeline: &Pipeline, by: Timestamp) -> Result<(), Error> {
    let Some(kept) = pipeline.policy.retention else { return Ok(()) };
    loop {
        let params =
            ExpireDead { pipeline: pipeline.name.clone(), before: by - kept, limit: BATCH, now: context.now() };
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
    let Redrive { store, breakers, .. } = &context.redrive;
    breakers.sweep(&**store, &pipeline.name, &pipeline.policy.breaker, context.now()).await?;
    Ok(())
}
