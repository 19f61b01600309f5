//! Layers for tests: stores that count what they are asked, lose answers or hold them back. A decorated store runs the suite too.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use tokio::sync::watch;

pub use crate::decorated::{Decorated, Layer, Rows};
use crate::error::Result;

/// What was asked of a verb so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    /// How often it was called.
    pub calls: u64,
    /// How many rows it answered with, in all.
    pub rows: u64,
    /// The most rows of one answer.
    pub rows_max: u64,
}

/// Counts how often each verb is called, and with how many rows it answers.
#[derive(Default)]
pub struct Counting(Mutex<BTreeMap<&'static str, Asked>>);

impl Counting {
    /// What was asked of a verb so far.
    pub fn asked(&self, verb: &str) -> Asked {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(verb).copied().unwrap_or_default()
    }

    /// How often a verb was called so far.
    pub fn calls(&self, verb: &str) -> u64 {
        self.asked(verb).calls
    }

    /// All calls so far.
    pub fn all(&self) -> BTreeMap<&'static str, u64> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().map(|(verb, asked)| (*verb, asked.calls)).collect()
    }
}

impl Layer for Counting {
    async fn around<T, F, R>(&self, verb: &'static str, call: F) -> Result<T>
    where
        T: Rows + Send,
        F: Fn() -> R + Send + Sync,
        R: Future<Output = Result<T>> + Send,
    {
        let answer = call().await;
        let rows = answer.as_ref().map_or(0, Rows::rows);
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Asked { calls, rows: sum, rows_max } = all.entry(verb).or_default();
        (*calls, *sum, *rows_max) = (*calls + 1, *sum + rows, (*rows_max).max(rows));
        answer
    }
}

/// Verbs that may be sent again when their answer was lost: they are answered as they were the first time.
const RESENT: &[&str] = &[
    "enqueue",
    "lease",
    "start",
    "note_progress",
    "settle",
    "beat",
    "lead",
    "note_holds",
    "detach_worker",
    "touch_payload",
    "register_payload",
];

/// Loses answers: of what may be sent again every second one after the effect, so that the verb is called twice. Some calls wait
/// their turn once more. Who calls sees nothing of it but time.
#[derive(Default)]
pub struct Faulty(AtomicU64);

impl Layer for Faulty {
    async fn around<T, F, R>(&self, verb: &'static str, call: F) -> Result<T>
    where
        T: Rows + Send,
        F: Fn() -> R + Send + Sync,
        R: Future<Output = Result<T>> + Send,
    {
        let n = self.0.fetch_add(1, Ordering::Relaxed);
        if n.is_multiple_of(2) && RESENT.contains(&verb) {
            // An error is an answer that came.
            call().await?;
        }
        if n.is_multiple_of(3) {
            tokio::task::yield_now().await;
        }
        call().await
    }
}

/// Holds back the answers of a verb until it is told to let them through.
pub struct Delaying {
    verb: &'static str,
    closed: watch::Sender<bool>,
    waiting: AtomicU64,
}

impl Delaying {
    /// Lets everything through for now.
    pub fn new(verb: &'static str) -> Self {
        Self { verb, closed: watch::channel(false).0, waiting: AtomicU64::new(0) }
    }

    /// From now on answers wait, or do not.
    pub fn hold_back(&self, hold_back: bool) {
        self.closed.send_replace(hold_back);
    }

    /// How many answers had to wait so far: their effect is there.
    pub fn held_back(&self) -> u64 {
        self.waiting.load(Ordering::SeqCst)
    }
}

impl Layer for Delaying {
    async fn around<T, F, R>(&self, verb: &'static str, call: F) -> Result<T>
    where
        T: Rows + Send,
        F: Fn() -> R + Send + Sync,
        R: Future<Output = Result<T>> + Send,
    {
        let answer = call().await;
        if verb == self.verb {
            let mut closed = self.closed.subscribe();
            if *closed.borrow() {
                self.waiting.fetch_add(1, Ordering::SeqCst);
                // The layer holds the sender: it cannot be gone.
                let _ = closed.wait_for(|closed| !closed).await;
            }
        }
        answer
    }
}
