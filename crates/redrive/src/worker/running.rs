//! What runs in a worker at this moment, for who shows it: how many jobs, and for how long the oldest.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The jobs that run. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Running(Arc<Mutex<Begun>>);

/// When each was begun, in the order in which they were.
#[derive(Debug, Default)]
struct Begun {
    next: u64,
    jobs: BTreeMap<u64, Instant>,
}

/// A job that runs until this is dropped.
pub(super) struct Runs {
    running: Running,
    number: u64,
}

impl Running {
    /// How many jobs run.
    pub fn count(&self) -> usize {
        self.begun().jobs.len()
    }

    /// For how long the oldest of them runs.
    pub fn longest(&self) -> Option<Duration> {
        self.begun().jobs.first_key_value().map(|(_, begun)| begun.elapsed())
    }

    /// Notes that a job begins.
    pub(super) fn begin(&self) -> Runs {
        let mut begun = self.begun();
        let number = begun.next;
        begun.next += 1;
        begun.jobs.insert(number, Instant::now());
        drop(begun);
        Runs { running: self.clone(), number }
    }

    fn begun(&self) -> std::sync::MutexGuard<'_, Begun> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Runs {
    fn drop(&mut self) {
        self.running.begun().jobs.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_ended_no_longer_runs() {
        let running = Running::default();
        let (first, second) = (running.begin(), running.begin());
        let longest = running.longest().expect("it runs");
        assert_eq!(running.count(), 2);
        drop(first);
        assert!(running.count() == 1 && running.longest().expect("it runs") <= longest + Duration::from_secs(60));
        drop(second);
        assert_eq!((running.count(), running.longest()), (0, None));
    }
}
