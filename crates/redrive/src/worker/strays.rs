//! Ends what jobs left running when they were over: processes that left their group and let go of their pipes.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use super::context::Context;
use crate::handler::exec::orphans;

/// How often it looks. A look reads the environment of every process on the machine.
const EVERY: Duration = Duration::from_secs(2);

pub(super) async fn run(context: Arc<Context>) {
    loop {
        tokio::time::sleep(EVERY).await;
        let worker = context.id;
        // Jobs are asked for after the processes were found: whatever began meanwhile is no stray.
        let begun = context.leases();
        let found = tokio::task::spawn_blocking(move || orphans::children(worker)).await.unwrap_or_default();
        let running: HashSet<_> = begun.into_iter().chain(context.leases()).map(|lease| lease.job).collect();
        found
            .iter()
            .filter(|child| child.job.is_some_and(|job| !running.contains(&job)))
            .for_each(orphans::Child::kill);
    }
}

/// Ends everything that the worker's jobs left, once none of them runs any more.
pub(super) async fn end_all(context: &Context) {
    let worker = context.id;
    // A failure here leaves processes behind, but no job.
    let _ = tokio::task::spawn_blocking(move || orphans::kill(worker)).await;
}
