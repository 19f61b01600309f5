//! Results that the store keeps.

use redrive::Error;
use redrive::contract::{ListResults, Page};
use redrive_core::results::JobResult;
use serde_json::json;

use crate::desk::Desk;
use crate::page::{fields, page};

impl Desk {
    /// Lists a page of results, the oldest first.
    pub async fn list_results(&self, params: ListResults) -> Result<Page<JobResult>, Error> {
        let server = match self {
            Self::Here(redrive) => return Ok(redrive.store().list_results(params).await?),
            Self::There(server) => server,
        };
        let ListResults { pipeline, round, since, until, limit, cursor } = params;
        page(limit, cursor, async |limit, cursor| {
            let asked = json!({
                "pipeline": pipeline, "round": round, "since": since, "until": until, "limit": limit, "cursor": cursor,
            });
            server.get(&["results"]).query(fields(asked)).read().await
        })
        .await
    }
}
