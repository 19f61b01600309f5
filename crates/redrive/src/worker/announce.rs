//! Announcing jobs that begin soon inside the worker, several at once and before it is their turn, so that none of them waits for
//! a flush of its own.
//!
//! What was announced is a suspect if the worker dies, like what runs: nobody can tell which of them had begun. So only what begins
//! within moments is announced, a few at a time, and never a suspect, which is judged by running alone, nor a letter of a replay,
//! of which it is counted whether it had begun.

use std::sync::Arc;

use redrive_core::jobs::{Lease, LeasedJob};
use redrive_store::contract::StartJobs;
use tokio::sync::watch;

use super::context::Context;
use super::run::Waiting;

/// Whether jobs that were announced together may begin: known when that is on disk.
#[derive(Clone)]
pub(super) struct Announced(watch::Receiver<Option<bool>>);

impl Announced {
    /// Announces jobs.
    fn begin(context: Arc<Context>, leases: Vec<Lease>) -> Self {
        let (told, heard) = watch::channel(None);
        tokio::spawn(async move {
            let _watched = context.watched("noting which tasks begin");
            let written = note_start(&context, leases, false).await;
            // Nobody listens if all of them were returned meanwhile.
            let _ = told.send(Some(written));
        });
        Self(heard)
    }

    /// Waits until it is known whether they may begin.
    pub(super) async fn may_begin(mut self) -> bool {
        self.0.wait_for(Option::is_some).await.is_ok_and(|written| *written == Some(true))
    }
}

/// Announces the jobs that begin soon, of which there are at most so many, unless most of those are announced already.
pub(super) fn announce<'a>(context: &Arc<Context>, waiting: impl Iterator<Item = &'a mut Waiting>, soon: usize) {
    let mut fresh: Vec<_> =
        waiting.filter(|waiting| waiting.announced.is_none() && is_announceable(&waiting.job)).collect();
    if fresh.is_empty() || fresh.len() * 2 < soon {
        return;
    }
    let leases = fresh.iter().map(|waiting| waiting.job.lease).collect();
    let announced = Announced::begin(Arc::clone(context), leases);
    fresh.iter_mut().for_each(|waiting| waiting.announced = Some(announced.clone()));
}

/// Whether a job may be announced before it is its turn.
const fn is_announceable(job: &LeasedJob) -> bool {
    !job.tally.suspect && job.tally.replays == 0
}

/// Notes that jobs begin to run; says whether that could be written.
pub(super) async fn note_start(context: &Context, leases: Vec<Lease>, own_process: bool) -> bool {
    let store = &context.redrive.store;
    match store.start(StartJobs { leases, own_process }).await {
        Ok(()) => true,
        Err(error) => {
            context.fail(error.into());
            false
        }
    }
}
