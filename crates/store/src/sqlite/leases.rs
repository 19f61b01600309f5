//! Leases: what a worker has, from the first to the settlement; extending them, and finding what was lost. How jobs are
//! leased is in `leasing`.

use async_trait::async_trait;
use redrive_core::crashes::LostLease;
use redrive_core::ids::PipelineName;
use redrive_core::jobs::{Lease, LeasedJob};
use redrive_core::payloads::{Payload, PayloadHash};
use rusqlite::{Row, params};
use serde_json::Value;

use super::SqliteStore;
use super::fault::Fault;
use super::leasing::{Granted, lease};
use super::rows::{self, RowResult};
use super::{settlements, workers};
use crate::contract::{
    ExtendLeases, FindLostLeases, LeaseJobs, LeaseStore, LeasedJobs, NoteProgress, SettleJobs, SettledJobs, StartJobs,
};
use crate::error::Result;

#[async_trait]
impl LeaseStore for SqliteStore {
    async fn lease(&self, params: LeaseJobs) -> Result<LeasedJobs> {
        let Granted { mut jobs, inputs, next_due, held, gates } =
            self.write(move |batch| lease(batch, &params)).await?;
        // Read here, not by the one thread that all callers share.
        for (job, input) in jobs.iter_mut().zip(inputs) {
            let read = serde_json::from_str(&input).map_err(Fault::from);
            job.input = read.map_err(|fault| fault.into_store_error(self.path()))?;
        }
        Ok(LeasedJobs { jobs, next_due, held, gates })
    }

    async fn start(&self, params: StartJobs) -> Result<()> {
        self.write(move |batch| {
            let mut update = batch.statement("UPDATE lease SET started = ?3 WHERE job = ?1 AND token = ?2")?;
            let started = if params.own_process { 2 } else { 1 };
            for lease in &params.leases {
                update.execute(params![lease.job.as_bytes(), lease.token.as_bytes(), started])?;
            }
            Ok(())
        })
        .await
    }

    async fn note_progress(&self, params: NoteProgress) -> Result<bool> {
        let text = params.progress.as_ref().map(Value::to_string);
        self.write(move |batch| {
            let Lease { job, token, .. } = &params.lease;
            let noted = batch
                .statement(
                    "UPDATE job SET progress = ?3 WHERE seq = (SELECT seq FROM lease WHERE job = ?1 AND token = ?2)",
                )?
                .execute(params![job.as_bytes(), token.as_bytes(), text])?;
            Ok(noted == 1)
        })
        .await
    }

    async fn extend(&self, params: ExtendLeases) -> Result<Vec<Lease>> {
        self.identity.check()?;
        self.show_presence(params.worker)?;
        self.write(move |batch| {
            workers::enlist(batch, params.worker, std::process::id(), params.now)?;
            let mut update = batch.statement("UPDATE lease SET until = ?3 WHERE job = ?1 AND token = ?2")?;
            let mut still = Vec::new();
            for lease in &params.leases {
                let Lease { job, token, .. } = lease;
                if update.execute(params![job.as_bytes(), token.as_bytes(), params.until.as_millis()])? == 1 {
                    still.push(*lease);
                }
            }
            Ok(still)
        })
        .await
    }

    async fn settle(&self, params: SettleJobs) -> Result<SettledJobs> {
        self.write(move |batch| settlements::settle(batch, &params)).await
    }

    async fn lost_leases(&self, params: FindLostLeases) -> Result<Vec<LostLease>> {
        self.bury_workers().await?;
        self.read(move |conn| {
            let names: Vec<&str> = params.pipelines.iter().map(PipelineName::as_str).collect();
            let sql = format!(
                "SELECT {JOB_COLUMNS}, p.name, l.token, l.epoch, l.worker, l.started = 1, w.id IS NULL, l.probe
                 FROM lease l JOIN job j ON j.seq = l.seq JOIN pipeline p ON p.id = j.pipeline
                 LEFT JOIN worker w ON w.id = l.worker
                 WHERE (w.id IS NULL OR l.until <= ?1) AND p.name IN (SELECT value FROM json_each(?3)) LIMIT ?2"
            );
            let mut select = conn.prepare_cached(&sql)?;
            let names = serde_json::to_string(&names)?;
            let rows = select.query_map(params![params.now.as_millis(), params.limit, names], lost_lease)?;
            Ok(rows.collect::<RowResult<Vec<_>>>()?)
        })
        .await
    }
}

/// What is read of a job that is, or was, leased, from `job j`.
pub(super) const JOB_COLUMNS: &str =
    "j.id, j.key, j.target, j.input, j.accepted_at, j.attempts, j.attempts_before, j.crashes,
    j.replays, j.suspect, j.seq, j.due_at, j.progress, j.saved, j.automatic, j.round";

/// How many columns that are.
pub(super) const JOB_COLUMN_COUNT: usize = 16;

fn lost_lease(row: &Row<'_>) -> RowResult<LostLease> {
    Ok(LostLease {
        job: LeasedJob {
            lease: Lease { job: rows::job_id(row, 0)?, token: rows::token(row, 17)?, epoch: row.get(18)? },
            pipeline: rows::parsed(row, 16)?,
            number: row.get(10)?,
            round: rows::round(row, 15)?,
            key: row.get(1)?,
            target: row.get(2)?,
            input: rows::input(row, 3)?,
            accepted_at: rows::time(row, 4)?,
            tally: rows::tally(row, 5)?,
            progress: rows::json_opt(row, 12)?,
            saved: row.get::<_, Option<[u8; 32]>>(13)?.map(|hash| Payload::bare(PayloadHash::from_bytes(hash), 0)),
            automatic: row.get(14)?,
            tried: Vec::new(),
            probe: row.get(22)?,
        },
        worker: rows::worker_id(row, 19)?,
        started: row.get(20)?,
        worker_gone: row.get(21)?,
    })
}
