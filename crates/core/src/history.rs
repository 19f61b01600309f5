//! When what is known of a job that came to its end is forgotten: its receipt, and with it its key.

use std::time::Duration;

use crate::clock::set_back;
use crate::ids::JobId;
use crate::time::Timestamp;

/// How long it is known, unless a pipeline says otherwise.
pub const KEPT: Duration = Duration::from_secs(90 * 86_400);

/// How often all that may be old enough is looked through.
const LAP: Duration = Duration::from_secs(86_400);

/// How far the clock that an id was made by may be ahead.
const AHEAD_MAX: Duration = Duration::from_secs(86_400);

/// Whether a job that ended then is forgotten by now. Its age starts anew on each day on which a run meets its key, so that what is
/// handed in again and again is never done again.
pub fn is_over(ended_at: Timestamp, met_on: Option<i64>, before: Timestamp) -> bool {
    ended_at < before && met_on.is_none_or(|day| day < before.day())
}

/// Whether another lap through what may be forgotten is due, if the last one is through and was begun then.
pub fn lap_is_due(begun_at: Timestamp, now: Timestamp) -> bool {
    now.since(begun_at) >= LAP || set_back(begun_at, now).is_some()
}

/// The ids that a lap looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OldIds {
    /// All below this: an id is made before its job ends, and ids grow with the time that they are made at.
    pub below: JobId,
    /// All above this: they were made elsewhere, of no time at all.
    pub above: JobId,
}

impl OldIds {
    /// The ids among which those of all jobs are that ended before a time.
    pub fn of(before: Timestamp, now: Timestamp) -> Self {
        Self { below: JobId::new(before, 0), above: JobId::new(now + AHEAD_MAX, 0) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn day(day: i64) -> Timestamp {
        Timestamp::from_millis(day * 86_400_000)
    }

    #[test]
    fn a_key_that_was_met_is_kept() {
        assert!(is_over(day(1), None, day(2)));
        assert!(!is_over(day(2), None, day(2)));
        assert!(is_over(day(1), Some(1), day(2)));
        assert!(!is_over(day(1), Some(2), day(2)), "it was met later on that day");
        assert!(!is_over(day(3), Some(1), day(2)), "it came to its end later");
    }

    #[test]
    fn a_lap_is_begun_once_a_day_and_after_a_clock_that_was_ahead() {
        assert!(!lap_is_due(day(5), day(5)) && lap_is_due(day(5), day(6)));
        assert!(lap_is_due(day(9), day(5)), "the clock was ahead");
    }

    #[test]
    fn only_ids_that_may_be_old_enough_are_looked_at() {
        let old = OldIds::of(day(100), day(190));
        assert!(JobId::new(day(99), u128::MAX) < old.below && JobId::new(day(100), 1) >= old.below);
        assert!(JobId::new(day(190), u128::MAX) < old.above, "a job of today");
        assert!(JobId::from_bytes([0xf3; 16]) > old.above, "an id that tells no time");
    }
}
