//! Activity, for who holds a [`Redrive`]: what people did.

use redrive_store::Result;
use redrive_store::contract::{ActivityView, ListActivity, Page};

use crate::engine::Redrive;

impl Redrive {
    /// A page of what people did, newest first: what they started, changed, cancelled and discarded. What Redrive did by itself is
    /// not part of it.
    pub async fn list_activity(&self, params: ListActivity) -> Result<Page<ActivityView>> {
        self.store.list_activity(params).await
    }
}
