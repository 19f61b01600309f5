//! The leader: of all workers one at a time does the chores of a store, of a pipeline or of a vault.

use std::time::Duration;

use crate::clock::set_back;
use crate::time::Timestamp;

/// How long somebody leads without asking again. It is trusted from when it was asked for, not from when that was answered.
pub const LEADS_FOR: Duration = Duration::from_secs(15);

/// How often a leader asks again, and the others ask whether there is one.
pub const RENEW_EVERY: Duration = Duration::from_secs(5);

/// A lead that ends later than this was taken by a clock that was wrong: it holds nobody up.
pub const AHEAD_MAX: Duration = Duration::from_secs(600);

/// Whether a chore is due: when it was last begun so long ago, or at a time that is still to come. One that was never begun is
/// due if it is a frequent one; else its time begins now.
pub fn is_due(last_run: Option<Timestamp>, every: Duration, now: Timestamp) -> bool {
    match last_run {
        Some(last) => now.since(last) >= every || set_back(last, now).is_some(),
        None => every < Duration::from_secs(3_600),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(secs: i64) -> Timestamp {
        Timestamp::from_millis(secs * 1_000)
    }

    #[test]
    fn a_chore_is_due_once_in_its_time() {
        let (minute, hour) = (Duration::from_secs(60), Duration::from_secs(3_600));
        assert!(!is_due(Some(at(100)), minute, at(159)));
        assert!(is_due(Some(at(100)), minute, at(160)));
        assert!(is_due(Some(at(90_000)), minute, at(100)), "the clock was set back");
        assert!(is_due(None, minute, at(0)), "it costs little");
        assert!(!is_due(None, hour, at(0)), "a new store has nothing to clear");
    }
}
