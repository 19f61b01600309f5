//! What to make of a clock that jumps. A clock that was wrong and is set right looks as if days had passed: whatever is thrown
//! away by age must not believe it at once.
//!
//! Each look at the clock is compared with the one before. Where the machine has run on, its uptime says how much time really
//! passed; where it was started anew, a gap of more than a day might be a jump as well as a rest, and is taken for a jump.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::time::Timestamp;

/// How far the clock may go astray between two looks before it is not believed.
const ASTRAY_MAX: Duration = Duration::from_secs(86_400);

/// How long nothing expires by the new time after a jump.
pub const WAIT: Duration = Duration::from_secs(86_400);

/// By how much times of this process and others may differ without a clock having been set back.
pub const UNEVEN_MAX: Duration = Duration::from_secs(5);

/// How long the machine has been running. It goes on whatever is done to the clock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Uptime {
    /// Which start of the machine it is counted from.
    pub boot: String,
    /// Milliseconds since then.
    pub millis: u64,
}

/// What the last look at the clock found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockSeen {
    /// What time it was.
    pub at: Timestamp,
    /// How long the machine had been running, if that is known.
    pub uptime: Option<Uptime>,
    /// The wait after a jump, while it lasts.
    pub wait: Option<JumpWait>,
}

/// A wait after a jump.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JumpWait {
    /// The time before the jump: what is thrown away by age goes by it.
    pub before: Timestamp,
    /// What is left of the wait, in milliseconds that the clock went on without jumping.
    pub left_millis: u64,
}

impl ClockSeen {
    /// Takes in another look; says by how much the clock jumped ahead, if it did.
    pub fn look(seen: Option<Self>, now: Timestamp, uptime: Option<Uptime>) -> (Self, Option<Duration>) {
        let Some(seen) = seen else { return (Self { at: now, uptime, wait: None }, None) };
        let passed = match (&seen.uptime, &uptime) {
            (Some(then), Some(now)) if then.boot == now.boot => {
                Some(Duration::from_millis(now.millis.saturating_sub(then.millis)))
            }
            _ => None,
        };
        let ahead = now.since(seen.at);
        if ahead.saturating_sub(passed.unwrap_or_default()) > ASTRAY_MAX {
            // During a wait the older of the two times holds: a clock may be set right in several steps.
            let before = seen.wait.map_or(seen.at, |wait| wait.before.min(seen.at));
            let wait = JumpWait { before, left_millis: millis(WAIT) };
            return (Self { at: now, uptime, wait: Some(wait) }, Some(ahead));
        }
        let wait = seen.wait.map(|wait| JumpWait {
            left_millis: wait.left_millis.saturating_sub(millis(passed.unwrap_or(ahead))),
            ..wait
        });
        (Self { at: now, uptime, wait: wait.filter(|wait| wait.left_millis > 0) }, None)
    }

    /// The time by which things expire: that of the look, or that before a jump.
    pub fn expires_by(&self) -> Timestamp {
        self.wait.map_or(self.at, |wait| wait.before.min(self.at))
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// By how much the clock was set back since something was noted at a time, if it was.
pub fn set_back(noted: Timestamp, now: Timestamp) -> Option<Duration> {
    Some(noted.since(now)).filter(|back| *back > UNEVEN_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: i64 = 86_400;

    const fn at(secs: i64) -> Timestamp {
        Timestamp::from_millis(1_700_000_000_000 + secs * 1_000)
    }

    fn up(boot: &str, secs: i64) -> Option<Uptime> {
        Some(Uptime { boot: boot.to_owned(), millis: u64::try_from(secs).unwrap_or(0) * 1_000 })
    }

    /// Looks again and again; gives the time by which things expire after the last look.
    fn looks(all: &[(i64, Option<Uptime>)]) -> i64 {
        let mut seen = None;
        for (secs, uptime) in all {
            seen = Some(ClockSeen::look(seen, at(*secs), uptime.clone()).0);
        }
        let by = seen.expect("a look").expires_by();
        (by.as_millis() - at(0).as_millis()) / 1_000
    }

    #[test]
    fn a_clock_that_is_set_right_is_not_believed_for_a_day() {
        let (behind, right) = (-45 * DAY, 60);
        assert_eq!(looks(&[(behind, None), (right, None)]), behind);
        assert_eq!(looks(&[(behind, up("a", 0)), (right, up("a", 60))]), behind, "the uptime says so");
        let mut all = vec![(behind, None), (right, None)];
        all.extend((1..=23).map(|hour| (right + hour * 3_600, None)));
        assert_eq!(looks(&all), behind);
        all.push((right + DAY, None));
        assert_eq!(looks(&all), right + DAY, "after a day it is");
    }

    #[test]
    fn a_rest_of_a_week_is_believed_if_the_machine_ran_on() {
        assert_eq!(looks(&[(0, up("a", 0)), (7 * DAY, up("a", 7 * DAY))]), 7 * DAY);
        assert_eq!(looks(&[(0, up("a", 0)), (7 * DAY, up("b", 5))]), 0, "it may have been off, or its clock wrong");
        assert_eq!(looks(&[(0, up("a", 0)), (7 * DAY, up("b", 5)), (9 * DAY, up("b", 5 + 2 * DAY))]), 9 * DAY);
    }

    #[test]
    fn a_clock_that_is_set_right_in_two_steps_goes_by_the_time_before_both() {
        assert_eq!(looks(&[(-900 * DAY, None), (-400 * DAY, None), (0, None)]), -900 * DAY);
    }

    #[test]
    fn an_excursion_into_the_future_expires_nothing() {
        assert_eq!(looks(&[(0, None), (45 * DAY, None)]), 0);
        assert_eq!(looks(&[(0, None), (45 * DAY, None), (60, None)]), 0);
        assert_eq!(looks(&[(0, None), (-45 * DAY, None)]), -45 * DAY, "an older time discards less");
    }
}
