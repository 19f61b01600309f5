//! What a handler notes about an attempt besides its result: which proxy it used, which fields it found, since when it waits for an
//! answer.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use redrive_core::traffic::{Coverage, Facts};

/// How long a command may be silent before that is told.
pub(crate) const SILENT_AFTER: Duration = Duration::from_secs(10);

/// The notes of one attempt.
#[derive(Clone, Debug, Default)]
pub struct Notes(Arc<Mutex<Noted>>);

#[derive(Debug, Default)]
struct Noted {
    facts: Facts,
    /// Since when an answer is waited for.
    asked_at: Option<Instant>,
}

/// An answer is waited for until this is dropped.
pub(crate) struct Awaited(Notes);

impl Notes {
    /// Notes the label of the proxy that was used.
    pub fn proxy(&self, label: &str) {
        self.noted().facts.proxy = Some(label.to_owned());
    }

    /// Notes which fields of the record were found.
    pub fn coverage(&self, coverage: Coverage) {
        self.noted().facts.coverage = Some(coverage);
    }

    /// Notes everything at once.
    pub(crate) fn set(&self, facts: Facts) {
        self.noted().facts = facts;
    }

    /// Notes that from now on an answer is waited for.
    pub(crate) fn await_answer(&self) -> Awaited {
        self.noted().asked_at = Some(Instant::now());
        Awaited(self.clone())
    }

    /// For how long whoever was asked is silent, if that is worth telling.
    pub(crate) fn silent_for(&self) -> Option<Duration> {
        self.noted().asked_at.map(|asked_at| asked_at.elapsed()).filter(|silent| *silent >= SILENT_AFTER)
    }

    pub(crate) fn take(&self) -> Facts {
        std::mem::take(&mut self.noted().facts)
    }

    fn noted(&self) -> MutexGuard<'_, Noted> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Awaited {
    fn drop(&mut self) {
        self.0.noted().asked_at = None;
    }
}
