//! What runs in a worker at this moment, for who shows it: how many jobs, for how long the oldest, and whose commands are silent.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::handler::Notes;

/// The jobs that run. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Running(Arc<Mutex<Begun>>);

/// When each was begun, in the order in which they were, and what is noted of it.
#[derive(Debug, Default)]
struct Begun {
    next: u64,
    jobs: BTreeMap<u64, (Instant, Notes)>,
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
        self.begun().jobs.first_key_value().map(|(_, (begun, _))| begun.elapsed())
    }

    /// How many of them wait for a command that has been silent for a while, and for how long the longest. Whether it works or hangs
    /// cannot be seen otherwise.
    pub fn silent(&self) -> Option<(usize, Duration)> {
        let begun = self.begun();
        let silent: Vec<_> = begun.jobs.values().filter_map(|(_, notes)| notes.silent_for()).collect();
        silent.iter().max().map(|longest| (silent.len(), *longest))
    }

    /// Notes that a job begins.
    pub(super) fn begin(&self, notes: Notes) -> Runs {
        let mut begun = self.begun();
        let number = begun.next;
        begun.next += 1;
        begun.jobs.insert(number, (Instant::now(), notes));
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
        let (first, second) = (running.begin(Notes::default()), running.begin(Notes::default()));
        let longest = running.longest().expect("it runs");
        assert_eq!(running.count(), 2);
        drop(first);
        assert!(running.count() == 1 && running.longest().expect("it runs") <= longest + Duration::from_secs(60));
        drop(second);
        assert_eq!((running.count(), running.longest()), (0, None));
    }
}
