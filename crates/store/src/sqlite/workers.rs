//! Workers: a row for others to see and a lock file to notice their death by.

use async_trait::async_trait;
use redrive_core::holds::Hold;
use redrive_core::ids::WorkerId;
use redrive_core::time::Timestamp;
use rusqlite::params;

use super::SqliteStore;
use super::batch::Batch;
use super::fault::Fault;
use super::obstacles;
use super::rows::{self, RowResult};
use crate::contract::{AttachWorker, Topic, WorkerStore, WorkerView};
use crate::error::{Result, StoreError};

#[async_trait]
impl WorkerStore for SqliteStore {
    async fn attach_worker(&self, params: AttachWorker) -> Result<()> {
        // The lock comes first: a row without one would be taken for a dead worker's.
        self.presence.enter(params.worker).map_err(|error| self.lock_error(params.worker, &error))?;
        self.write_about(Topic::Workers, move |batch| enlist(batch, params.worker, params.pid, params.now)).await
    }

    async fn detach_worker(&self, worker: WorkerId) -> Result<()> {
        self.remove_workers(vec![worker]).await
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
                "SELECT w.id, w.pid, w.attached_at, count(l.job), w.holds FROM worker w LEFT JOIN lease l ON l.worker = w.id
                 GROUP BY w.id ORDER BY w.attached_at",
            )?;
            let rows = select.query_map([], |row| {
                let id = rows::worker_id(row, 0)?;
                Ok(WorkerView {
                    id,
                    alive: !presence.is_gone(id),
                    pid: row.get(1)?,
                    attached_at: rows::time(row, 2)?,
                    leases: row.get(3)?,
                    holds: rows::json(row, 4)?,
                })
            })?;
            Ok(rows.collect::<RowResult<_>>()?)
        })
        .await
    }
}

/// Puts a worker on the list, unless it is there.
pub(super) fn enlist(batch: &Batch<'_>, worker: WorkerId, pid: u32, now: Timestamp) -> Result<(), Fault> {
    let mut insert = batch.statement("INSERT OR IGNORE INTO worker (id, pid, attached_at) VALUES (?1, ?2, ?3)")?;
    insert.execute(params![worker.as_bytes(), pid, now.as_millis()])?;
    Ok(())
}

impl SqliteStore {
    fn lock_error(&self, worker: WorkerId, error: &std::io::Error) -> StoreError {
        obstacles::refusal(self.path(), &format!("the lock file of worker {worker}: {error}"))
    }

    /// Makes sure that others see a worker of this process as alive.
    pub(super) fn show_presence(&self, worker: WorkerId) -> Result<()> {
        self.presence.stay(worker).map_err(|error| self.lock_error(worker, &error))
    }

    /// Takes workers whose process is gone off the list. Leases of a worker that is not on the list are lost.
    pub(super) async fn bury_workers(&self) -> Result<()> {
        let presence = self.presence.clone();
        let gone: Vec<WorkerId> = self
            .read(move |conn| {
                let mut select = conn.prepare_cached("SELECT id FROM worker")?;
                let workers = select.query_map([], |row| rows::worker_id(row, 0))?.collect::<RowResult<Vec<_>>>()?;
                Ok(workers.into_iter().filter(|worker| presence.is_gone(*worker)).collect())
            })
            .await?;
        if gone.is_empty() {
            return Ok(());
        }
        tracing::info!(workers = gone.len(), "workers are gone; their jobs are taken back");
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
