//! What can happen.

use redrive_core::alerts::text::plain;
use redrive_core::dead::Gate;
use redrive_core::failures::Reason;
use redrive_core::ids::{JobId, PipelineName, ReplayId};
use redrive_core::pipelines::Pause;
use redrive_core::settlements::{Destination, Settlement};
use redrive_core::time::Timestamp;
use serde::Serialize;

/// The most of a failure's message that is told, in characters.
const MESSAGE_MAX: usize = 300;

/// What can happen, with the ids and numbers that say where.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Happening {
    /// An attempt began.
    JobBegun {
        /// The pipeline.
        pipeline: PipelineName,
        /// The job.
        job: JobId,
        /// Which attempt, from 1.
        attempt: u32,
    },
    /// A job is done.
    JobDone {
        /// The pipeline.
        pipeline: PipelineName,
        /// The job.
        job: JobId,
        /// Attempts that it took.
        attempts: u32,
    },
    /// An attempt failed, and there will be another.
    JobRetried {
        /// The pipeline.
        pipeline: PipelineName,
        /// The job.
        job: JobId,
        /// Which attempt, from 1.
        attempt: u32,
        /// Why it failed.
        reason: Reason,
        /// The code.
        code: Option<String>,
        /// What happened, on one line.
        message: String,
        /// When it is due again.
        due_at: Timestamp,
    },
    /// A job became a dead letter.
    JobDied {
        /// The pipeline.
        pipeline: PipelineName,
        /// The job.
        job: JobId,
        /// Which attempt was the last, from 1.
        attempt: u32,
        /// Why.
        reason: Option<Reason>,
        /// The code.
        code: Option<String>,
        /// What happened, on one line.
        message: String,
        /// Whether it may be replayed.
        gate: Gate,
    },
    /// A job was discarded by a rule of its pipeline.
    JobDiscarded {
        /// The pipeline.
        pipeline: PipelineName,
        /// The job.
        job: JobId,
        /// Why.
        why: String,
    },
    /// A job went back to the queue as it was: it was not begun, or stopped through no fault of its own.
    JobReturned {
        /// The pipeline.
        pipeline: PipelineName,
        /// The job.
        job: JobId,
    },
    /// A worker no longer has a job that it had: it was late, or the job was cancelled.
    LeaseLost {
        /// The job.
        job: JobId,
    },
    /// What came out of a job did not count: another worker had it by then.
    SettledLate {
        /// The pipeline.
        pipeline: PipelineName,
        /// The job.
        job: JobId,
    },
    /// The payload of an attempt is lost.
    PayloadLost {
        /// The job.
        job: JobId,
        /// Why.
        why: String,
    },
    /// The breaker of a target opened: its jobs wait.
    BreakerOpened {
        /// The pipeline.
        pipeline: PipelineName,
        /// The target.
        target: String,
        /// Why.
        why: Option<String>,
        /// Until when nothing is tried.
        until: Timestamp,
    },
    /// The breaker of a target closed: its jobs go on.
    BreakerClosed {
        /// The pipeline.
        pipeline: PipelineName,
        /// The target.
        target: String,
    },
    /// A pipeline cannot work and is held.
    PipelineHeld {
        /// The pipeline.
        pipeline: PipelineName,
        /// What is wrong.
        why: String,
        /// When it is tried again.
        next_try: Timestamp,
    },
    /// A pipeline that was held goes on.
    PipelineWentOn {
        /// The pipeline.
        pipeline: PipelineName,
    },
    /// People have a pipeline rest.
    PipelinePaused {
        /// The pipeline.
        pipeline: PipelineName,
        /// By whom, why and since when.
        pause: Pause,
    },
    /// A pipeline that rested goes on.
    PipelineResumed {
        /// The pipeline.
        pipeline: PipelineName,
    },
    /// A policy began a replay.
    ReplayBegun {
        /// The pipeline.
        pipeline: PipelineName,
        /// The replay.
        replay: ReplayId,
        /// Letters that it chose.
        letters: u64,
    },
    /// A replay sent letters.
    ReplaySent {
        /// The replay.
        replay: ReplayId,
        /// How many.
        letters: u32,
        /// The step of its ramp, from 0.
        step: u32,
    },
    /// A replay paused itself.
    ReplayPaused {
        /// The replay.
        replay: ReplayId,
        /// Why.
        why: String,
    },
    /// Every letter of a replay has come to its end.
    ReplayFinished {
        /// The replay.
        replay: ReplayId,
    },
    /// The configuration changed: jobs that begin from now on run by it.
    PipelinesChanged,
    /// The configuration changed and cannot be used: the one before stays.
    PipelinesUnusable {
        /// What is wrong with it.
        why: String,
    },
    /// An alert fired, or has doubled.
    AlertFired {
        /// Which.
        key: String,
        /// It in one line.
        summary: String,
    },
    /// An alert is over.
    AlertOver {
        /// Which.
        key: String,
        /// By what that was seen.
        why: String,
    },
    /// A sink could not be told something; it is tried again.
    SinkFailed {
        /// What the local file calls it.
        sink: String,
        /// What went wrong.
        why: String,
    },
    /// The vault does not answer; payloads wait in the spool.
    VaultAway {
        /// Where it is.
        vault: String,
        /// What it said.
        why: String,
    },
    /// The vault answers again.
    VaultBack {
        /// Where it is.
        vault: String,
    },
    /// The store does not answer, is locked or its disk is full: it is waited for, and nothing is begun meanwhile.
    StoreAway {
        /// Where it is.
        place: String,
        /// What is wrong.
        why: String,
    },
    /// The store answers again.
    StoreBack {
        /// Where it is.
        place: String,
        /// For how many seconds it did not.
        secs: u64,
    },
    /// A worker ends although the store does not answer: what it had is done again by others.
    LeftUnsettled {
        /// Jobs that it had, run or not.
        jobs: usize,
    },
}

impl Happening {
    /// What a settlement means for its job.
    pub(crate) fn settled(pipeline: &PipelineName, settlement: &Settlement) -> Self {
        let (pipeline, job) = (pipeline.clone(), settlement.lease.job);
        let decision = &settlement.decision;
        let failure = decision.failure.as_ref();
        let attempt = failure.map_or(decision.tally.attempts, |failure| failure.attempt);
        let code = failure.and_then(|failure| failure.code.clone());
        let message = failure.map(|failure| plain(&failure.message, MESSAGE_MAX)).unwrap_or_default();
        match (&decision.destination, failure.map(|failure| failure.reason)) {
            (Destination::Done, _) => Self::JobDone { pipeline, job, attempts: decision.tally.attempts },
            (Destination::Queue { due_at }, Some(reason)) => {
                Self::JobRetried { pipeline, job, attempt, reason, code, message, due_at: *due_at }
            }
            (Destination::Queue { .. }, None) => Self::JobReturned { pipeline, job },
            (Destination::Discarded { why }, _) => Self::JobDiscarded { pipeline, job, why: plain(why, MESSAGE_MAX) },
            (Destination::Dead { gate, .. }, reason) => {
                Self::JobDied { pipeline, job, attempt, reason, code, message, gate: *gate }
            }
        }
    }
}
