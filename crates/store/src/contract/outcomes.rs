//! Outcomes: what programs that run their jobs themselves count of them.

use async_trait::async_trait;
use redrive_core::outcomes::OutcomeCount;
use redrive_core::time::Timestamp;

use crate::error::Result;

/// Outcomes, added to what is counted of jobs that run here.
#[async_trait]
pub trait OutcomeStore {
    /// Adds counts, unless they came before; says whether they did not.
    async fn count_outcomes(&self, params: CountOutcomes) -> Result<bool>;
}

/// Brings counts.
#[derive(Clone, Debug)]
pub struct CountOutcomes {
    /// Who counted.
    pub client: String,
    /// Which of its counts these are: the same number again is the same counts.
    pub seq: i64,
    /// The counts, checked at the door.
    pub counts: Vec<OutcomeCount>,
    /// It is no longer known what came before this time.
    pub forget_before: Timestamp,
    /// The time.
    pub now: Timestamp,
}
