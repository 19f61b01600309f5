//! Workers: a row for others to see. That one is gone is noticed by its silence.

use async_trait::async_trait;
use redrive_core::holds::Hold;
use redrive_core::ids::WorkerId;
use redrive_core::jobs::Lease;
use redrive_core::workers::LastBeat;

use super::batch::Batch;
use super::fault::Fault;
use super::leases::pairs;
use super::sql::{Conn, Row, args};
use super::{PostgresStore, clock, definitions, rows, run};
use crate::contract::{AttachWorker, Beat, LookedAtClock, Topic, WorkerStore, WorkerView};
use crate::error::Result;

#[async_trait]
impl WorkerStore for PostgresStore {
    async fn beat(&self, params: Beat) -> Result<Vec<Lease>> {
        self.write_beside(params, run!(beat)).await
    }

    async fn attach_worker(&self, params: AttachWorker) -> Result<LookedAtClock> {
        self.write_about(Topic::Workers, params, run!(attach)).await
    }

    async fn detach_worker(&self, worker: WorkerId) -> Result<()> {
        self.write_about(Topic::Workers, worker, run!(detach)).await
    }

    async fn forget_workers(&self, silent: Vec<LastBeat>) -> Result<()> {
        self.write_about(Topic::Workers, silent, run!(forget)).await
    }

    async fn note_holds(&self, worker: WorkerId, holds: Vec<Hold>) -> Result<()> {
        self.write_about(Topic::Workers, (worker, holds), run!(note_holds)).await
    }

    async fn list_workers(&self) -> Result<Vec<WorkerView>> {
        self.read((), run!(list)).await
    }
}

async fn attach(batch: &mut Batch, params: &AttachWorker) -> Result<LookedAtClock, Fault> {
    let AttachWorker { beat, definitions, uptime } = params;
    enlist(batch, beat).await?;
    extend(batch, beat).await?;
    definitions::note(batch, definitions, beat.now).await?;
    clock::look(batch, beat.now, uptime.as_ref()).await
}

async fn beat(batch: &mut Batch, beat: &Beat) -> Result<Vec<Lease>, Fault> {
    enlist(batch, beat).await?;
    extend(batch, beat).await
}

async fn detach(batch: &mut Batch, worker: &WorkerId) -> Result<(), Fault> {
    batch.conn().execute("DELETE FROM worker WHERE id = $1", args![worker]).await?;
    Ok(())
}

async fn forget(batch: &mut Batch, silent: &[LastBeat]) -> Result<(), Fault> {
    for beat in silent {
        let sql =
            "DELETE FROM worker WHERE id = $1 AND seen_at = $2 AND NOT EXISTS (SELECT 1 FROM lease WHERE worker = $1)";
        batch.conn().execute(sql, args![beat.worker, beat.seen_at]).await?;
    }
    Ok(())
}

async fn note_holds(batch: &mut Batch, (worker, holds): &(WorkerId, Vec<Hold>)) -> Result<(), Fault> {
    let sql = "UPDATE worker SET holds = $2 WHERE id = $1";
    batch.conn().execute(sql, args![worker, serde_json::to_string(holds)?]).await?;
    Ok(())
}

async fn list(conn: &Conn, (): &()) -> Result<Vec<WorkerView>, Fault> {
    let sql = "SELECT w.id, w.host, w.pid, w.remote, w.runs, w.attached_at, w.seen_at, w.holds,
                      (SELECT count(*) FROM lease l WHERE l.worker = w.id)
               FROM worker w ORDER BY w.attached_at, w.id";
    conn.query(sql, args![], view).await
}

fn view(row: &Row<'_>) -> Result<WorkerView, Fault> {
    Ok(WorkerView {
        id: rows::worker_id(row, 0)?,
        host: row.get(1)?,
        pid: row.get(2)?,
        remote: row.get(3)?,
        runs: rows::json(row, 4)?,
        attached_at: rows::time(row, 5)?,
        seen_at: rows::time(row, 6)?,
        leases: row.get(8)?,
        alive: true,
        proven: false,
        holds: rows::json(row, 7)?,
    })
}

/// Puts a worker on the list, or notes that it still lives. Only what others may wait for is told to them.
async fn enlist(batch: &mut Batch, beat: &Beat) -> Result<(), Fault> {
    let runs = serde_json::to_string(&beat.runs)?;
    let sql = "UPDATE worker SET seen_at = $2 WHERE id = $1 AND runs = $3";
    if batch.conn().execute(sql, args![beat.worker, beat.now, runs]).await? == 1 {
        return Ok(());
    }
    let sql =
        "INSERT INTO worker (id, host, pid, remote, runs, attached_at, seen_at) VALUES ($1, $2, $3, $4, $5, $6, $6)
               ON CONFLICT (id) DO UPDATE SET runs = excluded.runs, seen_at = excluded.seen_at";
    let new = args![beat.worker, beat.host, beat.pid, beat.remote, runs, beat.now];
    batch.conn().execute(sql, new).await?;
    batch.touch(Topic::Workers);
    Ok(())
}

/// Extends leases; says which of them still hold.
async fn extend(batch: &Batch, beat: &Beat) -> Result<Vec<Lease>, Fault> {
    if beat.leases.is_empty() {
        return Ok(Vec::new());
    }
    let (jobs, tokens) = pairs(&beat.leases);
    let sql = "UPDATE lease l SET until = $3 FROM unnest($1::uuid[], $2::uuid[]) AS u(job, token)
               WHERE l.job = u.job AND l.token = u.token RETURNING l.job, l.token";
    let held = batch
        .conn()
        .query(sql, args![jobs, tokens, beat.until], |row| Ok((rows::job_id(row, 0)?, rows::token(row, 1)?)));
    let held = held.await?;
    Ok(beat.leases.iter().filter(|lease| held.contains(&(lease.job, lease.token))).copied().collect())
}
