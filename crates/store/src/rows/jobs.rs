//! Jobs.

use redrive_core::crashes::LostLease;
use redrive_core::ids::{JobId, RoundName};
use redrive_core::jobs::{JobView, Lease, LeasedJob, Origin, Tally};
use redrive_core::payloads::{Payload, PayloadHash};
use redrive_core::time::Timestamp;
use serde_json::Value;

use super::{Columns, input, job_id, json_opt, parsed, parsed_opt, round, tally, time, time_opt, token, worker_id};

/// A job of any state, after its id, its pipeline and its state in the columns that each state has for them.
pub(crate) fn job_view<R: Columns>(row: &R) -> Result<JobView, R::Fault> {
    Ok(JobView {
        id: job_id(row, 0)?,
        pipeline: parsed(row, 1)?,
        state: parsed(row, 2)?,
        key: row.get(3)?,
        target: row.get(4)?,
        input: json_opt(row, 5)?,
        attempts: row.get(6)?,
        crashes: row.get(7)?,
        replays: row.get(8)?,
        accepted_at: time(row, 9)?,
        due_at: time_opt(row, 10)?,
        held: row.get(11)?,
        ended_at: time_opt(row, 12)?,
        reason: parsed_opt(row, 13)?,
        code: row.get(14)?,
        number: row.get(15)?,
        round: round(row, 16)?,
        origin: json_opt(row, 17)?,
    })
}

/// A job as it is leased. Its input is read where nobody waits for that.
pub(crate) struct QueuedJob {
    pub(crate) id: JobId,
    pub(crate) key: Option<String>,
    pub(crate) target: Option<String>,
    pub(crate) input: String,
    pub(crate) accepted_at: Timestamp,
    pub(crate) tally: Tally,
    pub(crate) seq: i64,
    pub(crate) due_at: Timestamp,
    pub(crate) progress: Option<Value>,
    pub(crate) saved: Option<[u8; 32]>,
    pub(crate) automatic: bool,
    pub(crate) round: Option<RoundName>,
    pub(crate) origin: Option<Origin>,
    pub(crate) edited: bool,
}

/// The columns of [`queued_job`], of `job j`.
pub(crate) const JOB_COLUMNS: &str =
    "j.id, j.key, j.target, j.input, j.accepted_at, j.attempts, j.attempts_before, j.crashes,
    j.replays, j.suspect, j.uncounted, j.by_name, j.seq, j.due_at, j.progress, j.saved, j.automatic, j.round,
    j.origin, j.original IS NOT NULL AS edited";

/// How many columns that are.
pub(crate) const JOB_COLUMN_COUNT: usize = 20;

pub(crate) fn queued_job<R: Columns>(row: &R) -> Result<QueuedJob, R::Fault> {
    Ok(QueuedJob {
        id: job_id(row, 0)?,
        key: row.get(1)?,
        target: row.get(2)?,
        input: row.get(3)?,
        accepted_at: time(row, 4)?,
        tally: tally(row, 5)?,
        seq: row.get(12)?,
        due_at: time(row, 13)?,
        progress: json_opt(row, 14)?,
        saved: row.get(15)?,
        automatic: row.get(16)?,
        round: round(row, 17)?,
        origin: json_opt(row, 18)?,
        edited: row.get(19)?,
    })
}

/// A lease: after the columns of a job the pipeline's name, token, epoch, worker, whether it started, whether the worker is gone, probe.
pub(crate) fn lost_lease<R: Columns>(row: &R) -> Result<LostLease, R::Fault> {
    Ok(LostLease {
        job: LeasedJob {
            lease: Lease {
                job: job_id(row, 0)?,
                token: token(row, JOB_COLUMN_COUNT + 1)?,
                epoch: row.get(JOB_COLUMN_COUNT + 2)?,
            },
            pipeline: parsed(row, JOB_COLUMN_COUNT)?,
            number: row.get(12)?,
            round: round(row, 17)?,
            key: row.get(1)?,
            target: row.get(2)?,
            input: input(row, 3)?,
            accepted_at: time(row, 4)?,
            tally: tally(row, 5)?,
            progress: json_opt(row, 14)?,
            saved: row.get::<Option<[u8; 32]>>(15)?.map(|hash| Payload::bare(PayloadHash::from_bytes(hash), 0)),
            automatic: row.get(16)?,
            tried: Vec::new(),
            probe: row.get(JOB_COLUMN_COUNT + 6)?,
            origin: json_opt(row, 18)?,
            edited: row.get(19)?,
        },
        worker: worker_id(row, JOB_COLUMN_COUNT + 3)?,
        started: row.get(JOB_COLUMN_COUNT + 4)?,
        worker_gone: row.get(JOB_COLUMN_COUNT + 5)?,
    })
}
