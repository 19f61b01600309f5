//! Passes on what other processes, and other parts of this one, changed in the store to those whom it concerns, and notices
//! that the store was taken away or brought to a version that this build does not understand.

use std::sync::Arc;
use std::time::Duration;

use redrive_store::StoreError;
use redrive_store::contract::{Change, Topic};

use super::context::Context;
use super::pauses;

/// How long to wait for a hint: they may get lost.
const LOOK_ANYWAY: Duration = Duration::from_secs(5);

/// The time between two hints that are passed on: what comes meanwhile is one.
const PAUSE: Duration = Duration::from_millis(20);

pub(super) async fn run(context: Arc<Context>) {
    let mut changes = context.redrive.store.changes();
    loop {
        let change = match tokio::time::timeout(LOOK_ANYWAY, changes.next()).await {
            Ok(Ok(change)) => change,
            Ok(Err(error @ (StoreError::Gone { .. } | StoreError::NewerSchema { .. }))) => {
                return context.fail(error.into());
            }
            Ok(Err(error)) => {
                tracing::debug!(%error, "nothing is heard of changes");
                tokio::time::sleep(LOOK_ANYWAY).await;
                Change::ALL
            }
            Err(_) => Change::ALL,
        };
        if change.is_about(Topic::Pipelines) {
            pauses::look(&context).await;
        }
        // Replays, too: one that is over, or paused, ends the work on its lane.
        if change.is_about_any(&[Topic::Jobs, Topic::Breakers, Topic::Pipelines, Topic::Replays]) {
            context.jobs_changed.send_replace(());
        }
        if change.is_about(Topic::Leases) && change != Change::ALL {
            context.leases_ended.send_replace(());
        }
        if change.is_about(Topic::Replays) {
            context.replays_changed.send_replace(());
        }
        tokio::time::sleep(PAUSE).await;
    }
}
