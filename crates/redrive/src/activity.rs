//! Activity, for who holds a [`Redrive`]: what people did, and what Redrive did by itself that they ask about.

use redrive_store::Result;
use redrive_store::contract::{ActivityView, ListActivity, Page};

use crate::engine::Redrive;

impl Redrive {
    /// A page of what people did, newest first: what they started, changed, cancelled and discarded. Of what Redrive did by itself it
    /// has replays that it began or paused, causes that a replay resolved, and pauses that came to their end.
    pub async fn list_activity(&self, params: ListActivity) -> Result<Page<ActivityView>> {
        self.store.list_activity(params).await
    }
}
