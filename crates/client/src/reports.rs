//! Reports: what fails, where, when, since when.

use redrive::Error;
use redrive::report::Report;
use redrive_core::ids::PipelineName;
use redrive_core::time::Timestamp;
use serde_json::json;

use crate::ask::LONG;
use crate::desk::Desk;
use crate::page::fields;

impl Desk {
    /// See [`redrive::Redrive::report`].
    pub async fn report(&self, since: Timestamp, pipeline: Option<&PipelineName>) -> Result<Report, Error> {
        match self {
            Self::Here(redrive) => redrive.report(since, pipeline).await,
            Self::There(server) => {
                let asked = fields(json!({ "since": since, "pipeline": pipeline }));
                server.get(&["reports"]).query(asked).within(Some(LONG)).read().await
            }
        }
    }
}
