//! What people did.

use redrive::Error;
use redrive::contract::{ActivityView, ListActivity, Page};
use serde_json::json;

use crate::desk::Desk;
use crate::page::{fields, page};

impl Desk {
    /// See [`redrive::Redrive::list_activity`].
    pub async fn list_activity(&self, params: ListActivity) -> Result<Page<ActivityView>, Error> {
        let server = match self {
            Self::Here(redrive) => return Ok(redrive.list_activity(params).await?),
            Self::There(server) => server,
        };
        let ListActivity { who, pipeline, verb, object, since, limit, cursor } = params;
        page(limit, cursor, async |limit, cursor| {
            let asked = json!({
                "who": who, "pipeline": pipeline, "verb": verb, "object": object, "since": since, "limit": limit,
                "cursor": cursor,
            });
            server.get(&["activity"]).query(fields(asked)).read().await
        })
        .await
    }
}
