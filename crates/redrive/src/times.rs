//! How long calls take, counted into buckets as they end: for who watches this process. It begins at nothing with each process.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// The upper ends of the buckets.
pub const BUCKETS: [Duration; 7] = [
    Duration::from_millis(2),
    Duration::from_millis(5),
    Duration::from_millis(20),
    Duration::from_millis(100),
    Duration::from_millis(500),
    Duration::from_millis(2_500),
    Duration::from_secs(10),
];

/// How long calls of one kind took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Durations {
    /// How many took no longer than each of [`BUCKETS`], those of the buckets before not counted again.
    pub buckets: [u64; BUCKETS.len()],
    /// How many there were.
    pub count: u64,
    /// Those of them that failed.
    pub failed: u64,
    /// How long all of them took.
    pub sum: Duration,
}

/// How long calls took, by their kind.
#[derive(Debug)]
pub struct Times<K>(Mutex<BTreeMap<K, Durations>>);

impl<K> Default for Times<K> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Ord + Clone> Times<K> {
    /// Counts a call.
    pub fn note(&self, kind: K, took: Duration, failed: bool) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = all.entry(kind).or_default();
        if let Some(bucket) = BUCKETS.iter().position(|end| took <= *end) {
            known.buckets[bucket] += 1;
        }
        known.count += 1;
        known.failed += u64::from(failed);
        known.sum += took;
    }

    /// What was counted so far.
    pub fn read(&self) -> BTreeMap<K, Durations> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_counted_by_how_long_they_took() {
        let times = Times::default();
        for millis in [1, 2, 3, 600, 60_000] {
            times.note("lease", Duration::from_millis(millis), millis > 1_000);
        }
        let lease = times.read()["lease"];
        assert_eq!((lease.count, lease.failed, lease.sum), (5, 1, Duration::from_millis(60_606)));
        assert_eq!(lease.buckets, [2, 1, 0, 0, 0, 1, 0], "what took longer than any is only counted");
    }
}
