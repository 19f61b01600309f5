//! Breakers: which targets' jobs wait, and until when.

use async_trait::async_trait;
use redrive_core::breakers::Breaker;
use redrive_core::ids::PipelineName;
use serde::Serialize;

use crate::error::Result;

/// The breakers of targets that gave trouble.
#[async_trait]
pub trait BreakerStore {
    /// The breakers that are not closed, or hold jobs still.
    async fn list_breakers(&self) -> Result<Vec<BreakerView>>;
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
