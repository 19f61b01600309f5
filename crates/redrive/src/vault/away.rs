//! Whether the vault is known to be away, and until when nobody should wait for it. Whoever finds that it does not answer
//! tells the others; whoever reaches it again tells them, too.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::VaultError;
use crate::clock::Clock;
use crate::events::{Events, Happening};

/// How long it is left alone at first; doubled each time.
const FIRST: Duration = Duration::from_secs(2);

/// How long it is left alone at most.
const LONGEST: Duration = Duration::from_secs(120);

/// What is known about a vault that does not answer.
#[derive(Clone)]
pub(super) struct Away {
    known: Arc<Mutex<Known>>,
    events: Events,
    clock: Arc<dyn Clock>,
}

#[derive(Debug, Default)]
struct Known {
    until: Option<Instant>,
    times: u32,
}

impl Away {
    pub(super) fn new(events: Events, clock: Arc<dyn Clock>) -> Self {
        Self { known: Arc::default(), events, clock }
    }

    pub(super) fn is_away(&self) -> bool {
        self.known().until.is_some_and(|until| Instant::now() < until)
    }

    /// Notes that it failed.
    pub(super) fn note(&self, address: &str, error: &VaultError) {
        let mut known = self.known();
        if known.until.is_some_and(|until| Instant::now() < until) {
            // Several were waiting for it at once.
            return;
        }
        if known.times == 0 {
            self.tell(Happening::VaultAway { vault: address.to_owned(), why: error.in_short() });
        }
        let wait = FIRST.saturating_mul(1 << known.times.min(10)).min(LONGEST);
        known.times = known.times.saturating_add(1);
        known.until = Some(Instant::now() + wait);
    }

    /// Notes that it answered.
    pub(super) fn clear(&self, address: &str) {
        if std::mem::take(&mut *self.known()).times > 0 {
            self.tell(Happening::VaultBack { vault: address.to_owned() });
        }
    }

    fn tell(&self, what: Happening) {
        self.events.tell(self.clock.now(), None, what);
    }

    fn known(&self) -> std::sync::MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
