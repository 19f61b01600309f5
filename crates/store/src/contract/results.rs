//! Results of jobs that the store keeps. They are written in the transaction that settles their jobs.

use async_trait::async_trait;
use redrive_core::ids::{PipelineName, RoundName};
use redrive_core::results::JobResult;
use redrive_core::time::Timestamp;

use super::leader::Led;
use super::pages::Page;
use crate::error::Result;

/// Results that are kept.
#[async_trait]
pub trait ResultStore {
    /// Lists results, the oldest first. A page may have fewer than were asked for though more follow.
    async fn list_results(&self, params: ListResults) -> Result<Page<JobResult>>;

    /// Removes some of the results that are too old or too many, the oldest first. Returns whether there are more.
    async fn forget_results(&self, params: ForgetResults) -> Result<bool>;
}

/// Asks for results.
#[derive(Clone, Debug)]
pub struct ListResults {
    /// Of this pipeline.
    pub pipeline: PipelineName,
    /// Only of this round.
    pub round: Option<RoundName>,
    /// Only of jobs that were done at this time or later.
    pub since: Option<Timestamp>,
    /// Only of jobs that were done before this time.
    pub until: Option<Timestamp>,
    /// At most so many.
    pub limit: u32,
    /// Where the page begins.
    pub cursor: Option<String>,
}

/// Asks for results to be removed.
#[derive(Clone, Debug)]
pub struct ForgetResults {
    /// Of this pipeline.
    pub pipeline: PipelineName,
    /// Those of jobs that were done before this time.
    pub before: Option<Timestamp>,
    /// Those above so many bytes.
    pub bytes_max: u64,
    /// At most so many rows.
    pub limit: u32,
    /// The right to do so, where it is for the leader to do.
    pub led: Option<Led>,
}
