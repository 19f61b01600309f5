//! Removing what nothing refers to, of this store's payloads and of nothing else. Being killed in the middle leaves bytes
//! without a row, which the next time finds.

use std::fs::{File, TryLockError};
use std::io;
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Collected {
    /// Payloads that nothing referred to.
    pub unused: u64,
    /// Bytes that no row knew of, left by a kill or a race.
    pub strays: u64,
    /// Stores that this one was copied from, whose payloads it reads and leaves alone.
    pub inherited: u64,
    /// Whether a backup was being made, during which nothing is removed.
    pub held: bool,
}

/// The right to remove some payloads.
struct Removal {
    _lock: Option<File>,
}

impl Vault {
    /// Removes payloads that nothing has referred to, and bytes that no row knew of, for at least `grace`.
    pub async fn collect(&self, grace: Duration, by: &Actor) -> Result<Collected, VaultError> {
        self.collect_while(grace, by, || true).await
    }

    /// The same, in steps, as long as it is to go on.
    pub(crate) async fn collect_while(
        &self,
        grace: Duration,
        by: &Actor,
        goes_on: impl Fn() -> bool,
    ) -> Result<Collected, VaultError> {
        let now = self.clock.now();
        let ids = self.store.store_ids().await?;
        let mut collected = Collected { inherited: ids.inherited.len() as u64, ..Collected::default() };
        self.sweep(now - grace, by, &goes_on, &mut collected).await?;
        let unfinished_before = now - grace.max(UNFINISHED_GRACE);
        for id in ids.adopted.into_iter().chain([ids.own]) {
            let mut strays = self.strays(Some(id));
            while goes_on()
                && !collected.held
                && let Some(page) = strays.next().await?
            {
                let Some(_removing) = self.begin_removal() else {
                    collected.held = true;
                    break;
                };
                collected.strays += self.remove_strays(page, now - grace, unfinished_before, &goes_on).await?;
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

    /// Keeps all payloads of the vault's folder until the returned lock is dropped. Waits for a removal that is under way.
    /// Returns nothing for a vault that is no folder, or where there are no locks.
    pub(crate) async fn hold_payloads(&self) -> Result<Option<File>, VaultError> {
        let Some(folder) = self.folder().and_then(|folder| File::open(folder).ok()) else { return Ok(None) };
        let lock = move || folder.lock().map(|()| folder);
        let locked =
            tokio::task::spawn_blocking(lock).await.map_err(|error| self.io_failed(io::Error::other(error)))?;
        Ok(locked.ok())
    }

    /// Allows one step of a removal, until the returned value is dropped. Returns nothing while somebody holds the payloads.
    fn begin_removal(&self) -> Option<Removal> {
        let folder = self.folder().and_then(|folder| File::open(folder).ok());
        match folder.as_ref().map(File::try_lock_shared) {
            Some(Err(TryLockError::WouldBlock)) => None,
            // Where there are no locks, nobody can hold them.
            None | Some(_) => Some(Removal { _lock: folder }),
        }
    }

    async fn sweep(
        &self,
        before: Timestamp,
        by: &Actor,
        goes_on: impl Fn() -> bool,
        collected: &mut Collected,
    ) -> Result<(), VaultError> {
        while goes_on() {
            let Some(_removing) = self.begin_removal() else {
                collected.held = true;
                break;
            };
            let params = SweepPayloads { before, limit: BATCH, by: by.clone(), now: self.clock.now() };
            let places = self.store.sweep_payloads(params).await?;
            // Their rows are gone: what is not removed here is found as bytes that no row knows.
            for place in places.iter().take_while(|_| goes_on()) {
                if let Some(spool) = &self.spool {
                    spool.remove(&spool.path(place)).map_err(|error| self.io_failed(error))?;
                }
                self.delete(place).await?;
            }
            collected.unused += places.len() as u64;
            if places.len() < BATCH as usize {
                break;
            }
        }
        Ok(())
    }

    /// Removes those that are old enough and that nobody can register any more.
    async fn remove_strays(
        &self,
        page: Page,
        before: Timestamp,
        unfinished: Timestamp,
        goes_on: impl Fn() -> bool,
    ) -> Result<u64, VaultError> {
        let old = page.places.into_iter().filter(|(_, written_at)| *written_at < before);
        let places: Vec<_> = old.map(|(place, _)| place).collect();
        let known = self.store.known_places(places.clone()).await?;
        let unknown: Vec<_> =
            places.into_iter().zip(known).filter(|(_, known)| !known).map(|(place, _)| place).collect();
        let mut removed = 0;
        if !unknown.is_empty() {
            let condemned = self.store.condemn_places(unknown, self.clock.now()).await?;
            for place in condemned.iter().take_while(|_| goes_on()) {
                self.delete(place).await?;
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

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use redrive_core::payloads::Response;

    use super::super::Capture;
    use super::*;
    use crate::Redrive;

    #[tokio::test]
    async fn who_no_longer_leads_removes_nothing_more() {
        let folder = tempfile::tempdir().expect("a folder");
        let redrive = Redrive::open("memory:").await.expect("opened");
        let vault = Vault::open(&folder.path().display().to_string(), &redrive).expect("a vault");
        for n in 0..5_u8 {
            let mut capture = Capture::begin(9).expect("begun");
            capture.write(&[n]).expect("written");
            vault.save_for((None, true), capture, Response::default(), None).await.expect("kept");
        }
        // All are old enough by a grace that has passed before it began.
        tokio::time::sleep(Duration::from_millis(5)).await;
        let left = AtomicU32::new(3);
        let goes_on = || left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok();
        vault.collect_while(Duration::ZERO, &Actor::redrive(), goes_on).await.expect("answered");
        let files = || walk(folder.path());
        assert_eq!(files(), 3, "it looked once, and removed two");
        vault.collect(Duration::ZERO, &Actor::redrive()).await.expect("collected");
        assert_eq!(files(), 0, "what was left is found");
    }

    #[tokio::test]
    async fn payloads_that_are_held_stay() {
        let folder = tempfile::tempdir().expect("a folder");
        let redrive = Redrive::open("memory:").await.expect("opened");
        let vault = Vault::open(&folder.path().display().to_string(), &redrive).expect("a vault");
        let mut capture = Capture::begin(9).expect("begun");
        capture.write(&[1]).expect("written");
        vault.save_for((None, true), capture, Response::default(), None).await.expect("kept");
        tokio::time::sleep(Duration::from_millis(5)).await;
        let by = Actor::redrive();
        let collect = || vault.collect(Duration::ZERO, &by);
        let holding = vault.hold_payloads().await.expect("asked");
        let collected = collect().await.expect("answered");
        assert_eq!((collected.held, collected.unused, walk(folder.path())), (true, 0, 1));
        drop(holding);
        let collected = collect().await.expect("answered");
        assert_eq!((collected.held, collected.unused, walk(folder.path())), (false, 1, 0));
    }

    fn walk(folder: &std::path::Path) -> usize {
        let entries = std::fs::read_dir(folder).expect("read").flatten();
        entries.map(|entry| if entry.path().is_dir() { walk(&entry.path()) } else { 1 }).sum()
    }
}
