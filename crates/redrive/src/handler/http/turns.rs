//! Whose turn it is: at most so many requests to one target at once, and so many per second.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

/// Targets that were not heard of for long are forgotten when there are more than this.
const TARGETS_MAX: usize = 10_000;

/// The turns of all targets.
#[derive(Debug)]
pub(super) struct Turns {
    at_once: Option<usize>,
    spacing: Option<Duration>,
    targets: Mutex<HashMap<String, Target>>,
}

#[derive(Debug)]
struct Target {
    slots: Option<Arc<Semaphore>>,
    /// When the next request may go.
    next: Instant,
}

impl Turns {
    pub(super) fn new(at_once: Option<usize>, per_second: Option<f64>) -> Self {
        let spacing = per_second.filter(|rate| *rate > 0.0).map(|rate| Duration::from_secs_f64(1.0 / rate));
        Self { at_once, spacing, targets: Mutex::default() }
    }

    /// Returns when a request to the target may go; it is over when what it gives back is dropped.
    pub(super) async fn wait(&self, target: &str) -> Option<OwnedSemaphorePermit> {
        if self.at_once.is_none() && self.spacing.is_none() {
            return None;
        }
        let slots = self.with(target, |target| target.slots.clone());
        let permit = match slots {
            Some(slots) => slots.acquire_owned().await.ok(),
            None => None,
        };
        if let Some(spacing) = self.spacing {
            let turn = self.with(target, |target| {
                let turn = target.next.max(Instant::now());
                target.next = turn + spacing;
                turn
            });
            tokio::time::sleep_until(turn).await;
        }
        permit
    }

    fn with<T>(&self, target: &str, run: impl FnOnce(&mut Target) -> T) -> T {
        let mut targets = self.targets.lock().unwrap_or_else(PoisonError::into_inner);
        if targets.len() > TARGETS_MAX {
            let now = Instant::now();
            targets.retain(|_, target| {
                target.next > now || target.slots.as_ref().is_some_and(|s| Arc::strong_count(s) > 1)
            });
        }
        let slots = || self.at_once.map(|slots| Arc::new(Semaphore::new(slots)));
        run(targets.entry(target.to_owned()).or_insert_with(|| Target { slots: slots(), next: Instant::now() }))
    }
}
