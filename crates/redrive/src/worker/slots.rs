//! What pipelines run at once. A worker and the one that takes its place share it, so that both together run no more than the newer
//! one may, whatever the former was allowed.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use redrive_core::ids::PipelineName;
use tokio::sync::Notify;

/// The jobs that run, by pipeline.
#[derive(Default)]
pub(super) struct Slots(Mutex<HashMap<PipelineName, Arc<Running>>>);

#[derive(Default)]
struct Running {
    jobs: Mutex<usize>,
    one_ended: Notify,
}

/// The right to run one job; it ends when this is dropped.
pub(super) struct Slot(Arc<Running>);

impl Slots {
    /// Waits until fewer than so many jobs of a pipeline run.
    pub(super) async fn take(&self, pipeline: &PipelineName, jobs_max: usize) -> Slot {
        let running = {
            let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            match all.get(pipeline) {
                Some(running) => Arc::clone(running),
                None => Arc::clone(all.entry(pipeline.clone()).or_default()),
            }
        };
        loop {
            // It waits before it looks: whatever ends in between is not missed.
            let mut one_ended = std::pin::pin!(running.one_ended.notified());
            one_ended.as_mut().enable();
            if running.begin(jobs_max) {
                break;
            }
            one_ended.await;
        }
        Slot(running)
    }
}

impl Running {
    fn begin(&self, jobs_max: usize) -> bool {
        let mut jobs = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        let may = *jobs < jobs_max;
        *jobs += usize::from(may);
        may
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        *self.0.jobs.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        self.0.one_ended.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    async fn taken(slots: &Slots, jobs_max: usize) -> Option<Slot> {
        let name = "p".parse().expect("a name");
        tokio::time::timeout(Duration::from_millis(1), slots.take(&name, jobs_max)).await.ok()
    }

    #[tokio::test]
    async fn who_takes_over_runs_no_more_than_it_may_together_with_the_former() {
        let slots = Slots::default();
        let mut former = vec![taken(&slots, 2).await.expect("free"), taken(&slots, 2).await.expect("free")];
        assert!(taken(&slots, 2).await.is_none());
        let third = taken(&slots, 3).await.expect("one more, as it is configured now");
        assert!(taken(&slots, 3).await.is_none());
        drop(third);
        former.pop();
        assert!(taken(&slots, 1).await.is_none(), "the other runs still");
        former.pop();
        let alone = taken(&slots, 1).await.expect("free");
        let name = "p".parse().expect("a name");
        let waiting = slots.take(&name, 1);
        tokio::pin!(waiting);
        assert!(tokio::time::timeout(Duration::ZERO, &mut waiting).await.is_err());
        drop(alone);
        waiting.await;
    }
}
