//! Waiting for a server that does not answer, longer each time.

use std::hash::{BuildHasher, RandomState};
use std::time::{Duration, Instant};

use super::fault::Fault;

/// For how long others are waited for that are in the way.
const CROSSED_MAX: Duration = Duration::from_secs(30);

/// The first and the longest rest.
const RESTS: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(5));

/// How long somebody has waited, since something first went wrong.
pub(super) struct Patience {
    since: Option<Instant>,
    rest: Duration,
    limit: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self::of(CROSSED_MAX)
    }
}

impl Patience {
    /// Somebody who waits for a server for so long.
    pub(super) const fn of(limit: Duration) -> Self {
        Self { since: None, rest: RESTS.0, limit }
    }

    /// Whether it was waited for long enough after this.
    pub(super) fn is_over_for(&self, fault: &Fault) -> bool {
        let limit = if fault.is_crossed() { CROSSED_MAX } else { self.limit };
        self.since.map_or(Duration::ZERO, |since| since.elapsed()) >= limit
    }

    /// Rests after something that may be over then; says whether it is worth another try.
    pub(super) async fn rest_after(&mut self, fault: &Fault) -> bool {
        let passes = (fault.is_lost() || fault.is_crossed()) && !self.is_over_for(fault);
        if passes {
            self.rest().await;
        }
        passes
    }

    /// Rests, longer each time.
    pub(super) async fn rest(&mut self) {
        let since = *self.since.get_or_insert_with(Instant::now);
        // Those who lost the same server do not all come back at the same moment.
        let uneven = RandomState::new().hash_one(since) % 512;
        tokio::time::sleep(self.rest.mul_f64(0.5 + uneven as f64 / 512.0)).await;
        self.rest = (self.rest * 2).min(RESTS.1);
    }
}
