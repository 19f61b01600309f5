//! Breakers: which targets' jobs wait, and until when.

use async_trait::async_trait;
use redrive_core::breakers::{Breaker, BreakerPolicy};
use redrive_core::ids::PipelineName;
use redrive_core::time::Timestamp;
use serde::Serialize;

use crate::error::Result;

/// The breakers of targets that gave trouble.
#[async_trait]
pub trait BreakerStore {
    /// The breakers that are not closed, or hold jobs still.
    async fn list_breakers(&self) -> Result<Vec<BreakerView>>;

    /// Forgets the breakers of a pipeline that are closed and whose window is long over; says how many.
    async fn sweep_breakers(&self, params: SweepBreakers) -> Result<u64>;
}

/// Asks for old breakers to be forgotten.
#[derive(Clone, Debug)]
pub struct SweepBreakers {
    /// The pipeline.
    pub pipeline: PipelineName,
    /// How its breakers are to be read.
    pub policy: BreakerPolicy,
    /// The time.
    pub now: Timestamp,
}

/// The breaker of a pipeline and target.
#[derive(Clone, Debug, Serialize)]
pub struct BreakerView {
    /// The pipeline.
    pub pipeline: PipelineName,
    /// The target.
    pub target: String,
    /// Jobs that wait for it.
    pub held: u64,
    /// Its state.
    #[serde(flatten)]
    pub breaker: Breaker,
}
