//! Ends what jobs left running when they were over: processes that left their group and let go of their pipes. As the
//! first process of a container, where nobody else does, it also clears away the dead ones.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use rustix::process::{Pid, WaitOptions, waitpid};

use super::context::Context;
use crate::handler::exec::{self, orphans};

/// How often it looks. A look reads the environment of every process on the machine.
const EVERY: Duration = Duration::from_secs(2);

/// Removes the files that jobs of killed workers left.
pub(super) async fn sweep_files() {
    let _ = tokio::task::spawn_blocking(exec::sweep_files).await;
}

pub(super) async fn run(context: Arc<Context>) {
    sweep_files().await;
    let mut zombies = Zombies::default();
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
        if std::process::id() == 1 {
            zombies.clear_away();
        }
    }
}

/// Dead children of the first process. Our own are waited for elsewhere, and soon: who is still there at the second look
/// is nobody else's.
#[derive(Default)]
struct Zombies(HashSet<Pid>);

impl Zombies {
    fn clear_away(&mut self) {
        let seen: HashSet<Pid> = orphans::dead_children().into_iter().collect();
        for pid in seen.intersection(&self.0) {
            let _ = waitpid(Some(*pid), WaitOptions::NOHANG);
        }
        self.0 = seen;
    }
}

/// Ends everything that the worker's jobs left, once none of them runs any more.
pub(super) async fn end_all(context: &Context) {
    let worker = context.id;
    // A failure here leaves processes behind, but no job.
    let _ = tokio::task::spawn_blocking(move || orphans::kill(worker)).await;
}
