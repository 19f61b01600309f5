//! The clock: what it showed when somebody last looked, and what is to be mended after it was set back.

use std::time::Duration;

use async_trait::async_trait;
use redrive_core::clock::{ClockSeen, Uptime};
use redrive_core::ids::PipelineName;
use redrive_core::retry::RetryPolicy;
use redrive_core::time::Timestamp;

use crate::error::Result;

/// The clock.
#[async_trait]
pub trait ClockStore {
    /// Takes in a look at the clock, as `redrive_core::clock` decides, and keeps it for who looks next, in whatever process.
    async fn look_at_clock(&self, params: LookAtClock) -> Result<LookedAtClock>;

    /// What time it is where the store is, if that is a machine of its own: all who share it go by its clock.
    async fn server_time(&self) -> Result<Option<Timestamp>>;

    /// Pulls in due times of a pipeline's queued jobs that are further away than any wait they can have been given, and leases
    /// that last longer than a lease does; says how many jobs. At most a bounded number at once.
    async fn mend_due_times(&self, params: MendDueTimes) -> Result<u64>;
}

/// A look at the clock.
#[derive(Clone, Debug)]
pub struct LookAtClock {
    /// The time.
    pub now: Timestamp,
    /// How long the machine has been running, if that is known.
    pub uptime: Option<Uptime>,
}

/// What a look found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LookedAtClock {
    /// The clock as it was seen.
    pub seen: ClockSeen,
    /// By how much it jumped ahead since the look before, if it did.
    pub jumped: Option<Duration>,
}

/// Asks for due times to be mended.
#[derive(Clone, Debug)]
pub struct MendDueTimes {
    /// The pipeline.
    pub pipeline: PipelineName,
    /// How long its jobs may have to wait.
    pub retry: RetryPolicy,
    /// How long a lease lasts.
    pub lease: Duration,
    /// At most so many jobs.
    pub limit: u32,
    /// The time.
    pub now: Timestamp,
}
