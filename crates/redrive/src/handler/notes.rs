//! What a handler notes about an attempt besides its result: which proxy it used, which fields it found.

use std::sync::{Arc, Mutex, PoisonError};

use redrive_core::traffic::{Coverage, Facts};

/// The notes of one attempt.
#[derive(Clone, Debug, Default)]
pub struct Notes(Arc<Mutex<Facts>>);

impl Notes {
    /// Notes the label of the proxy that was used.
    pub fn proxy(&self, label: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).proxy = Some(label.to_owned());
    }

    /// Notes which fields of the record were found.
    pub fn coverage(&self, coverage: Coverage) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).coverage = Some(coverage);
    }

    /// Notes everything at once.
    pub(crate) fn set(&self, facts: Facts) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = facts;
    }

    pub(crate) fn take(&self) -> Facts {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
