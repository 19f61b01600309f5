//! Taking up pipelines that changed, as a worker beside the store does: a worker with the new ones begins, and the one before begins
//! nothing more and lets its jobs end by the rules they began with. Both together run no more than the newer one may.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use redrive::clock::{Clock, SystemClock};
use redrive::events::Happening;
use redrive::worker::Until;
use redrive::worker::reload::{Begun, Source, Turn, take_turns};
use redrive::{CancellationToken, Error};
use redrive_core::ids::{PipelineName, WorkerId};

use super::{RemoteWorker, Shared};

/// How many jobs of each pipeline run, whichever worker of this process began them.
#[derive(Clone, Default)]
pub(super) struct Slots(Arc<Mutex<HashMap<PipelineName, usize>>>);

/// A job that runs; it has ended when this is dropped.
pub(super) struct Slot(Slots, PipelineName);

impl Slots {
    /// Notes that a job of a pipeline runs.
    pub(super) fn take(&self, pipeline: &PipelineName) -> Slot {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(pipeline.clone()).or_default() += 1;
        Slot(self.clone(), pipeline.clone())
    }

    /// How many jobs of a pipeline run.
    pub(super) fn taken(&self, pipeline: &PipelineName) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(pipeline).copied().unwrap_or(0)
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        if let Some(taken) = self.0.0.lock().unwrap_or_else(PoisonError::into_inner).get_mut(&self.1) {
            *taken -= 1;
        }
    }
}

pub(super) async fn run(
    first: RemoteWorker,
    source: Box<dyn Source>,
    until: Until,
    stop: CancellationToken,
) -> Result<(), Error> {
    let end = stop.clone();
    let begin = move |worker: RemoteWorker| -> Begun<Shared> {
        (Arc::clone(&worker.shared), Box::pin(worker.run_as_it_is(until.clone(), end.clone())))
    };
    let next = |former: &Shared, pipelines| begin(RemoteWorker::after(former, pipelines));
    take_turns(begin(first), next, source, stop).await
}

impl Turn for Shared {
    fn id(&self) -> WorkerId {
        self.id
    }

    fn retire(&self) {
        self.retired.cancel();
    }

    fn tell(&self, what: Happening) {
        self.server.events().tell(SystemClock.now(), Some(self.id), what);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_worker_runs_leaves_less_room_for_the_next() {
        let (slots, name): (Slots, PipelineName) = (Slots::default(), "shop".parse().expect("a name"));
        let (first, next) = (slots.take(&name), slots.clone());
        assert_eq!(next.taken(&name), 1);
        drop(first);
        assert_eq!((next.taken(&name), next.taken(&"other".parse().expect("a name"))), (0, 0));
    }
}
