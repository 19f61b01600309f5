//! Notices what other processes, and other parts of this one, changed in the store.

use std::sync::Arc;
use std::time::Duration;

use super::context::Context;

/// How often it looks. A look reads one number.
const EVERY: Duration = Duration::from_millis(20);

pub(super) async fn run(context: Arc<Context>) {
    let mut every = tokio::time::interval(EVERY);
    every.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        every.tick().await;
        if let Ok(revision) = context.redrive.store.revision().await {
            context.changed.send_if_modified(|known| std::mem::replace(known, revision) != revision);
        }
    }
}
