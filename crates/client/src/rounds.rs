//! Rounds: repetitions of the same tasks.

use redrive::Error;
use redrive::contract::RoundView;
use redrive_core::ids::PipelineName;
use serde_json::json;

use crate::desk::Desk;
use crate::page::{Listed, fields};

/// The most rounds that a server gives.
const AT_ONCE: u32 = 1_000;

impl Desk {
    /// See [`redrive::Redrive::rounds`]. A server gives a thousand at most.
    pub async fn rounds(&self, pipeline: Option<&PipelineName>, limit: u32) -> Result<Vec<RoundView>, Error> {
        match self {
            Self::Here(redrive) => redrive.rounds(pipeline, limit).await,
            Self::There(server) => {
                let asked = fields(json!({ "pipeline": pipeline, "limit": limit.min(AT_ONCE) }));
                Ok(server.get(&["rounds"]).query(asked).read::<Listed<_>>().await?.items)
            }
        }
    }
}
