//! Leases: what a worker has, from the first to the settlement, and finding what was lost. How jobs are leased is in `leasing`.

use async_trait::async_trait;
use redrive_core::breakers::BreakerChange;
use redrive_core::crashes::LostLease;
use redrive_core::ids::{JobId, LeaseToken, PipelineName, WorkerId};
use redrive_core::jobs::{Lease, LeasedJob};
use redrive_core::payloads::{Payload, PayloadHash};
use redrive_core::proxies::TriedProxy;
use redrive_core::settlements::Settlement;
use redrive_core::state::JobState;
use redrive_core::time::Timestamp;
use serde_json::Value;

use super::batch::Batch;
use super::fault::Fault;
use super::leasing::{Granted, lease};
use super::rows::JOB_COLUMNS;
use super::settlements::{self, Settle};
use super::sql::{Conn, Row, args};
use super::{PostgresStore, replays, rows, run};
use crate::contract::{
    AskOutlook, ClaimResults, FindLostLeases, LeaseJobs, LeaseStore, LeasedJobs, Listed, NoteProgress, Outlook,
    SettleJobs, SettledJobs, StartJobs,
};
use crate::error::Result as StoreResult;

#[async_trait]
impl LeaseStore for PostgresStore {
    async fn lease(&self, params: LeaseJobs) -> StoreResult<LeasedJobs> {
        // Probes are counted, and so are jobs that are held.
        let granted = match params.gates.is_empty() && params.freed.is_empty() {
            true => self.write_beside(params, run!(lease)).await?,
            false => self.write(params, run!(lease)).await?,
        };
        let Granted { mut jobs, inputs, next_due, held, gates, paused } = granted;
        // Read here, not by the one that all callers share.
        for (job, input) in jobs.iter_mut().zip(inputs) {
            let read = serde_json::from_str(&input).map_err(Fault::from);
            job.input = read.map_err(|fault| fault.into_store_error(&self.target.place))?;
        }
        Ok(LeasedJobs { jobs, next_due, held, gates, paused })
    }

    async fn start(&self, params: StartJobs) -> StoreResult<()> {
        self.write_beside(params, run!(start)).await
    }

    async fn note_progress(&self, params: NoteProgress) -> StoreResult<bool> {
        self.write_beside(params, run!(note_progress)).await
    }

    async fn settle(&self, params: SettleJobs) -> StoreResult<SettledJobs> {
        // Written here, not by the one that all callers share.
        let inputs = |settlement: &Settlement| {
            settlement.handed_on.iter().map(|handed| serde_json::to_string(&handed.job.input)).collect::<Result<_, _>>()
        };
        let inputs: Vec<Vec<String>> = params
            .settlements
            .iter()
            .map(inputs)
            .collect::<Result<_, _>>()
            .map_err(|error: serde_json::Error| Fault::from(error).into_store_error(&self.target.place))?;
        // Who changes a breaker decided by what it was.
        match params.breakers.iter().any(BreakerChange::is_begun) {
            true => self.write(Settle { params, inputs }, run!(settlements::settle)).await,
            false => self.write_beside(Settle { params, inputs }, run!(settlements::settle)).await,
        }
    }

    async fn leased(&self, leases: Vec<Lease>) -> StoreResult<Vec<LeasedJob>> {
        self.read(leases, run!(leased)).await
    }

    async fn claim_results(&self, params: ClaimResults) -> StoreResult<Option<Vec<Lease>>> {
        self.write_beside(params, run!(claim_results)).await
    }

    async fn settled(&self, leases: Vec<Lease>) -> StoreResult<Vec<Option<JobState>>> {
        self.read(leases, run!(settled)).await
    }

    async fn outlook(&self, params: AskOutlook) -> StoreResult<Outlook> {
        self.read(params, run!(outlook)).await
    }

    async fn lost_leases(&self, params: FindLostLeases) -> StoreResult<Vec<LostLease>> {
        self.read(params, run!(lost)).await
    }
}

/// Jobs and tokens of leases, as they are bound.
pub(super) fn pairs<'a>(leases: impl IntoIterator<Item = &'a Lease>) -> (Vec<JobId>, Vec<LeaseToken>) {
    leases.into_iter().map(|lease| (lease.job, lease.token)).unzip()
}

async fn start(batch: &mut Batch, params: &StartJobs) -> Result<(), Fault> {
    let (jobs, tokens) = pairs(&params.leases);
    let sql = "UPDATE lease l SET started = $3 FROM unnest($1::uuid[], $2::uuid[]) AS u(job, token)
               WHERE l.job = u.job AND l.token = u.token";
    batch.conn().execute(sql, args![jobs, tokens, if params.own_process { 2_i64 } else { 1 }]).await?;
    Ok(())
}

async fn note_progress(batch: &mut Batch, params: &NoteProgress) -> Result<bool, Fault> {
    let text = params.progress.as_ref().map(Value::to_string);
    let Lease { job, token, .. } = &params.lease;
    // Whoever settles the job at this moment is waited for.
    let sql =
        "UPDATE job SET progress = $3 WHERE seq = (SELECT seq FROM lease WHERE job = $1 AND token = $2 FOR UPDATE)";
    Ok(batch.conn().execute(sql, args![job, token, text]).await? == 1)
}

async fn leased(conn: &Conn, leases: &[Lease]) -> Result<Vec<LeasedJob>, Fault> {
    let (jobs, tokens) = pairs(leases);
    let sql = format!(
        "SELECT {JOB_COLUMNS}, p.name, l.token, l.epoch, l.worker, l.started = 1, false, l.probe
         FROM unnest($1::uuid[], $2::uuid[]) AS u(job, token) JOIN lease l ON l.job = u.job AND l.token = u.token
         JOIN job j ON j.seq = l.seq JOIN pipeline p ON p.id = j.pipeline"
    );
    let mut held = conn.query(&sql, args![jobs, tokens], |row| rows::lost_lease(row)).await?;
    for LostLease { job, .. } in &mut held {
        let hash = job.saved.as_ref().map(|saved| *saved.hash.as_bytes());
        job.saved = saved(conn, job.lease.job, hash).await?;
        if job.tally.tried() {
            job.tried = tried(conn, job.lease.job).await?;
        }
    }
    Ok(held.into_iter().map(|held| held.job).collect())
}

async fn claim_results(batch: &mut Batch, params: &ClaimResults) -> Result<Option<Vec<Lease>>, Fault> {
    let (jobs, tokens) = pairs(&params.leases);
    // In one order, so that two processes do not wait for each other.
    let sql = "SELECT l.job, l.claimed_until FROM unnest($1::uuid[], $2::uuid[]) AS u(job, token)
               JOIN lease l ON l.job = u.job AND l.token = u.token ORDER BY l.job FOR UPDATE OF l";
    let row = |row: &Row| Ok((rows::job_id(row, 0)?, rows::time(row, 1)?));
    let found: Vec<(JobId, Timestamp)> = batch.conn().query(sql, args![jobs, tokens], row).await?;
    if !found.iter().all(|(_, claimed_until)| params.is_free(*claimed_until)) {
        return Ok(None);
    }
    let held: Vec<JobId> = found.into_iter().map(|(job, _)| job).collect();
    let sql = "UPDATE lease SET claimed_until = $2 WHERE job = ANY($1::uuid[])";
    batch.conn().execute(sql, args![held, params.until]).await?;
    Ok(Some(params.leases.iter().filter(|lease| held.contains(&lease.job)).copied().collect()))
}

async fn settled(conn: &Conn, leases: &[Lease]) -> Result<Vec<Option<JobState>>, Fault> {
    let mut states = Vec::with_capacity(leases.len());
    for lease in leases {
        states.push(settlements::settled_by(conn, lease).await?);
    }
    Ok(states)
}

async fn outlook(conn: &Conn, params: &AskOutlook) -> Result<Outlook, Fault> {
    let AskOutlook { worker, pipelines, replays_max } = params;
    let names: Vec<&str> = pipelines.iter().map(PipelineName::as_str).collect();
    // Suspects are few, and an index has nothing but them.
    let sql = "SELECT w.seen_at, w.runs,
                      EXISTS (SELECT 1 FROM job j JOIN lease l ON l.job = j.id WHERE j.suspect AND l.worker = $1),
                      p.open, p.paused
               FROM (SELECT coalesce(sum(queued + leased), 0)::bigint AS open,
                            coalesce(bool_or(paused IS NOT NULL), false) AS paused
                     FROM pipeline WHERE name = ANY($2::text[])) p
               LEFT JOIN worker w ON w.id = $1";
    let outlook = conn.query_one(sql, args![worker, names], |row| {
        let seen_at: Option<Timestamp> = rows::time_opt(row, 0)?;
        let listed =
            seen_at.map(|seen_at| Ok::<_, Fault>(Listed { seen_at, runs: rows::json(row, 1)? })).transpose()?;
        let open = u64::try_from(row.get::<i64>(3)?).unwrap_or(0);
        Ok(Outlook { listed, runs_alone: row.get(2)?, replays: Vec::new(), open, paused: row.get(4)? })
    });
    let outlook = outlook.await?;
    Ok(Outlook { replays: replays::list_open(conn, *replays_max).await?, ..outlook })
}

async fn lost(conn: &Conn, params: &FindLostLeases) -> Result<Vec<LostLease>, Fault> {
    let names: Vec<&str> = params.pipelines.iter().map(PipelineName::as_str).collect();
    let (workers, seen): (Vec<WorkerId>, Vec<Timestamp>) =
        params.silent.iter().map(|beat| (beat.worker, beat.seen_at)).unzip();
    let sql = format!(
        "SELECT {JOB_COLUMNS}, p.name, l.token, l.epoch, l.worker, l.started = 1, w.id IS NULL, l.probe
         FROM lease l JOIN job j ON j.seq = l.seq JOIN pipeline p ON p.id = j.pipeline
         LEFT JOIN worker w ON w.id = l.worker
         WHERE (w.id IS NULL OR l.until <= $1
                OR (w.id, w.seen_at) IN (SELECT * FROM unnest($4::uuid[], $5::bigint[])))
           AND p.name = ANY($3) LIMIT $2"
    );
    conn.query(&sql, args![params.now, params.limit, names, workers, seen], |row| rows::lost_lease(row)).await
}

/// The saved payload that a letter is to be worked from.
pub(super) async fn saved(conn: &Conn, job: JobId, hash: Option<[u8; 32]>) -> Result<Option<Payload>, Fault> {
    let Some(hash) = hash else { return Ok(None) };
    let sql = "SELECT payload FROM payload_use WHERE job = $1 AND hash = $2";
    let kept = conn.query_opt(sql, args![job, hash], |row| rows::json(row, 0)).await?;
    // If it is gone, whoever reads it says so; nothing is asked for instead.
    Ok(Some(kept.unwrap_or_else(|| Payload::bare(PayloadHash::from_bytes(hash), 0))))
}

/// The proxies through which a job failed, oldest first.
pub(super) async fn tried(conn: &Conn, job: JobId) -> Result<Vec<TriedProxy>, Fault> {
    let failures = rows::failures(conn, job).await?;
    let tried =
        |failure: redrive_core::failures::Failure| Some(TriedProxy { label: failure.proxy?, replay: failure.replay });
    Ok(failures.into_iter().filter_map(tried).collect())
}
