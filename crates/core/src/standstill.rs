//! When waiting is in vain: nothing runs, and all that is queued waits for targets that do not get better, or for a time
//! that is too far away.

use std::time::Duration;

use crate::time::Timestamp;

/// Where the work on a pipeline stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standstill {
    /// When something was last settled other than by failing for its target's sake, or else when the work began.
    pub settled_at: Timestamp,
    /// Jobs that run now, with any worker.
    pub running: u64,
    /// Queued jobs that breakers hold.
    pub held: u64,
    /// Whether some of them wait because their target fails. These are waited for as long as the caller said.
    pub awaits_target: bool,
    /// When the next job may be leased, probes of breakers included.
    pub next_due: Option<Timestamp>,
    /// Whether people have the pipeline rest: it may go on at any time, and nobody knows when.
    pub paused: bool,
}

impl Standstill {
    /// Whether to stop waiting. Probes that fail do not count: a target that stays away would be waited for without end, and so would
    /// one whose probes are always between two attempts.
    pub fn is_in_vain(&self, max_wait: Duration, now: Timestamp) -> bool {
        let none_due = !self.paused && !self.awaits_target && self.next_due.is_none_or(|due| due > now + max_wait);
        let held_too_long = (self.held > 0 || self.paused) && now.since(self.settled_at) >= max_wait;
        self.running == 0 && (none_due || held_too_long)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX: Duration = Duration::from_secs(600);

    const fn at(secs: i64) -> Timestamp {
        Timestamp::from_millis(secs * 1_000)
    }

    fn held(next_due: i64) -> Standstill {
        let (settled_at, next_due) = (at(0), Some(at(next_due)));
        Standstill { settled_at, running: 0, held: 3, awaits_target: false, next_due, paused: false }
    }

    #[test]
    fn a_target_is_waited_for_until_nothing_was_settled_for_long_enough() {
        assert!(!held(130).is_in_vain(MAX, at(100)));
        assert!(!held(630).is_in_vain(MAX, at(599)));
        assert!(held(630).is_in_vain(MAX, at(600)), "another probe is due, as ever");
        assert!(!Standstill { settled_at: at(500), ..held(630) }.is_in_vain(MAX, at(600)));
    }

    #[test]
    fn what_is_due_too_late_is_not_waited_for_at_all() {
        assert!(held(3_600).is_in_vain(MAX, at(1)));
        assert!(Standstill { held: 0, ..held(3_600) }.is_in_vain(MAX, at(1)));
        assert!(Standstill { next_due: None, ..held(0) }.is_in_vain(MAX, at(1)));
    }

    #[test]
    fn a_target_that_fails_is_waited_for_though_its_next_probe_comes_later() {
        let awaits = Standstill { awaits_target: true, ..held(3_600) };
        assert!(!awaits.is_in_vain(MAX, at(599)) && awaits.is_in_vain(MAX, at(600)));
    }

    #[test]
    fn running_jobs_and_retries_to_come_are_waited_for() {
        assert!(!Standstill { running: 1, ..held(3_600) }.is_in_vain(MAX, at(9_000)));
        assert!(!Standstill { held: 0, ..held(9_300) }.is_in_vain(MAX, at(9_000)));
    }

    #[test]
    fn a_pause_is_waited_for_as_a_target_is() {
        let paused = Standstill { held: 0, next_due: None, paused: true, ..held(0) };
        assert!(!paused.is_in_vain(MAX, at(599)) && paused.is_in_vain(MAX, at(600)));
    }

    #[test]
    fn no_patience_waits_for_nothing() {
        assert!(Standstill { held: 0, ..held(2) }.is_in_vain(Duration::ZERO, at(1)));
        assert!(!Standstill { held: 0, ..held(1) }.is_in_vain(Duration::ZERO, at(1)), "it can be done now");
    }
}
