//! Workers: a row for others to see and a lock file to notice their death by.

use async_trait::async_trait;
use redrive_core::holds::Hold;
use redrive_core::ids::WorkerId;
use redrive_core::jobs::Lease;
use redrive_core::workers::LastBeat;
use rusqlite::{Row, params};

use super::SqliteStore;
use super::batch::Batch;
use super::fault::Fault;
use super::obstacles;
use super::presence::{Known, Presence, Shown};
use super::rows::{self, RowResult};
use super::{clock, definitions};
use crate::contract::{AttachWorker, Beat, LookedAtClock, Topic, WorkerStore, WorkerView};
use crate::error::{Result, StoreError};
use crate::host;

#[async_trait]
impl WorkerStore for SqliteStore {
    async fn beat(&self, params: Beat) -> Result<Vec<Lease>> {
        let proven = self.stay(&params)?;
        self.write(move |batch| {
            enlist(batch, &params, proven)?;
            extend(batch, &params)
        })
        .await
    }

    async fn attach_worker(&self, params: AttachWorker) -> Result<LookedAtClock> {
        let AttachWorker { beat, definitions, uptime } = params;
        let proven = self.stay(&beat)?;
        self.write_about(Topic::Workers, move |batch| {
            enlist(batch, &beat, proven)?;
            extend(batch, &beat)?;
            definitions::note(batch, &definitions, beat.now)?;
            clock::look(batch, beat.now, uptime.as_ref())
        })
        .await
    }

    async fn detach_worker(&self, worker: WorkerId) -> Result<()> {
        self.remove_workers(vec![worker]).await
    }

    async fn forget_workers(&self, silent: Vec<LastBeat>) -> Result<()> {
        let gone = self
            .write_about(Topic::Workers, move |batch| {
                let mut delete = batch.statement(
                    "DELETE FROM worker WHERE id = ?1 AND seen_at = ?2
                     AND NOT EXISTS (SELECT 1 FROM lease WHERE worker = ?1)",
                )?;
                let mut gone = Vec::new();
                for beat in &silent {
                    if delete.execute(params![beat.worker.as_bytes(), beat.seen_at.as_millis()])? == 1 {
                        gone.push(beat.worker);
                    }
                }
                Ok(gone)
            })
            .await?;
        gone.into_iter().for_each(|worker| self.presence.leave(worker));
        Ok(())
    }

    async fn note_holds(&self, worker: WorkerId, holds: Vec<Hold>) -> Result<()> {
        self.write_about(Topic::Workers, move |batch| {
            let mut update = batch.statement("UPDATE worker SET holds = ?2 WHERE id = ?1")?;
            update.execute(params![worker.as_bytes(), serde_json::to_string(&holds)?])?;
            Ok(())
        })
        .await
    }

    async fn list_workers(&self) -> Result<Vec<WorkerView>> {
        let presence = self.presence.clone();
        self.read(move |conn| {
            let mut select = conn.prepare_cached(
                "SELECT w.id, w.host, w.boot, w.pid, w.remote, w.runs, w.attached_at, w.seen_at, w.holds, ifnull(l.many, 0)
                 FROM worker w LEFT JOIN (SELECT worker, count(*) AS many FROM lease GROUP BY worker) l ON l.worker = w.id
                 ORDER BY w.attached_at",
            )?;
            let rows = select.query_map([], |row| view(row, &presence))?;
            Ok(rows.collect::<RowResult<_>>()?)
        })
        .await
    }
}

fn view(row: &Row<'_>, presence: &Presence) -> RowResult<WorkerView> {
    let known = known(row, presence)?;
    Ok(WorkerView {
        id: rows::worker_id(row, 0)?,
        host: row.get(1)?,
        pid: row.get(3)?,
        remote: row.get(4)?,
        runs: rows::json(row, 5)?,
        attached_at: rows::time(row, 6)?,
        seen_at: rows::time(row, 7)?,
        leases: row.get(9)?,
        alive: known != Known::Gone,
        proven: known != Known::Unproven,
        holds: rows::json(row, 8)?,
    })
}

/// What is known of a worker, from its id, host and running system.
fn known(row: &Row<'_>, presence: &Presence) -> RowResult<Known> {
    Ok(presence.of(&Shown { worker: rows::worker_id(row, 0)?, host: row.get(1)?, boot: row.get(2)? }))
}

/// Puts a worker on the list, or notes that it still lives. Only what others may wait for is told to them.
fn enlist(batch: &mut Batch<'_>, beat: &Beat, proven: bool) -> Result<(), Fault> {
    let runs = serde_json::to_string(&beat.runs)?;
    let boot = proven.then(host::boot);
    let mut update = batch.statement("UPDATE worker SET seen_at = ?2, boot = ?3 WHERE id = ?1 AND runs = ?4")?;
    if update.execute(params![beat.worker.as_bytes(), beat.now.as_millis(), boot, runs])? == 1 {
        return Ok(());
    }
    batch
        .statement(
            "INSERT INTO worker (id, host, boot, pid, remote, runs, attached_at, seen_at)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?7)
             ON CONFLICT DO UPDATE SET boot = excluded.boot, runs = excluded.runs, seen_at = excluded.seen_at",
        )?
        .execute(params![beat.worker.as_bytes(), beat.host, boot, beat.pid, beat.remote, runs, beat.now.as_millis()])?;
    batch.touch(Topic::Workers);
    Ok(())
}

/// Extends leases; says which of them still hold.
fn extend(batch: &Batch<'_>, beat: &Beat) -> Result<Vec<Lease>, Fault> {
    let mut update = batch.statement("UPDATE lease SET until = ?3 WHERE job = ?1 AND token = ?2")?;
    let mut still = Vec::new();
    for lease in &beat.leases {
        let Lease { job, token, .. } = lease;
        if update.execute(params![job.as_bytes(), token.as_bytes(), beat.until.as_millis()])? == 1 {
            still.push(*lease);
        }
    }
    Ok(still)
}

impl SqliteStore {
    /// Takes or keeps the lock that proves a worker's life; says whether there is one. The lock comes before the row: one that
    /// names a lock which nobody has would be taken for a dead worker's.
    fn stay(&self, beat: &Beat) -> Result<bool> {
        self.identity.check()?;
        if beat.remote {
            return Ok(false);
        }
        self.presence.stay(beat.worker).map_err(|error| self.lock_error(beat.worker, &error))
    }

    fn lock_error(&self, worker: WorkerId, error: &std::io::Error) -> StoreError {
        obstacles::refusal(self.path(), &format!("the lock file of worker {worker}: {error}"))
    }

    /// Takes workers whose process is proven to be gone off the list. Leases of a worker that is not on the list are lost.
    pub(super) async fn bury_workers(&self) -> Result<()> {
        let presence = self.presence.clone();
        let gone: Vec<WorkerId> = self
            .read(move |conn| {
                let mut select = conn.prepare_cached("SELECT id, host, boot FROM worker")?;
                let mut gone = Vec::new();
                let mut rows = select.query([])?;
                while let Some(row) = rows.next()? {
                    if known(row, &presence)? == Known::Gone {
                        gone.push(rows::worker_id(row, 0)?);
                    }
                }
                Ok(gone)
            })
            .await?;
        if gone.is_empty() {
            return Ok(());
        }
        tracing::info!(workers = gone.len(), "workers are gone; their tasks are taken back");
        self.remove_workers(gone).await
    }

    async fn remove_workers(&self, workers: Vec<WorkerId>) -> Result<()> {
        let gone = workers.clone();
        self.write_about(Topic::Workers, move |batch| {
            let mut delete = batch.statement("DELETE FROM worker WHERE id = ?1")?;
            for worker in &gone {
                delete.execute([worker.as_bytes()])?;
            }
            Ok(())
        })
        .await?;
        workers.into_iter().for_each(|worker| self.presence.leave(worker));
        Ok(())
    }
}
