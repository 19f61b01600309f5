//! A store that refuses or holds up some of its verbs, as long as it is told to: a disk that cannot be read in one place, or is slow.

use std::collections::BTreeSet;
use std::future::Future;
use std::sync::{Arc, Mutex};

use redrive::{CancellationToken, StoreError};
use redrive_store::decorated::{Layer, Rows};
use tokio::sync::Notify;

/// The verbs that are refused, and the one that is held up.
#[derive(Default)]
pub struct Refusing {
    refused: Mutex<BTreeSet<String>>,
    held: Mutex<Option<(&'static str, Arc<Hold>)>>,
}

/// Calls of a verb that wait until they are released.
#[derive(Default)]
pub struct Hold {
    arrived: Notify,
    released: CancellationToken,
}

impl Hold {
    /// Waits for a call.
    pub async fn arrived(&self) {
        self.arrived.notified().await;
    }

    /// Lets all calls go on.
    pub fn release(&self) {
        self.released.cancel();
    }
}

impl Refusing {
    /// Refuses these verbs from now on, and no others.
    pub fn only(&self, verbs: &[&str]) {
        *self.refused.lock().expect("not poisoned") = verbs.iter().map(ToString::to_string).collect();
    }

    /// Holds up the calls of a verb from now on.
    pub fn hold(&self, verb: &'static str) -> Arc<Hold> {
        let hold = Arc::new(Hold::default());
        *self.held.lock().expect("not poisoned") = Some((verb, Arc::clone(&hold)));
        hold
    }
}

impl Layer for Refusing {
    async fn around<T, F, R>(&self, verb: &'static str, call: F) -> Result<T, StoreError>
    where
        T: Rows + Send,
        F: Fn() -> R + Send + Sync,
        R: Future<Output = Result<T, StoreError>> + Send,
    {
        if self.refused.lock().expect("not poisoned").contains(verb) {
            return Err(StoreError::NoRoom { place: "/secret/place".to_owned(), needed_bytes: 2, free_bytes: 1 });
        }
        let held = self.held.lock().expect("not poisoned").clone().filter(|(held, _)| *held == verb);
        if let Some((_, hold)) = held {
            hold.arrived.notify_one();
            hold.released.cancelled().await;
        }
        call().await
    }
}
