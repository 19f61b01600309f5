//! How long to wait before the next attempt: exponential, capped, with jitter on top, never less than the target asked for.

use std::time::Duration;

use crate::clock;
use crate::time::Timestamp;

/// When and how often a failed job is tried again.
#[derive(Clone, Debug, PartialEq)]
pub struct RetryPolicy {
    /// Attempts before the job is buried, per run through the pipeline.
    pub attempts_max: u32,
    /// Attempts over all replays, after which a dead letter's gate is `never`.
    pub attempts_total_max: u32,
    /// The wait after the first failed attempt; it doubles with each further one.
    pub base: Duration,
    /// The longest wait, before jitter.
    pub cap: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            attempts_max: 4,
            attempts_total_max: Self::DEFAULT_ATTEMPTS_TOTAL_MAX,
            base: Duration::from_secs(1),
            cap: Duration::from_secs(300),
        }
    }
}

impl RetryPolicy {
    /// Attempts over all replays, unless a pipeline says otherwise.
    pub const DEFAULT_ATTEMPTS_TOTAL_MAX: u32 = 6;

    /// The same with so many attempts per run. The total leaves as much room for replays as before: a letter that used all its
    /// attempts must not be beyond replaying without anybody having said so.
    pub const fn with_attempts(mut self, attempts: u32) -> Self {
        let room = self.attempts_total_max.saturating_sub(self.attempts_max);
        self.attempts_max = attempts;
        if self.attempts_total_max < attempts.saturating_add(room) {
            self.attempts_total_max = attempts.saturating_add(room);
        }
        self
    }

    /// Says what is wrong with it, if more attempts are allowed per run than over all replays: the rest could never be made.
    pub fn contradiction(&self) -> Option<String> {
        let Self { attempts_max, attempts_total_max, .. } = self;
        (attempts_max > attempts_total_max).then(|| {
            format!(
                "retry.attempts ({attempts_max}) is more than retry.attempts_total ({attempts_total_max}), which counts over \
                 all replays: raise the total, or lower the attempts"
            )
        })
    }

    /// The wait after the `failed`-th failed attempt (from 1). `chance` in `[0, 1)` adds up to half the delay; the
    /// result is never below `retry_after`.
    pub fn delay(&self, failed: u32, retry_after: Option<Duration>, chance: f64) -> Duration {
        let doublings = failed.saturating_sub(1).min(31);
        let delay = self.base.saturating_mul(1 << doublings).min(self.cap.max(self.base));
        let jittered = delay + delay.mul_f64(chance.clamp(0.0, 1.0) / 2.0);
        jittered.max(retry_after.unwrap_or_default())
    }
}

/// A job that waits in the queue, as far as its due time can be judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queued {
    /// When it is due.
    pub due_at: Timestamp,
    /// When it was accepted with that due time, if it was never tried.
    pub asked_at: Option<Timestamp>,
    /// How long its target asked it to wait, if it did.
    pub retry_after: Option<Duration>,
}

impl RetryPolicy {
    /// The longest wait that it gives by itself.
    pub fn longest(&self) -> Duration {
        self.cap.max(self.base).mul_f64(1.5)
    }

    /// When a queued job is due instead, if its due time is further away than any wait it can have been given: the clock was
    /// ahead when it was given. A wait that its target asked for begins anew; one that was asked for with the job is kept.
    pub fn due_instead(&self, queued: &Queued, now: Timestamp) -> Option<Timestamp> {
        let Queued { due_at, asked_at, retry_after } = *queued;
        if let Some(asked_at) = asked_at {
            return clock::set_back(asked_at, now).map(|back| due_at - back);
        }
        let asked = retry_after.unwrap_or_default();
        (due_at.since(now) > self.longest().max(asked)).then(|| now + asked)
    }
}

/// The wait that a `Retry-After` header asks for: seconds, or a date.
pub fn retry_after(header: &str, now: Timestamp) -> Option<Duration> {
    let header = header.trim();
    if let Ok(secs) = header.parse::<f64>() {
        return (secs.is_finite() && secs >= 0.0).then(|| Duration::from_secs_f64(secs.min(WAIT_SECS_MAX)));
    }
    let date = jiff::fmt::rfc2822::parse(header).ok()?;
    Some(Timestamp::from_millis(date.timestamp().as_millisecond()).since(now))
}

/// No wait that is asked for is longer than this: ten years.
const WAIT_SECS_MAX: f64 = 315_576_000.0;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn more_attempts_leave_room_for_replays() {
        let total = |attempts| RetryPolicy::default().with_attempts(attempts).attempts_total_max;
        assert_eq!((total(1), total(4), total(5), total(9)), (6, 6, 7, 11));
        let none = RetryPolicy { attempts_total_max: 4, ..RetryPolicy::default() };
        assert_eq!(none.with_attempts(9).attempts_total_max, 9, "somebody wanted no replays");
        assert_eq!(RetryPolicy::default().contradiction(), None);
        let wrong = RetryPolicy { attempts_total_max: 3, ..RetryPolicy::default() }.contradiction().expect("wrong");
        assert!(wrong.contains("retry.attempts (4) is more than retry.attempts_total (3)"), "{wrong}");
    }

    #[test]
    fn doubles_from_the_base_up_to_the_cap() {
        let policy = RetryPolicy::default();
        let waits: Vec<u64> = (1..=10).map(|n| policy.delay(n, None, 0.0).as_secs()).collect();
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 64, 128, 256, 300]);
    }

    #[test]
    fn a_due_time_that_no_wait_can_explain_is_pulled_in() {
        let (policy, hours) = (RetryPolicy::default(), |hours: u64| Duration::from_secs(hours * 3_600));
        let now = Timestamp::from_millis(1_700_000_000_000);
        let queued = |due_at| Queued { due_at, asked_at: None, retry_after: None };
        let due = |queued: Queued| policy.due_instead(&queued, now);
        assert_eq!(due(queued(now + hours(3))), Some(now));
        assert_eq!(due(queued(now + Duration::from_secs(450))), None, "the cap, with jitter");
        let asked = Queued { retry_after: Some(hours(2)), ..queued(now + hours(3)) };
        assert_eq!(due(asked), Some(now + hours(2)), "the target's wait is honoured");
        assert_eq!(due(Queued { due_at: now + hours(2), ..asked }), None);
        let scheduled = Queued { asked_at: Some(now), ..queued(now + hours(48)) };
        assert_eq!(due(scheduled), None, "it was asked for");
        assert_eq!(due(Queued { asked_at: Some(now + hours(3)), ..queued(now + hours(3)) }), Some(now));
    }

    #[test]
    fn headers() {
        let now: Timestamp = "2026-11-15T14:02:00Z".parse().expect("a time");
        assert_eq!(retry_after(" 120 ", now), Some(Duration::from_secs(120)));
        assert_eq!(retry_after("Sun, 15 Nov 2026 14:03:30 GMT", now), Some(Duration::from_secs(90)));
        assert_eq!(retry_after("Sun, 15 Nov 2020 14:03:30 GMT", now), Some(Duration::ZERO));
        for nonsense in ["", "soon", "-5", "NaN"] {
            assert_eq!(retry_after(nonsense, now), None, "{nonsense:?}");
        }
    }

    proptest! {
        #[test]
        fn stays_between_the_delay_and_half_more(failed in 0u32..200, chance in 0.0f64..1.0, asked in 0u64..1_000) {
            let policy = RetryPolicy::default();
            let plain = policy.delay(failed, None, 0.0);
            let jittered = policy.delay(failed, None, chance);
            prop_assert!(plain <= jittered && jittered <= plain.mul_f64(1.5));
            let asked = Duration::from_secs(asked);
            prop_assert_eq!(policy.delay(failed, Some(asked), chance), jittered.max(asked));
        }
    }
}
