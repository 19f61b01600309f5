//! The end of history: what is known of jobs that came to their end, and old counts, are forgotten piece by piece.

use async_trait::async_trait;
use redrive_core::ids::PipelineName;
use redrive_core::time::Timestamp;

use super::leader::Led;
use crate::error::Result;

/// Forgetting.
#[async_trait]
pub trait HistoryStore {
    /// Looks at a piece of the receipts of a pipeline's jobs that are done or discarded, and forgets those that are over, with their
    /// keys, late settlements and failures. What is forgotten is counted in the ledger. Says whether there are more to look at: all
    /// that may be old enough by their ids are looked at once a day.
    async fn forget_receipts(&self, params: ForgetHistory) -> Result<bool>;

    /// Forgets a piece of what was counted of a pipeline, once a day; says whether there is more. Targets of which letters are dead
    /// of a cause stay.
    async fn forget_counts(&self, params: ForgetHistory) -> Result<bool>;

    /// Forgets a piece of what people did, of the places whose bytes were to be removed and of settlements that came after their job
    /// was forgotten; says whether there is more.
    async fn forget_records(&self, params: ForgetRecords) -> Result<bool>;
}

/// Asks for a piece of history to be forgotten.
#[derive(Clone, Debug)]
pub struct ForgetHistory {
    /// Of this pipeline.
    pub pipeline: PipelineName,
    /// What was over before this.
    pub before: Timestamp,
    /// At most so many rows of each kind.
    pub limit: u32,
    /// The right to do so, where it is for the leader to do.
    pub led: Option<Led>,
    /// The time.
    pub now: Timestamp,
}

/// Asks for a piece of what concerns no pipeline to be forgotten.
#[derive(Clone, Debug)]
pub struct ForgetRecords {
    /// What is older than this.
    pub before: Timestamp,
    /// At most so many rows of each kind.
    pub limit: u32,
    /// The right to do so, where it is for the leader to do.
    pub led: Option<Led>,
}
