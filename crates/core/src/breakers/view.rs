//! Breakers as lists show them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Breaker;
use crate::ids::PipelineName;

/// The breaker of a pipeline and target.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct BreakerView {
    /// The pipeline.
    pub pipeline: PipelineName,
    /// The target.
    pub target: String,
    /// Jobs that wait for it.
    pub held: u64,
    /// Those of them that replays sent.
    pub held_of_replays: u64,
    /// Its state.
    #[serde(flatten)]
    pub breaker: Breaker,
}
