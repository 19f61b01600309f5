//! The pipelines that this worker cannot work on for now, each with its reason, while the others go on.
//!
//! Who runs into such trouble reports it with [`Context::hold_pipeline`]; the job goes back to the queue as it was. While a
//! pipeline is held nothing of it is begun; when it is time again, jobs are, one at a time. As soon as one comes to an end,
//! whatever end, all go on; but where evidence could not be kept only one whose evidence was kept proves anything. Results
//! that cannot be written are tried again by who has them, so that no job is run for nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use redrive_core::holds::Hold;
use redrive_core::ids::PipelineName;
use redrive_core::time::Timestamp;
use tokio::sync::watch;

use super::context::Context;
use crate::error::Error;
use crate::events::Happening;

/// What is in the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Trouble {
    /// Jobs cannot be run: their command does not start.
    Handler,
    /// What is to be kept of their attempts cannot be kept.
    Evidence,
    /// Results cannot be written.
    Sink,
    /// There is no room for results. It is waited for, as the store waits for room.
    Room,
}

/// For how long a worker puts up with what does not get better.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patience {
    /// After so many tries a pipeline that is held is given up; without a number, never.
    pub(super) tries_max: Option<u32>,
    /// How long targets are waited for while nothing moves; without a limit, for ever.
    pub(super) max_wait: Option<Duration>,
    /// Whether the worker has nothing else to do than the one pipeline, or replay.
    pub(super) alone: bool,
}

/// The pipelines that are held.
pub(super) struct Holds {
    held: Mutex<BTreeMap<PipelineName, (Trouble, Hold)>>,
    /// What has worked in this worker: pipelines of which a job came to an end, or a result was written.
    worked: Mutex<BTreeSet<(PipelineName, Trouble)>>,
    changed: watch::Sender<()>,
}

impl Default for Holds {
    fn default() -> Self {
        Self { held: Mutex::default(), worked: Mutex::default(), changed: watch::channel(()).0 }
    }
}

impl Holds {
    fn held(&self) -> MutexGuard<'_, BTreeMap<PipelineName, (Trouble, Hold)>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The hold of a pipeline, if it is held.
    pub(super) fn of(&self, pipeline: &PipelineName) -> Option<Hold> {
        self.held().get(pipeline).map(|(_, hold)| hold.clone())
    }

    /// The hold of a pipeline that was tried often enough. One that never worked here is not tried twice.
    pub(super) fn given_up(&self, pipeline: &PipelineName, patience: &Patience) -> Option<Hold> {
        let (trouble, hold) = self.held().get(pipeline).cloned()?;
        let worked = self.has_worked(pipeline, trouble);
        if worked && trouble == Trouble::Room {
            return None;
        }
        let tries_max = if worked { patience.tries_max? } else { patience.tries_max?.min(1) };
        (hold.tries >= tries_max).then_some(hold)
    }

    /// Whether it worked before. Where jobs came to an end, evidence was kept or none was needed.
    fn has_worked(&self, pipeline: &PipelineName, trouble: Trouble) -> bool {
        let worked = self.worked.lock().unwrap_or_else(PoisonError::into_inner);
        let knows = |trouble| worked.contains(&(pipeline.clone(), trouble));
        match trouble {
            Trouble::Evidence => knows(Trouble::Evidence) || knows(Trouble::Handler),
            Trouble::Room => knows(Trouble::Sink),
            known => knows(known),
        }
    }

    /// How many of `free` jobs a pipeline may run at once: all, or one to see, or none.
    pub(super) fn room(&self, pipeline: &PipelineName, free: usize, now: Timestamp) -> usize {
        match self.held().get(pipeline) {
            None => free,
            Some((Trouble::Handler | Trouble::Evidence, hold)) if hold.is_due(now) => 1,
            Some(_) => 0,
        }
    }

    /// Notes trouble; gives the hold, and whether it is a new one.
    fn note(&self, pipeline: &PipelineName, trouble: Trouble, why: String, now: Timestamp) -> (Hold, bool) {
        let mut held = self.held();
        let is_new = !held.contains_key(pipeline);
        let (known, hold) = held
            .entry(pipeline.clone())
            .and_modify(|(_, hold)| hold.tried(why.clone(), now))
            .or_insert_with(|| (trouble, Hold::new(pipeline.clone(), why.clone(), now)));
        *known = trouble;
        let hold = hold.clone();
        drop(held);
        self.changed.send_replace(());
        (hold, is_new)
    }

    /// Notes that something works: a job that began then came to an end of its own, evidence was kept, or results were
    /// written. The pipeline goes on if that was what held it, which is said. A job of which nothing was to be kept says nothing about
    /// evidence, unless nobody has met that trouble for long.
    fn works(&self, pipeline: &PipelineName, trouble: Trouble, begun_at: Timestamp) -> bool {
        self.worked.lock().unwrap_or_else(PoisonError::into_inner).insert((pipeline.clone(), trouble));
        let mut held = self.held();
        let over = |(known, hold): &(Trouble, Hold)| match (known, trouble) {
            (Trouble::Evidence, Trouble::Handler) => hold.is_past_for(begun_at),
            (Trouble::Room, Trouble::Sink) => hold.is_over_for(begun_at),
            _ => *known == trouble && hold.is_over_for(begun_at),
        };
        let goes_on = held.get(pipeline).is_some_and(over);
        if goes_on {
            held.remove(pipeline);
            drop(held);
            self.changed.send_replace(());
        }
        goes_on
    }

    fn list(&self) -> Vec<Hold> {
        self.held().values().map(|(_, hold)| hold.clone()).collect()
    }
}

impl Context {
    /// Holds a pipeline that cannot work, and says until when.
    pub(super) fn hold_pipeline(&self, pipeline: &PipelineName, trouble: Trouble, why: String) -> Hold {
        let (hold, is_new) = self.holds.note(pipeline, trouble, why, self.now());
        if is_new {
            let Hold { pipeline, why, next_try, .. } = hold.clone();
            self.tell(Happening::PipelineHeld { pipeline, why, next_try });
        }
        hold
    }

    /// Notes that something of a pipeline works, since a time; see [`Holds::works`].
    pub(super) fn works(&self, pipeline: &PipelineName, trouble: Trouble, begun_at: Timestamp) {
        if self.holds.works(pipeline, trouble, begun_at) {
            self.tell(Happening::PipelineWentOn { pipeline: pipeline.clone() });
        }
    }
}

/// What is said of a pipeline that is given up.
pub(super) fn failure(hold: Hold) -> Error {
    Error::Held { pipeline: hold.pipeline, why: hold.why, tries: hold.tries }
}

/// Keeps the store told of what is held, for others to see.
pub(super) async fn run(context: Arc<Context>) {
    let mut changed = context.holds.changed.subscribe();
    while changed.changed().await.is_ok() {
        if let Err(error) = context.redrive.store.note_holds(context.id, context.holds.list()).await {
            tracing::warn!(%error, "what is held could not be noted in the store");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(secs: i64) -> Timestamp {
        Timestamp::from_millis(secs * 1_000)
    }

    #[test]
    fn jobs_of_which_nothing_is_kept_do_not_end_trouble_with_evidence() {
        let (holds, pipeline) = (Holds::default(), "p".parse().expect("a name"));
        let tries = || holds.of(&pipeline).map(|hold| hold.tries);
        let mut now = at(0);
        for expected in 1..=6 {
            holds.works(&pipeline, Trouble::Handler, now);
            let (hold, _) = holds.note(&pipeline, Trouble::Evidence, "the spool is full".into(), now);
            assert_eq!((tries(), holds.room(&pipeline, 9, now)), (Some(expected), 0), "each wait is longer");
            now = hold.next_try;
            assert_eq!(holds.room(&pipeline, 9, now), 1, "one at a time");
        }
        holds.works(&pipeline, Trouble::Evidence, now);
        assert_eq!((tries(), holds.room(&pipeline, 9, now)), (None, 9));
        let (hold, _) = holds.note(&pipeline, Trouble::Evidence, "the spool is full".into(), now);
        holds.works(&pipeline, Trouble::Handler, hold.next_try + Duration::from_secs(60));
        assert_eq!(tries(), None, "no job met it for long");
    }
}
