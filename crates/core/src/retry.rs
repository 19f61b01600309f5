//! How long to wait before the next attempt: exponential, capped, with jitter on top, never less than the target asked for.

use std::time::Duration;

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
        Self { attempts_max: 4, attempts_total_max: 6, base: Duration::from_secs(1), cap: Duration::from_secs(300) }
    }
}

impl RetryPolicy {
    /// The same with so many attempts per run; the total allows at least as many.
    pub const fn with_attempts(mut self, attempts: u32) -> Self {
        self.attempts_max = attempts;
        if self.attempts_total_max < attempts {
            self.attempts_total_max = attempts;
        }
        self
    }

    /// The wait after the `failed`-th failed attempt (from 1). `chance` in `[0, 1)` adds up to half the delay; the
    /// result is never below `retry_after`.
    pub fn delay(&self, failed: u32, retry_after: Option<Duration>, chance: f64) -> Duration {
        let doublings = failed.saturating_sub(1).min(31);
        let delay = self.base.saturating_mul(1 << doublings).min(self.cap);
        let jittered = delay + delay.mul_f64(chance.clamp(0.0, 1.0) / 2.0);
        jittered.max(retry_after.unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn doubles_from_the_base_up_to_the_cap() {
        let policy = RetryPolicy::default();
        let waits: Vec<u64> = (1..=10).map(|n| policy.delay(n, None, 0.0).as_secs()).collect();
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 64, 128, 256, 300]);
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
