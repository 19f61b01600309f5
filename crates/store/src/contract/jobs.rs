//! Jobs: accepting them, looking at them, cancelling them.

use std::sync::Arc;

use async_trait::async_trait;
use redrive_core::actors::Actor;
use redrive_core::failures::{Failure, Reason};
use redrive_core::ids::{JobId, JobRef, PipelineName, WorkerId};
use redrive_core::jobs::{JobView, NewJob};
use redrive_core::policy::Bounds;
use redrive_core::retrying::RetryingJob;
use redrive_core::state::JobState;
use redrive_core::time::Timestamp;
use redrive_core::tokens::PipelinePattern;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::pages::Page;
use crate::error::Result;

/// Jobs, in whatever state they are.
#[async_trait]
pub trait JobStore {
    /// Accepts jobs, all or (if the queue is full) none. A job whose key is known is not accepted again: the answer, in
    /// the order asked, says which job has it.
    async fn enqueue(&self, params: EnqueueJobs) -> Result<Vec<EnqueuedJob>>;

    /// A page of jobs, newest first.
    async fn list_jobs(&self, params: ListJobs) -> Result<Page<JobView>>;

    /// All that is known of a job.
    async fn get_job(&self, id: JobId) -> Result<Option<JobDetail>>;

    /// The jobs that are named so, in whatever state they are; more than one only if the end of an id is that of several, and not
    /// necessarily all of those. A number is also looked for as the end of the id of a dead letter. A whole id is believed.
    async fn find_jobs(&self, named: JobRef) -> Result<Vec<JobId>>;

    /// Discards jobs that are queued or leased, with a record; says which it discarded. More than [`IDS_MAX`] at once are refused.
    async fn cancel_jobs(&self, params: CancelJobs) -> Result<Vec<JobId>>;

    /// Returns the last failures of queued jobs that have failed before. Reads a bounded number of jobs of a few lanes, those that are
    /// due last: retries are due later than jobs that were never tried.
    async fn retrying_jobs(&self, params: ListRetrying) -> Result<RetryingJobs>;
}

/// At most so many lanes are looked at for jobs that failed before: the queue, and those in which most jobs are held.
pub(crate) const LANES_MAX: i64 = 10;

/// At most so many jobs or letters are named in one call that changes them: others wait for it.
pub const IDS_MAX: usize = 1_000;

/// Asks for jobs to be accepted.
#[derive(Clone, Debug)]
pub struct EnqueueJobs {
    /// The pipeline they are for.
    pub pipeline: PipelineName,
    /// The jobs, shared by the layers that they pass.
    pub jobs: Arc<Vec<NewJob>>,
    /// Limits at which the whole batch is refused.
    pub bounds: Bounds,
    /// The time.
    pub now: Timestamp,
}

/// What became of a job that asked to be accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EnqueuedJob {
    /// It was accepted.
    Accepted(JobId),
    /// Its key is known: this job has it.
    Known {
        /// The job that has the key.
        id: JobId,
        /// Its state.
        state: JobState,
        /// When it came to its end, if it did.
        ended_at: Option<Timestamp>,
    },
}

/// Which jobs to list.
#[derive(Clone, Debug, Default)]
pub struct JobFilter {
    /// Only of this pipeline.
    pub pipeline: Option<PipelineName>,
    /// Only of the pipelines that one of these means; none means any.
    pub within: Vec<PipelinePattern>,
    /// Only in these states; empty means any.
    pub states: Vec<JobState>,
    /// Only those that failed last for this reason.
    pub reason: Option<Reason>,
    /// Only those that failed last with this code.
    pub code: Option<String>,
    /// Only of this target.
    pub target: Option<String>,
    /// Only accepted at or after this time.
    pub since: Option<Timestamp>,
    /// Only accepted before this time.
    pub until: Option<Timestamp>,
    /// Only those with this text in their key, target or input.
    pub text: Option<String>,
}

/// Asks for a page of jobs.
#[derive(Clone, Debug)]
pub struct ListJobs {
    /// Which.
    pub filter: JobFilter,
    /// At most so many.
    pub limit: u32,
    /// Where to go on.
    pub cursor: Option<String>,
}

/// Asks for jobs to be discarded.
#[derive(Clone, Debug)]
pub struct CancelJobs {
    /// Which: at most [`IDS_MAX`].
    pub ids: Vec<JobId>,
    /// Who wants it.
    pub by: Actor,
    /// Why.
    pub why: String,
    /// The time.
    pub now: Timestamp,
}

/// Asks for the last failures of queued jobs.
#[derive(Clone, Debug)]
pub struct ListRetrying {
    /// The pipeline.
    pub pipeline: PipelineName,
    /// At most so many jobs, and at most so many are looked at in each lane.
    pub limit: u32,
}

/// Queued jobs that have failed before.
#[derive(Clone, Debug, Default)]
pub struct RetryingJobs {
    /// Those that were found.
    pub jobs: Vec<RetryingJob>,
    /// How many there are in all.
    pub all: u64,
}

/// A job with its history.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct JobDetail {
    /// The job.
    #[serde(flatten)]
    pub job: JobView,
    /// Its failures, oldest first.
    pub failures: Vec<Failure>,
    /// Settlements that came too late to count.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub late: Vec<LateSettlement>,
    /// Who discarded it, when and why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub discard: Option<DiscardRecord>,
    /// Its result, if the job is done and the store keeps it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Value>,
    /// Lines that it printed before its result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log: Option<String>,
}

/// A settlement whose lease was stale: it changed nothing and is kept as evidence.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LateSettlement {
    /// When it came.
    pub at: Timestamp,
    /// From whom.
    pub worker: WorkerId,
    /// The epoch of its lease.
    pub epoch: u64,
    /// Where it wanted the job to go.
    pub destination: String,
    /// The failure it carried.
    pub failure: Option<Failure>,
}

/// The record of a job that was given up.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DiscardRecord {
    /// When.
    pub at: Timestamp,
    /// By whom.
    pub actor: String,
    /// Why.
    pub why: String,
    /// The state it was in.
    pub was: JobState,
    /// Why it had failed, if it was dead.
    pub reason: Option<Reason>,
    /// When it had died, if it was dead.
    pub died_at: Option<Timestamp>,
}
