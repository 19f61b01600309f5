//! What to make of a clock that jumps. A clock that was wrong and is set right looks as if days had passed: whatever is thrown
//! away by age must not believe it at once.
//!
//! Each look at the clock is compared with the one before. Where the machine has run on, its uptime says how much time really
//! passed; where it was started anew, a gap of more than a day might be a jump as well as a rest, and is taken for a jump. On a
//! machine that is started now and then every start has such a gap: the wait goes on through them, by the time that it ran.

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
    /// By how much the clock went ahead of the uptime in steps that were too small to be jumps, in milliseconds.
    #[serde(default)]
    pub astray_millis: u64,
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
        let Some(seen) = seen else { return (Self { at: now, uptime, wait: None, astray_millis: 0 }, None) };
        let passed = match (&seen.uptime, &uptime) {
            (Some(then), Some(now)) if then.boot == now.boot => {
                Some(Duration::from_millis(now.millis.saturating_sub(then.millis)))
            }
            _ => None,
        };
        let ahead = now.since(seen.at);
        // Several small jumps are a large one, if the uptime tells that no time passed.
        let step = passed.map(|passed| ahead.saturating_sub(passed)).filter(|step| *step > UNEVEN_MAX);
        let astray_millis = seen.astray_millis.saturating_add(step.map_or(0, millis));
        let is_jump = ahead.saturating_sub(passed.unwrap_or_default()) > ASTRAY_MAX;
        if is_jump || astray_millis > millis(ASTRAY_MAX) {
            let astray_millis = 0;
            if let Some(wait) = seen.wait.and_then(|wait| wait.through_start(seen.uptime.as_ref(), uptime.as_ref())) {
                return (Self { at: now, uptime, wait: Some(wait), astray_millis }, None);
            }
            if let (Some(_), true) = (seen.wait, started_anew(seen.uptime.as_ref(), uptime.as_ref())) {
                // The wait is over: the time before this start is believed now, the gap is not yet.
                let wait = JumpWait { before: seen.at, left_millis: millis(WAIT) };
                return (Self { at: now, uptime, wait: Some(wait), astray_millis }, Some(ahead));
            }
            // During a wait the older of the two times holds: a clock may be set right in several steps.
            let before = seen.at - Duration::from_millis(seen.astray_millis);
            let before = seen.wait.map_or(before, |wait| wait.before.min(before));
            let wait = JumpWait { before, left_millis: millis(WAIT) };
            return (Self { at: now, uptime, wait: Some(wait), astray_millis }, Some(ahead));
        }
        let wait = seen.wait.map(|wait| JumpWait {
            left_millis: wait.left_millis.saturating_sub(millis(passed.unwrap_or(ahead))),
            ..wait
        });
        (Self { at: now, uptime, wait: wait.filter(|wait| wait.left_millis > 0), astray_millis }, None)
    }

    /// The time by which things expire: that of the look, or that before a jump. Small steps ahead are not believed either.
    pub fn expires_by(&self) -> Timestamp {
        let steady = self.at - Duration::from_millis(self.astray_millis);
        self.wait.map_or(steady, |wait| wait.before.min(steady))
    }
}

impl JumpWait {
    /// The wait after the machine was started anew: what it has been running since then counts. Nothing if that ends it.
    fn through_start(self, then: Option<&Uptime>, now: Option<&Uptime>) -> Option<Self> {
        let ran = now.filter(|_| started_anew(then, now))?.millis;
        let left_millis = self.left_millis.saturating_sub(ran);
        (left_millis > 0).then_some(Self { left_millis, ..self })
    }
}

/// Whether the machine is known to have been started between two looks.
fn started_anew(then: Option<&Uptime>, now: Option<&Uptime>) -> bool {
    then.zip(now).is_some_and(|(then, now)| then.boot != now.boot)
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// By how much the clock was set back since something was noted at a time, if it was.
pub fn set_back(noted: Timestamp, now: Timestamp) -> Option<Duration> {
    Some(noted.since(now)).filter(|back| *back > UNEVEN_MAX)
}

/// A look at the clock of another machine: what it showed, and when it was asked and answered by a time of our own that only goes forward.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// When it was asked.
    pub asked: Duration,
    /// When it answered.
    pub answered: Duration,
    /// What it showed in between.
    pub showed: Timestamp,
}

/// Where the clock of another machine is, seen from a time of our own that only goes forward.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bearing {
    /// What it showed.
    showed: Timestamp,
    /// When, by our own.
    at: Duration,
    /// By how much it may differ.
    pub error: Duration,
}

impl Bearing {
    /// Takes the best of some looks: the one that was answered soonest.
    pub fn of(samples: impl IntoIterator<Item = Sample>) -> Option<Self> {
        let trip = |sample: &Sample| sample.answered.saturating_sub(sample.asked);
        let best = samples.into_iter().min_by_key(trip)?;
        let error = trip(&best) / 2;
        Some(Self { showed: best.showed, at: best.asked + error, error })
    }

    /// What it shows at a time of our own.
    pub fn now(&self, at: Duration) -> Timestamp {
        match at.checked_sub(self.at) {
            Some(later) => self.showed + later,
            None => self.showed - self.at.saturating_sub(at),
        }
    }

    /// How long after a time something is certain to be later than it for everybody who goes by the same clock.
    pub fn grace(&self) -> Duration {
        self.error * 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: i64 = 86_400;

    #[test]
    fn the_clock_of_another_machine_is_taken_from_the_look_that_was_answered_soonest() {
        let millis = Duration::from_millis;
        let sample =
            |asked, answered, showed| Sample { asked: millis(asked), answered: millis(answered), showed: at(showed) };
        let samples = [sample(0, 900, 600), sample(1_000, 1_020, 601), sample(2_000, 2_400, 603)];
        let bearing = Bearing::of(samples).expect("some");
        assert_eq!((bearing.error, bearing.grace()), (millis(10), millis(20)));
        assert_eq!(bearing.now(millis(1_010)), at(601));
        assert_eq!(bearing.now(millis(61_010)), at(661));
        assert_eq!(bearing.now(millis(10)), at(600), "before that, too");
        assert_eq!(Bearing::of([]), None);
    }

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
    fn a_machine_that_is_started_once_a_week_expires_things_in_the_end() {
        // Four hours of work each Monday, looked at every hour.
        let monday =
            |week: i64| (0..=4).map(move |hour| (week * 7 * DAY + hour * 3_600, up(&week.to_string(), hour * 3_600)));
        let weeks = |weeks: i64| looks(&(0..weeks).flat_map(monday).collect::<Vec<_>>());
        assert_eq!(weeks(6), 4 * 3_600, "a day of work is not over");
        assert!(weeks(9) > 5 * 7 * DAY, "then what was before is believed: {}", weeks(9) / DAY);
        assert!(weeks(60) > 52 * 7 * DAY, "and it goes on so: {}", weeks(60) / DAY);
        let once = |week: i64| (week * 7 * DAY, up(&week.to_string(), 4 * 3_600));
        assert!(looks(&(0..60).map(once).collect::<Vec<_>>()) > 50 * 7 * DAY, "also if it is looked at once each time");
    }

    #[test]
    fn a_jump_while_the_machine_runs_begins_the_wait_anew() {
        let mut all = vec![(0, up("a", 0)), (7 * DAY, up("b", 60)), (7 * DAY + 72_000, up("b", 72_060))];
        all.push((60 * DAY, up("b", 72_120)));
        all.push((60 * DAY + 72_000, up("b", 144_120)));
        assert_eq!(looks(&all), 0);
    }

    #[test]
    fn a_clock_that_is_set_right_in_two_steps_goes_by_the_time_before_both() {
        assert_eq!(looks(&[(-900 * DAY, None), (-400 * DAY, None), (0, None)]), -900 * DAY);
    }

    #[test]
    fn three_jumps_within_seconds_expire_nothing() {
        for step in [DAY - 3_600, 20 * DAY] {
            let jumps = (0..4).map(|n| (n * step, up("a", n)));
            assert!(looks(&jumps.collect::<Vec<_>>()) <= 3, "{step} s each");
        }
        let forth_and_back = [(0, up("a", 0)), (20 * DAY, up("a", 1)), (2, up("a", 2)), (20 * DAY, up("a", 3))];
        assert!(looks(&forth_and_back) <= 3);
    }

    #[test]
    fn corrections_of_a_clock_add_up_to_a_wait_of_a_day_at_most() {
        // A minute ahead each day for years.
        let days = (0..2_000).map(|day| (day * (DAY + 60), up("a", day * DAY)));
        let by = looks(&days.collect::<Vec<_>>());
        assert!(by > 1_997 * DAY, "{} days", by / DAY);
    }

    #[test]
    fn an_excursion_into_the_future_expires_nothing() {
        assert_eq!(looks(&[(0, None), (45 * DAY, None)]), 0);
        assert_eq!(looks(&[(0, None), (45 * DAY, None), (60, None)]), 0);
        assert_eq!(looks(&[(0, None), (-45 * DAY, None)]), -45 * DAY, "an older time discards less");
    }
}
