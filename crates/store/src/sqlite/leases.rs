//! Leases: what a worker has, from the first to the settlement, and finding what was lost. How jobs are
//! leased is in `leasing`.

use async_trait::async_trait;
use redrive_core::crashes::LostLease;
use redrive_core::ids::{JobId, LeaseToken, PipelineName, WorkerId};
use redrive_core::jobs::{Lease, LeasedJob};
use redrive_core::payloads::{Payload, PayloadHash};
use redrive_core::proxies::TriedProxy;
use redrive_core::settlements::Settlement;
use redrive_core::state::JobState;
use rusqlite::{Connection, OptionalExtension, Row, params};
use serde_json::Value;

use super::SqliteStore;
use super::batch::Batch;
use super::fault::Fault;
use super::leasing::{Granted, lease};
use super::rows::{self, JOB_COLUMNS, RowResult};
use super::{replays, settlements};
use crate::contract::{
    AskOutlook, ClaimResults, FindLostLeases, LeaseJobs, LeaseStore, LeasedJobs, Listed, NoteProgress, Outlook,
    SettleJobs, SettledJobs, StartJobs,
};
use crate::error::Result as StoreResult;

#[async_trait]
impl LeaseStore for SqliteStore {
    async fn lease(&self, params: LeaseJobs) -> StoreResult<LeasedJobs> {
        let Granted { mut jobs, inputs, next_due, held, gates, paused } =
            self.write(move |batch| lease(batch, &params)).await?;
        // Read here, not by the one thread that all callers share.
        for (job, input) in jobs.iter_mut().zip(inputs) {
            let read = serde_json::from_str(&input).map_err(Fault::from);
            job.input = read.map_err(|fault| fault.into_store_error(self.path()))?;
        }
        Ok(LeasedJobs { jobs, next_due, held, gates, paused })
    }

    async fn start(&self, params: StartJobs) -> StoreResult<()> {
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

    async fn note_progress(&self, params: NoteProgress) -> StoreResult<bool> {
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

    async fn settle(&self, params: SettleJobs) -> StoreResult<SettledJobs> {
        // Written here, not by the one thread that all callers share.
        let inputs = |settlement: &Settlement| {
            settlement.handed_on.iter().map(|handed| serde_json::to_string(&handed.job.input)).collect::<Result<_, _>>()
        };
        let inputs: Vec<Vec<String>> = params
            .settlements
            .iter()
            .map(inputs)
            .collect::<Result<_, _>>()
            .map_err(|error: serde_json::Error| Fault::from(error).into_store_error(self.path()))?;
        self.write(move |batch| settlements::settle(batch, &params, &inputs)).await
    }

    async fn leased(&self, leases: Vec<Lease>) -> StoreResult<Vec<LeasedJob>> {
        self.read(move |conn| {
            let sql = format!(
                "SELECT {JOB_COLUMNS}, p.name, l.token, l.epoch, l.worker, l.started = 1, 0, l.probe
                 FROM lease l JOIN job j ON j.seq = l.seq JOIN pipeline p ON p.id = j.pipeline
                 WHERE l.job = ?1 AND l.token = ?2"
            );
            let mut select = conn.prepare_cached(&sql)?;
            let mut jobs = Vec::new();
            for Lease { job, token, .. } in &leases {
                let held = select
                    .query_row(params![job.as_bytes(), token.as_bytes()], |row| rows::lost_lease(row))
                    .optional()?;
                let Some(LostLease { job, .. }) = held else { continue };
                let hash = job.saved.as_ref().map(|saved| *saved.hash.as_bytes());
                let tried = if job.tally.tried() { tried(conn, job.lease.job)? } else { Vec::new() };
                jobs.push(LeasedJob { saved: saved(conn, job.lease.job, hash)?, tried, ..job });
            }
            Ok(jobs)
        })
        .await
    }

    async fn claim_results(&self, params: ClaimResults) -> StoreResult<Option<Vec<Lease>>> {
        self.write(move |batch| claim_results(batch, &params)).await
    }

    async fn settled(&self, leases: Vec<Lease>) -> StoreResult<Vec<Option<JobState>>> {
        self.read(move |conn| leases.iter().map(|lease| settlements::settled_by(conn, lease)).collect()).await
    }

    async fn outlook(&self, params: AskOutlook) -> StoreResult<Outlook> {
        self.read(move |conn| outlook(conn, &params)).await
    }

    async fn lost_leases(&self, params: FindLostLeases) -> StoreResult<Vec<LostLease>> {
        self.bury_workers().await?;
        self.read(move |conn| {
            let names: Vec<&str> = params.pipelines.iter().map(PipelineName::as_str).collect();
            let sql = format!(
                "SELECT {JOB_COLUMNS}, p.name, l.token, l.epoch, l.worker, l.started = 1, w.id IS NULL, l.probe
                 FROM lease l JOIN job j ON j.seq = l.seq JOIN pipeline p ON p.id = j.pipeline
                 LEFT JOIN worker w ON w.id = l.worker
                 WHERE (w.id IS NULL OR l.until <= ?1 OR (hex(w.id), w.seen_at) IN
                            (SELECT value ->> 0, value ->> 1 FROM json_each(?4)))
                   AND p.name IN (SELECT value FROM json_each(?3)) LIMIT ?2"
            );
            let mut select = conn.prepare_cached(&sql)?;
            let names = serde_json::to_string(&names)?;
            let silent: Vec<_> =
                params.silent.iter().map(|beat| (hex(beat.worker), beat.seen_at.as_millis())).collect();
            let silent = serde_json::to_string(&silent)?;
            let rows = select
                .query_map(params![params.now.as_millis(), params.limit, names, silent], |row| rows::lost_lease(row))?;
            Ok(rows.collect::<RowResult<Vec<_>>>()?)
        })
        .await
    }
}

fn outlook(conn: &Connection, params: &AskOutlook) -> Result<Outlook, Fault> {
    let worker = params.worker.as_bytes();
    let mut select = conn.prepare_cached("SELECT seen_at, runs FROM worker WHERE id = ?1")?;
    let listed = |row: &Row<'_>| Ok(Listed { seen_at: rows::time(row, 0)?, runs: rows::json(row, 1)? });
    let listed = select.query_row([worker], listed).optional()?;
    // Suspects are few, and an index has nothing but them.
    let mut select = conn.prepare_cached(
        "SELECT EXISTS (SELECT 1 FROM job j INDEXED BY job_suspect CROSS JOIN lease l ON l.job = j.id
                        WHERE j.suspect AND l.worker = ?1)",
    )?;
    let runs_alone = select.query_row([worker], |row| row.get(0))?;
    let mut select = conn.prepare_cached("SELECT queued + leased, paused IS NOT NULL FROM pipeline WHERE name = ?1")?;
    let (mut open, mut paused) = (0, false);
    for name in &params.pipelines {
        let standing = |row: &Row<'_>| Ok((row.get::<_, i64>(0)?, row.get::<_, bool>(1)?));
        let (jobs, rests) = select.query_row([name.as_str()], standing).optional()?.unwrap_or_default();
        (open, paused) = (open + jobs, paused || rests);
    }
    let replays = replays::list_open(conn, params.replays_max)?;
    Ok(Outlook { listed, runs_alone, replays, open: u64::try_from(open).unwrap_or(0), paused })
}

fn claim_results(batch: &Batch<'_>, params: &ClaimResults) -> Result<Option<Vec<Lease>>, Fault> {
    let mut select = batch.statement("SELECT claimed_until FROM lease WHERE job = ?1 AND token = ?2")?;
    let mut held = Vec::new();
    for lease in &params.leases {
        let of_lease = params![lease.job.as_bytes(), lease.token.as_bytes()];
        match select.query_row(of_lease, |row| rows::time(row, 0)).optional()? {
            Some(claimed_until) if !params.is_free(claimed_until) => return Ok(None),
            found => held.extend(found.map(|_| *lease)),
        }
    }
    let mut update = batch.statement("UPDATE lease SET claimed_until = ?2 WHERE job = ?1")?;
    for lease in &held {
        update.execute(params![lease.job.as_bytes(), params.until.as_millis()])?;
    }
    Ok(Some(held))
}

/// Ends a lease that its holder may not have heard of yet.
pub(super) fn end(batch: &Batch<'_>, job: JobId) -> Result<(), Fault> {
    let mut select = batch.statement("SELECT token FROM lease WHERE job = ?1")?;
    if let Some(token) = select.query_row([job.as_bytes()], |row| rows::token(row, 0)).optional()? {
        batch.statement("DELETE FROM lease WHERE job = ?1")?.execute([job.as_bytes()])?;
        pass_mark_on(batch, job, token)?;
        unmark(batch, job, token)?;
    }
    Ok(())
}

/// Makes another lease of a token its first, in place of one that has ended: whoever asks for them again, because the answer was lost,
/// is to get the others.
fn pass_mark_on(batch: &Batch<'_>, job: JobId, token: LeaseToken) -> Result<(), Fault> {
    let next =
        "SELECT l.job FROM lease l JOIN job j ON j.seq = l.seq WHERE l.token = ?1 ORDER BY j.due_at, j.seq LIMIT 1";
    let next = batch.statement(next)?.query_row([token.as_bytes()], |row| rows::job_id(row, 0)).optional()?;
    let Some(next) = next else { return Ok(()) };
    let mut pass_on = batch.statement("UPDATE lease_token SET job = ?3 WHERE token = ?1 AND job = ?2")?;
    if pass_on.execute([token.as_bytes().as_slice(), job.as_bytes(), next.as_bytes()])? > 0 {
        batch.statement("UPDATE lease SET first = 1 WHERE job = ?1")?.execute([next.as_bytes()])?;
    }
    Ok(())
}

/// Takes away what was noted of a lease that was a probe, or the first of its token, and has ended.
pub(super) fn unmark(batch: &Batch<'_>, job: JobId, token: LeaseToken) -> Result<(), Fault> {
    batch.statement("DELETE FROM lease_probe WHERE job = ?1")?.execute([job.as_bytes()])?;
    let mut delete = batch.statement("DELETE FROM lease_token WHERE token = ?1 AND job = ?2")?;
    delete.execute(params![token.as_bytes(), job.as_bytes()])?;
    Ok(())
}

/// The saved payload that a letter is to be worked from.
pub(super) fn saved(conn: &Connection, job: JobId, hash: Option<[u8; 32]>) -> Result<Option<Payload>, Fault> {
    let Some(hash) = hash else { return Ok(None) };
    let mut select = conn.prepare_cached("SELECT payload FROM payload_use WHERE job = ?1 AND hash = ?2")?;
    let kept = select.query_row(params![job.as_bytes(), hash], |row| rows::json(row, 0)).optional()?;
    // If it is gone, whoever reads it says so; nothing is asked for instead.
    Ok(Some(kept.unwrap_or_else(|| Payload::bare(PayloadHash::from_bytes(hash), 0))))
}

/// The proxies through which a job failed, oldest first.
pub(super) fn tried(conn: &Connection, job: JobId) -> Result<Vec<TriedProxy>, Fault> {
    let mut select = conn.prepare_cached(
        "SELECT failure ->> 'proxy', failure ->> 'replay' FROM failure
         WHERE job = ?1 AND failure ->> 'proxy' IS NOT NULL ORDER BY n",
    )?;
    let tried = |row: &Row<'_>| Ok(TriedProxy { label: row.get(0)?, replay: row.get(1)? });
    Ok(select.query_map([job.as_bytes()], tried)?.collect::<RowResult<_>>()?)
}

/// A worker's id as SQLite's `hex` writes it.
fn hex(worker: WorkerId) -> String {
    worker.as_bytes().iter().map(|byte| format!("{byte:02X}")).collect()
}
