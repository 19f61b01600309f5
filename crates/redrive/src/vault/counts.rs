//! What is counted of a vault in this process: whether payloads that were asked for were there, and where those that came went.

use std::sync::atomic::{AtomicU64, Ordering};

use super::{Spooled, Vault, VaultError};

/// What is counted, as it goes on.
#[derive(Debug, Default)]
pub(super) struct Counters {
    found: AtomicU64,
    missing: AtomicU64,
    unread: AtomicU64,
    saved: AtomicU64,
    known: AtomicU64,
    spooled: AtomicU64,
    unsaved: AtomicU64,
}

/// Where the bytes of a payload went that came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Put {
    /// Into the vault.
    Saved,
    /// Nowhere: equal bytes are there.
    Known,
    /// Into the spool, since the vault is away.
    Spooled,
}

/// What was counted of a vault since this process began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VaultCounts {
    /// Payloads that were asked for and there.
    pub found: u64,
    /// Payloads that were asked for and not there, or not yet.
    pub missing: u64,
    /// Payloads that were asked for while the vault, the store or the disk failed.
    pub unread: u64,
    /// Payloads that were brought to the vault.
    pub saved: u64,
    /// Payloads that came when equal bytes were there.
    pub known: u64,
    /// Payloads that were put into the spool.
    pub spooled: u64,
    /// Payloads that could not be kept.
    pub unsaved: u64,
}

impl Counters {
    pub(super) fn read<T>(&self, read: &Result<T, VaultError>) {
        let counter = match read {
            Ok(_) => &self.found,
            Err(VaultError::Missing(_) | VaultError::OnItsWay { .. }) => &self.missing,
            Err(_) => &self.unread,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn put(&self, put: &Result<Put, VaultError>) {
        let counter = match put {
            Ok(Put::Saved) => &self.saved,
            Ok(Put::Known) => &self.known,
            Ok(Put::Spooled) => &self.spooled,
            Err(_) => &self.unsaved,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

impl Vault {
    /// What was counted of it since this process began.
    pub fn counts(&self) -> VaultCounts {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let Counters { found, missing, unread, saved, known, spooled, unsaved } = &*self.counters;
        VaultCounts {
            found: read(found),
            missing: read(missing),
            unread: read(unread),
            saved: read(saved),
            known: read(known),
            spooled: read(spooled),
            unsaved: read(unsaved),
        }
    }

    /// What waits in the spool of this machine, if there is one.
    pub async fn waiting(&self) -> Option<Spooled> {
        let spool = self.spool.clone()?;
        tokio::task::spawn_blocking(move || spool.waiting().ok()).await.ok()?
    }
}
