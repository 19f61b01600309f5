//! Taking up pipelines that changed, as a worker beside the store does: a worker with the new ones begins, and the one before begins
//! nothing more and lets its jobs end by the rules they began with. Both together run no more than the newer one may.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use redrive::clock::{Clock, SystemClock};
use redrive::events::Happening;
use redrive::worker::Until;
use redrive::worker::reload::{Source, watch};
use redrive::{CancellationToken, Error, Pipeline};
use redrive_core::ids::{PipelineName, WorkerId};
use tokio::task::JoinSet;

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

/// The worker that is present, and those that made way and still have jobs.
struct Generations {
    present: Arc<Shared>,
    workers: JoinSet<(WorkerId, Result<(), Error>)>,
    failure: Option<Error>,
}

pub(super) async fn run(
    first: RemoteWorker,
    source: Box<dyn Source>,
    until: Until,
    stop: CancellationToken,
) -> Result<(), Error> {
    let (_watching, mut changes) = watch(source);
    let present = Arc::clone(&first.shared);
    let mut generations = Generations { present, workers: JoinSet::new(), failure: None };
    generations.begin(first, &until, &stop);
    loop {
        tokio::select! {
            over = generations.one_ended() => {
                if over {
                    break;
                }
            }
            Some(changed) = changes.recv(), if !stop.is_cancelled() => match changed {
                Ok(pipelines) => {
                    let next = generations.make_way(pipelines);
                    generations.begin(next, &until, &stop);
                }
                Err(why) => generations.present.tell(Happening::PipelinesUnusable { why }),
            }
        }
    }
    generations.finish().await
}

impl Generations {
    fn begin(&mut self, worker: RemoteWorker, until: &Until, stop: &CancellationToken) {
        let (id, work) = (worker.shared.id, worker.run_as_it_is(until.clone(), stop.clone()));
        self.workers.spawn(async move { (id, work.await) });
    }

    /// Has another worker take the place of the present one.
    fn make_way(&mut self, pipelines: Vec<Pipeline>) -> RemoteWorker {
        let next = RemoteWorker::after(&self.present, pipelines);
        let former = std::mem::replace(&mut self.present, Arc::clone(&next.shared));
        former.tell(Happening::PipelinesChanged);
        former.retired.cancel();
        next
    }

    /// Waits until a worker has ended; says whether that was the present one, or one that failed.
    async fn one_ended(&mut self) -> bool {
        match self.workers.join_next().await {
            Some(Ok((id, ended))) => {
                let is_present = id == self.present.id;
                // What one that made way could not do, or waited for, is for the present one to do.
                let left = |error: &Error| matches!(error, Error::Held { .. } | Error::WaitedInVain(_));
                self.note(ended.or_else(|error| if !is_present && left(&error) { Ok(()) } else { Err(error) }));
                is_present || self.failure.is_some()
            }
            Some(Err(panic)) => {
                self.note(Err(Error::Internal(format!("a worker ended: {panic}"))));
                true
            }
            None => true,
        }
    }

    fn note(&mut self, ended: Result<(), Error>) {
        if let Err(error) = ended {
            self.failure.get_or_insert(error);
        }
    }

    /// Lets all that still have jobs come to their end.
    async fn finish(mut self) -> Result<(), Error> {
        self.present.retired.cancel();
        while !self.workers.is_empty() {
            self.one_ended().await;
        }
        self.failure.map_or(Ok(()), Err)
    }
}

impl Shared {
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
