//! Removing what nothing refers to. Being killed in the middle leaves bytes without a row, which the next time finds.

use std::time::Duration;

use futures_util::TryStreamExt;
use redrive_store::contract::SweepPayloads;

use super::{Vault, VaultError};

/// At most so many payloads are forgotten in one transaction.
const BATCH: u32 = 500;

/// What was removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Collected {
    /// Payloads that nothing referred to.
    pub unused: u64,
    /// Bytes that no row knew of, left by a kill or a race.
    pub strays: u64,
}

impl Vault {
    /// Removes payloads that nothing has referred to, and bytes that no row knew of, for at least `grace`.
    pub async fn collect(&self, grace: Duration) -> Result<Collected, VaultError> {
        let before = self.clock.now() - grace;
        let mut collected = Collected::default();
        loop {
            let places = self.store.sweep_payloads(SweepPayloads { before, limit: BATCH }).await?;
            for place in &places {
                self.delete(place).await?;
            }
            collected.unused += places.len() as u64;
            if places.len() < BATCH as usize {
                break;
            }
        }
        collected.strays = self.collect_strays(before.as_millis()).await?;
        Ok(collected)
    }

    async fn collect_strays(&self, before_millis: i64) -> Result<u64, VaultError> {
        let mut strays = 0;
        let mut pages = self.objects.list(None).try_chunks(BATCH as usize);
        while let Some(page) = pages.try_next().await.map_err(|error| self.objects_failed(error.1))? {
            let old = page.into_iter().filter(|object| object.last_modified.timestamp_millis() < before_millis);
            let places: Vec<String> = old.map(|object| object.location.to_string()).collect();
            let known = self.store.known_places(places.clone()).await?;
            for place in places.iter().zip(known).filter(|(_, known)| !known).map(|(place, _)| place) {
                self.delete(place).await?;
                strays += 1;
            }
        }
        Ok(strays)
    }
}
