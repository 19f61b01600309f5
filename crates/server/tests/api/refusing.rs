//! A store that refuses some of its verbs, as long as it is told to: a disk that cannot be read in one place.

use std::collections::BTreeSet;
use std::future::Future;
use std::sync::Mutex;

use redrive::StoreError;
use redrive_store::decorated::{Layer, Rows};

/// The verbs that are refused.
#[derive(Default)]
pub struct Refusing(Mutex<BTreeSet<String>>);

impl Refusing {
    /// Refuses these verbs from now on, and no others.
    pub fn only(&self, verbs: &[&str]) {
        *self.0.lock().expect("not poisoned") = verbs.iter().map(ToString::to_string).collect();
    }
}

impl Layer for Refusing {
    async fn around<T, F, R>(&self, verb: &'static str, call: F) -> Result<T, StoreError>
    where
        T: Rows + Send,
        F: Fn() -> R + Send + Sync,
        R: Future<Output = Result<T, StoreError>> + Send,
    {
        if self.0.lock().expect("not poisoned").contains(verb) {
            return Err(StoreError::NoRoom { place: "/secret/place".to_owned(), needed_bytes: 2, free_bytes: 1 });
        }
        call().await
    }
}
