//! How many jobs to lease ahead: enough to keep every slot busy, not so many that other workers go hungry.

use std::time::Duration;

/// How much work the local queue should hold.
const AHEAD: Duration = Duration::from_millis(300);

/// At most so many jobs are leased ahead.
const AHEAD_MAX: f64 = 256.0;

/// The pace of a pipeline's jobs on this worker.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pace {
    mean_secs: Option<f64>,
}

impl Pace {
    /// Takes in how long a job ran.
    pub(super) fn note(&mut self, duration: Duration) {
        let secs = duration.as_secs_f64();
        self.mean_secs = Some(self.mean_secs.map_or(secs, |mean| mean * 0.9 + secs * 0.1));
    }

    /// How many jobs should wait in the local queue.
    pub(super) fn ahead(self, concurrency: usize) -> usize {
        let Some(mean) = self.mean_secs else { return concurrency };
        let busy = concurrency as f64 * AHEAD.as_secs_f64() / mean.max(0.000_1);
        busy.clamp(1.0, AHEAD_MAX.max(concurrency as f64)).round() as usize
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
}
