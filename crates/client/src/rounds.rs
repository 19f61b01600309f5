//! Rounds: repetitions of the same tasks.

use redrive::Error;
use redrive::contract::RoundView;
use redrive_core::ids::PipelineName;
use serde_json::json;

use crate::desk::Desk;
use crate::page::{fields, up_to};

impl Desk {
    /// See [`redrive::Redrive::rounds`].
    pub async fn rounds(&self, pipeline: Option<&PipelineName>, limit: u32) -> Result<Vec<RoundView>, Error> {
        match self {
            Self::Here(redrive) => redrive.rounds(pipeline, limit).await,
            Self::There(server) => {
                let asked = fields(json!({ "pipeline": pipeline }));
                Ok(up_to(limit, server, &["rounds"], asked).await?.items)
            }
        }
    }
}
