//! Removing what nothing refers to, of this store's payloads and of nothing else. Being killed in the middle leaves bytes
//! without a row, which the next time finds.

use std::time::Duration;

use redrive_core::actors::Actor;
use redrive_core::time::Timestamp;
use redrive_store::contract::SweepPayloads;

use super::strays::Page;
use super::{Vault, VaultError};

/// At most so many payloads are forgotten in one transaction.
const BATCH: u32 = 500;

/// How long what an upload has begun is spared at least: it may still be under way.
const UNFINISHED_GRACE: Duration = Duration::from_secs(3_600);

/// What was removed, and what was left alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Collected {
    /// Payloads that nothing referred to.
    pub unused: u64,
    /// Bytes that no row knew of, left by a kill or a race.
    pub strays: u64,
    /// Stores that this one was copied from, whose payloads it reads and leaves alone.
    pub inherited: u64,
}

impl Vault {
    /// Removes payloads that nothing has referred to, and bytes that no row knew of, for at least `grace`.
    pub async fn collect(&self, grace: Duration, by: &Actor) -> Result<Collected, VaultError> {
        let now = self.clock.now();
        let mut collected = Collected { unused: self.sweep(now - grace, by).await?, ..Collected::default() };
        let ids = self.store.store_ids().await?;
        collected.inherited = ids.inherited.len() as u64;
        let unfinished_before = now - grace.max(UNFINISHED_GRACE);
        for id in ids.adopted.into_iter().chain([ids.own]) {
            let mut strays = self.strays(Some(id));
            while let Some(page) = strays.next().await? {
                collected.strays += self.remove_strays(page, now - grace, unfinished_before).await?;
            }
        }
        Ok(collected)
    }

    /// Says that no other store uses what this one inherited when it was copied: it is collected from now on.
    pub async fn adopt(&self, by: &Actor) -> Result<(), VaultError> {
        Ok(self.store.adopt_payloads(by.clone(), self.clock.now()).await?)
    }

    /// How many payloads of the layout before stores had ids no row of this store knows. They may be another's: nobody
    /// removes them.
    pub async fn count_older_strays(&self) -> Result<u64, VaultError> {
        let mut unknown = 0;
        if self.store.store_ids().await?.older {
            let mut older = self.strays(None);
            while let Some(page) = older.next().await? {
                let places = page.places.into_iter().map(|(place, _)| place).collect();
                unknown += self.store.known_places(places).await?.into_iter().filter(|known| !known).count() as u64;
            }
        }
        Ok(unknown)
    }

    async fn sweep(&self, before: Timestamp, by: &Actor) -> Result<u64, VaultError> {
        let mut swept = 0;
        loop {
            let params = SweepPayloads { before, limit: BATCH, by: by.clone(), now: self.clock.now() };
            let places = self.store.sweep_payloads(params).await?;
            for place in &places {
                if let Some(spool) = &self.spool {
                    spool.remove(&spool.path(place)).map_err(|error| self.io_failed(error))?;
                }
                self.delete(place).await?;
            }
            swept += places.len() as u64;
            if places.len() < BATCH as usize {
                return Ok(swept);
            }
        }
    }

    /// Removes those that are old enough and that nobody can register any more.
    async fn remove_strays(&self, page: Page, before: Timestamp, unfinished: Timestamp) -> Result<u64, VaultError> {
        let old = page.places.into_iter().filter(|(_, written_at)| *written_at < before);
        let places: Vec<_> = old.map(|(place, _)| place).collect();
        let known = self.store.known_places(places.clone()).await?;
        let unknown: Vec<_> =
            places.into_iter().zip(known).filter(|(_, known)| !known).map(|(place, _)| place).collect();
        let mut removed = 0;
        if !unknown.is_empty() {
            for place in self.store.condemn_places(unknown, self.clock.now()).await? {
                self.delete(&place).await?;
                removed += 1;
            }
        }
        for (path, written_at) in page.unfinished {
            if written_at < unfinished && std::fs::remove_file(path).is_ok() {
                removed += 1;
            }
        }
        Ok(removed)
    }
}
