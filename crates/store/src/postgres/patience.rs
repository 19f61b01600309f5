//! Waiting for a server that does not answer, longer each time.

use std::hash::{BuildHasher, RandomState};
use std::time::{Duration, Instant};

/// For how long it is waited for.
const PATIENCE: Duration = Duration::from_secs(30);

/// The first and the longest rest.
const RESTS: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(5));

/// How long somebody has waited, since something first went wrong.
pub(super) struct Patience {
    since: Option<Instant>,
    rest: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self { since: None, rest: RESTS.0 }
    }
}

impl Patience {
    /// Rests; says whether it is worth another try.
    pub(super) async fn rest(&mut self) -> bool {
        let since = *self.since.get_or_insert_with(Instant::now);
        if since.elapsed() >= PATIENCE {
            return false;
        }
        // Those who lost the same server do not all come back at the same moment.
        let uneven = RandomState::new().hash_one(since) % 512;
        tokio::time::sleep(self.rest.mul_f64(0.5 + uneven as f64 / 512.0)).await;
        self.rest = (self.rest * 2).min(RESTS.1);
        true
    }
}
