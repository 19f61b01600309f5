//! What is counted of a vault in this process: whether payloads that were asked for were there, and where those that came went.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use redrive_core::time::Timestamp;
use redrive_store::contract::CountPayloadReads;
use redrive_store::host;

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
    unnoted: Mutex<Unnoted>,
}

/// Reads that the store has not counted yet, and when it last counted some.
#[derive(Debug, Default)]
struct Unnoted {
    found: u64,
    missing: u64,
    noted_at: Option<Timestamp>,
}

/// Reads of this process that the store has not counted, at most, and for how long.
const UNNOTED_MAX: u64 = 50;
const UNNOTED_FOR: Duration = Duration::from_secs(1);

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
        let mut unnoted = self.unnoted.lock().unwrap_or_else(PoisonError::into_inner);
        let counter = match read {
            Ok(_) => {
                unnoted.found += 1;
                &self.found
            }
            Err(VaultError::Missing(_) | VaultError::OnItsWay { .. }) => {
                unnoted.missing += 1;
                &self.missing
            }
            Err(_) => &self.unread,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// Takes the reads that the store has not counted, if there are any and, unless all are wanted, they are due.
    fn take_unnoted(&self, all: bool, now: Timestamp) -> Option<(u64, u64)> {
        let mut unnoted = self.unnoted.lock().unwrap_or_else(PoisonError::into_inner);
        let reads = unnoted.found + unnoted.missing;
        let due = unnoted.noted_at.is_none_or(|at| reads >= UNNOTED_MAX || now.since(at) >= UNNOTED_FOR);
        if reads == 0 || !(all || due) {
            return None;
        }
        let taken = std::mem::replace(&mut *unnoted, Unnoted { noted_at: Some(now), ..Unnoted::default() });
        Some((taken.found, taken.missing))
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
    /// Has the store count the reads of this process that it has not counted yet: all of them, or those that are due. Reads that cannot
    /// be counted, by a store that cannot be written, are left out.
    pub(crate) async fn note_reads(&self, all: bool) {
        let now = self.clock.now();
        let Some((found, missing)) = self.counters.take_unnoted(all, now) else { return };
        let params = CountPayloadReads { host: host().to_owned(), found, missing, now };
        if let Err(error) = self.store.count_payload_reads(params).await {
            tracing::debug!(found, missing, %error, "reads of payloads could not be counted");
        }
    }

    /// What was counted of it since this process began.
    pub fn counts(&self) -> VaultCounts {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let Counters { found, missing, unread, saved, known, spooled, unsaved, unnoted: _ } = &*self.counters;
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
