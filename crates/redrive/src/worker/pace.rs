//! How many jobs to lease ahead: enough to keep every slot busy, not so many that other workers go hungry. And how many of them
//! to announce before their turn.

use std::time::Duration;

/// How much work the local queue should hold.
const AHEAD: Duration = Duration::from_millis(300);

/// At most so many jobs are leased ahead.
const AHEAD_MAX: f64 = 256.0;

/// What begins within that time is announced together.
const SOON: Duration = Duration::from_millis(5);

/// At most so many jobs are announced before it is their turn, or as many as run at once.
const SOON_MAX: f64 = 64.0;

/// The pace of a pipeline's jobs on this worker.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pace {
    mean_secs: Option<f64>,
}

impl Pace {
    /// Takes in how long a job ran.
    pub fn note(&mut self, duration: Duration) {
        let secs = duration.as_secs_f64();
        self.mean_secs = Some(self.mean_secs.map_or(secs, |mean| mean * 0.9 + secs * 0.1));
    }

    /// How many jobs should wait in the local queue.
    pub fn ahead(self, concurrency: usize) -> usize {
        let Some(mean) = self.mean_secs else { return concurrency };
        let busy = concurrency as f64 * AHEAD.as_secs_f64() / mean.max(0.000_1);
        busy.clamp(1.0, AHEAD_MAX.max(concurrency as f64)).round() as usize
    }

    /// How many jobs of the local queue begin within moments; none if they take longer than that.
    pub(super) fn soon(self, concurrency: usize) -> usize {
        let Some(mean) = self.mean_secs.filter(|mean| *mean < SOON.as_secs_f64()) else { return 0 };
        let soon = concurrency as f64 * SOON.as_secs_f64() / mean.max(0.000_01);
        soon.min(SOON_MAX.max(concurrency as f64)).round() as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quick_jobs_are_leased_far_ahead_and_slow_ones_barely() {
        let after = |duration| {
            let mut pace = Pace::default();
            pace.note(duration);
            pace.ahead(8)
        };
        assert_eq!(Pace::default().ahead(8), 8);
        assert_eq!(after(Duration::ZERO), 256);
        assert_eq!(after(Duration::from_millis(100)), 24);
        assert_eq!(after(Duration::from_secs(60)), 1);
    }

    #[test]
    fn only_quick_jobs_are_announced_before_their_turn_and_few_of_them() {
        let after = |duration, concurrency| {
            let mut pace = Pace::default();
            pace.note(duration);
            pace.soon(concurrency)
        };
        assert_eq!(Pace::default().soon(8), 0, "nothing is known");
        assert_eq!(after(Duration::from_millis(5), 8), 0);
        assert_eq!(after(Duration::from_millis(4), 8), 10);
        assert_eq!(after(Duration::from_micros(50), 2), 64);
        assert_eq!(after(Duration::from_micros(50), 200), 200);
    }
}
