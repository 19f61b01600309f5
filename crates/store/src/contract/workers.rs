//! Workers: the processes that hold leases, and how others notice that one is gone.

use async_trait::async_trait;
use redrive_core::holds::Hold;
use redrive_core::ids::WorkerId;
use redrive_core::time::Timestamp;
use serde::Serialize;

use crate::error::Result;

/// Who works here.
#[async_trait]
pub trait WorkerStore {
    /// Registers a worker. As far as the backend can tell, others notice at once when its process is gone.
    async fn attach_worker(&self, params: AttachWorker) -> Result<()>;

    /// Takes a worker off the list. Its leases, if it left any, are lost then.
    async fn detach_worker(&self, worker: WorkerId) -> Result<()>;

    /// Notes which pipelines a worker cannot work on for now, for others to see. They are forgotten with the worker.
    async fn note_holds(&self, worker: WorkerId, holds: Vec<Hold>) -> Result<()>;

    /// The workers that are registered.
    async fn list_workers(&self) -> Result<Vec<WorkerView>>;
}

/// Registers a worker.
#[derive(Clone, Debug)]
pub struct AttachWorker {
    /// Its id.
    pub worker: WorkerId,
    /// Its process.
    pub pid: u32,
    /// The time.
    pub now: Timestamp,
}

/// A registered worker.
#[derive(Clone, Debug, Serialize)]
pub struct WorkerView {
    /// Its id.
    pub id: WorkerId,
    /// Its process.
    pub pid: u32,
    /// Since when it works.
    pub attached_at: Timestamp,
    /// Leases it holds.
    pub leases: u64,
    /// Whether its process is known to live; if not, its leases are taken back by the next worker.
    pub alive: bool,
    /// Pipelines that it cannot work on for now.
    pub holds: Vec<Hold>,
}
