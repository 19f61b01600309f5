//! A pipeline that cannot work at all, whatever its job: its command does not start, its results or its evidence cannot be
//! kept. It is held, with the reason, and tried again now and then; its jobs stay queued and lose no attempt.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::ids::PipelineName;
use crate::time::Timestamp;

/// The wait before the second try; it doubles from there.
const WAIT_MIN: Duration = Duration::from_secs(1);

/// The longest wait between two tries.
const WAIT_MAX: Duration = Duration::from_secs(60);

/// A pipeline that is held.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hold {
    /// Which.
    pub pipeline: PipelineName,
    /// Why it cannot work.
    pub why: String,
    /// Since when.
    pub since: Timestamp,
    /// How often it was tried, in vain.
    pub tries: u32,
    /// When it was last tried.
    pub tried_at: Timestamp,
    /// When it is tried again.
    pub next_try: Timestamp,
}

impl Hold {
    /// A pipeline that could work until now.
    pub fn new(pipeline: PipelineName, why: String, now: Timestamp) -> Self {
        Self { pipeline, why, since: now, tries: 1, tried_at: now, next_try: now + WAIT_MIN }
    }

    /// Notes that it still cannot work. Several jobs that met the same trouble at once are one try.
    pub fn tried(&mut self, why: String, now: Timestamp) {
        if self.is_due(now) {
            self.tries = self.tries.saturating_add(1);
            let wait = WAIT_MIN.saturating_mul(1 << self.tries.saturating_sub(1).min(6)).min(WAIT_MAX);
            (self.why, self.next_try) = (why, now + wait);
        }
        self.tried_at = now;
    }

    /// Whether it is time to try again. A wait that no rule asks for comes from a clock that was set back.
    pub fn is_due(&self, now: Timestamp) -> bool {
        now >= self.next_try || self.next_try > now + WAIT_MAX
    }

    /// Whether nobody met the trouble although it was time to try for so long that a job that began then, and came to an end,
    /// need not prove that it is over: what is in its way is looked for by all jobs again.
    pub fn is_past_for(&self, begun_at: Timestamp) -> bool {
        begun_at >= self.next_try + WAIT_MAX
    }

    /// Whether a job that began then, and came to an end, proves that the trouble is over.
    pub fn is_over_for(&self, begun_at: Timestamp) -> bool {
        begun_at >= self.tried_at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(secs: i64) -> Timestamp {
        Timestamp::from_millis(secs * 1_000)
    }

    fn hold() -> Hold {
        Hold::new("p".parse().expect("a name"), "no command".into(), at(0))
    }

    #[test]
    fn waits_double_up_to_a_minute() {
        let mut hold = hold();
        let mut waits = vec![1];
        for _ in 0..8 {
            let now = hold.next_try;
            hold.tried("no command".into(), now);
            waits.push(hold.next_try.since(now).as_secs());
        }
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 60, 60, 60]);
        assert_eq!((hold.tries, hold.since), (9, at(0)));
    }

    #[test]
    fn what_met_the_trouble_at_the_same_time_is_one_try() {
        let mut hold = hold();
        hold.tried("no command".into(), at(0));
        hold.tried("no command".into(), at(0));
        assert_eq!((hold.tries, hold.next_try), (1, at(1)));
        assert!(!hold.is_due(at(0)) && hold.is_due(at(1)));
    }

    #[test]
    fn a_clock_that_was_set_back_holds_nothing_for_long() {
        assert!(Hold { next_try: at(9_000), ..hold() }.is_due(at(1)));
    }

    #[test]
    fn trouble_that_nobody_meets_for_long_is_past() {
        assert!(!hold().is_past_for(at(60)));
        assert!(hold().is_past_for(at(61)));
    }

    #[test]
    fn only_what_began_afterwards_proves_that_it_is_over() {
        assert!(!hold().is_over_for(at(-1)));
        assert!(hold().is_over_for(at(2)));
    }
}
