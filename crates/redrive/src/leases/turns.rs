//! Turns: while results of jobs are written for one request, another request that settles the same jobs waits.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use redrive_core::jobs::Lease;
use tokio::sync::Notify;

/// The leases whose jobs are being settled with results.
#[derive(Default)]
pub(crate) struct Turns {
    leases: Mutex<HashSet<Lease>>,
    over: Notify,
}

impl Turns {
    /// Waits until nobody else settles any of these jobs. They are the caller's until it drops the turn.
    pub(super) async fn take(&self, leases: Vec<Lease>) -> Turn<'_> {
        loop {
            let over = self.over.notified();
            if self.try_take(&leases) {
                return Turn { turns: self, leases };
            }
            over.await;
        }
    }

    fn try_take(&self, leases: &[Lease]) -> bool {
        let mut taken = self.leases();
        let is_free = leases.iter().all(|lease| !taken.contains(lease));
        if is_free {
            taken.extend(leases);
        }
        is_free
    }

    fn leases(&self) -> MutexGuard<'_, HashSet<Lease>> {
        self.leases.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A turn, until it is dropped.
pub(super) struct Turn<'a> {
    turns: &'a Turns,
    leases: Vec<Lease>,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut taken = self.turns.leases();
        for lease in &self.leases {
            taken.remove(lease);
        }
        drop(taken);
        self.turns.over.notify_waiters();
    }
}
