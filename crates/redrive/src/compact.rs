//! Giving the store's unused space back, while nobody works on it.

use redrive_core::actors::Actor;
use redrive_store::contract::{Compact, Compacted};

use crate::engine::Redrive;
use crate::error::Error;

impl Redrive {
    /// Gives unused space of the store back to the disk. Refused while workers are at work: they would wait for it, and fail.
    pub async fn compact(&self, by: &Actor) -> Result<Compacted, Error> {
        let workers = self.store.list_workers().await?;
        match workers.iter().filter(|worker| worker.is_at_work(self.now())).count() {
            0 => Ok(self.store.compact(Compact { by: by.clone(), now: self.now() }).await?),
            workers => Err(Error::AtWork { workers }),
        }
    }
}
