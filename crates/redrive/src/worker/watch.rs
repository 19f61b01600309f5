//! Notices what other processes, and other parts of this one, changed in the store, and that its file was taken away or brought
//! to a version that this build does not understand.

use std::sync::Arc;
use std::time::Duration;

use redrive_store::StoreError;

use super::context::Context;

/// How often it looks. A look reads one number.
const EVERY: Duration = Duration::from_millis(20);

pub(super) async fn run(context: Arc<Context>) {
    let mut every = tokio::time::interval(EVERY);
    every.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        every.tick().await;
        match context.redrive.store.revision().await {
            Ok(revision) => {
                context.changed.send_if_modified(|known| std::mem::replace(known, revision) != revision);
            }
            Err(error @ (StoreError::Gone { .. } | StoreError::NewerSchema { .. })) => context.fail(error.into()),
            // A moment's trouble, which those who need an answer run into themselves.
            Err(error) => tracing::debug!(%error, "the store could not be looked at"),
        }
    }
}
