//! How many rows the answers of a store have.

use std::collections::{BTreeMap, BTreeSet};

use redrive_core::breakers::BreakerRow;
use redrive_core::causes::*;
use redrive_core::copies::Copies;
use redrive_core::payloads::PayloadReads;
use redrive_core::pipelines::Contents;

use crate::contract::*;

/// How many rows an answer has.
pub trait Rows {
    /// So many.
    fn rows(&self) -> u64 {
        1
    }
}

impl<T> Rows for Vec<T> {
    fn rows(&self) -> u64 {
        self.len() as u64
    }
}

impl<T> Rows for Page<T> {
    fn rows(&self) -> u64 {
        self.items.len() as u64
    }
}

impl<T> Rows for Option<T> {
    fn rows(&self) -> u64 {
        u64::from(self.is_some())
    }
}

impl<K, V> Rows for BTreeMap<K, V> {
    fn rows(&self) -> u64 {
        self.len() as u64
    }
}

impl<T> Rows for BTreeSet<T> {
    fn rows(&self) -> u64 {
        self.len() as u64
    }
}

impl Rows for BegunRequest {}

impl Rows for LeasedJobs {
    fn rows(&self) -> u64 {
        self.jobs.len() as u64
    }
}

impl Rows for SettledJobs {
    fn rows(&self) -> u64 {
        self.settled.len() as u64
    }
}

impl Rows for RetryingJobs {
    fn rows(&self) -> u64 {
        self.jobs.len() as u64
    }
}

impl Rows for SearchedDead {
    fn rows(&self) -> u64 {
        self.letters.len() as u64
    }
}

macro_rules! single {
    ($($answer:ty),*) => { $(impl Rows for $answer {})* };
}

single!((), bool, u64, Audit, Health, Compacted, CauseDetail, CauseRules, CauseFacts, CauseChanged, LookedAtClock);
single!(Copies, CopyCursor, CopyCounters, Outlook, Tidied);
single!(BreakerRow, Contents, PayloadReads, Registered, ReplayView, StoreIds, TokenCreated, Watched);
