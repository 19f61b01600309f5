//! Workers: the processes that hold leases, and how others notice that one is gone.

use async_trait::async_trait;
use redrive_core::clock::Uptime;
use redrive_core::definitions::Definition;
use redrive_core::holds::Hold;
use redrive_core::ids::{PipelineName, WorkerId};
use redrive_core::jobs::Lease;
use redrive_core::time::Timestamp;
use redrive_core::workers::{LastBeat, Presence, Runs};
use serde::{Deserialize, Serialize};

use super::clock::LookedAtClock;
use crate::error::Result;

/// Who works here.
#[async_trait]
pub trait WorkerStore {
    /// Shows that a worker lives, extends its leases and says which of them still hold: a worker that lost a job may have it
    /// again by another lease. The first heartbeat puts it on the list; leases of a worker that is not on it are lost.
    async fn beat(&self, params: Beat) -> Result<Vec<Lease>>;

    /// Puts a worker of this process on the list, notes what its pipelines are, and takes in a look at the clock, all at once; see
    /// [`beat`](WorkerStore::beat) and [`look_at_clock`](super::ClockStore::look_at_clock).
    async fn attach_worker(&self, params: AttachWorker) -> Result<LookedAtClock>;

    /// Takes a worker off the list. Its leases, if it left any, are lost then.
    async fn detach_worker(&self, worker: WorkerId) -> Result<()>;

    /// Takes workers off the list that have no leases and sent no heartbeat since the one that is named.
    async fn forget_workers(&self, silent: Vec<LastBeat>) -> Result<()>;

    /// Notes which pipelines a worker cannot work on for now, for others to see. They are forgotten with the worker.
    async fn note_holds(&self, worker: WorkerId, holds: Vec<Hold>) -> Result<()>;

    /// The workers that are registered.
    async fn list_workers(&self) -> Result<Vec<WorkerView>>;
}

/// A heartbeat.
#[derive(Clone, Debug)]
pub struct Beat {
    /// The worker.
    pub worker: WorkerId,
    /// Its host.
    pub host: String,
    /// Its process.
    pub pid: u32,
    /// Whether it is reached through this process and lives elsewhere: then it is never taken for gone while it has leases, and
    /// those end when they run out.
    pub remote: bool,
    /// What it runs.
    pub runs: Vec<Runs>,
    /// The leases it has.
    pub leases: Vec<Lease>,
    /// When they run out.
    pub until: Timestamp,
    /// The time.
    pub now: Timestamp,
}

/// A worker that begins.
#[derive(Clone, Debug)]
pub struct AttachWorker {
    /// Its first heartbeat.
    pub beat: Beat,
    /// Its pipelines, as far as they have a definition. Which version it runs is told by its heartbeats.
    pub definitions: Vec<(PipelineName, Definition)>,
    /// How long the machine has been running, if that is known.
    pub uptime: Option<Uptime>,
}

/// A registered worker.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct WorkerView {
    /// Its id.
    pub id: WorkerId,
    /// Its host.
    pub host: String,
    /// Its process.
    pub pid: u32,
    /// Whether it lives elsewhere and is never taken for gone while it has leases.
    pub remote: bool,
    /// What it runs.
    pub runs: Vec<Runs>,
    /// Since when it works.
    pub attached_at: Timestamp,
    /// Its last heartbeat.
    pub seen_at: Timestamp,
    /// Leases it holds.
    pub leases: u64,
    /// Whether its process is not known to be gone; if it is, its leases are taken back by the next worker.
    pub alive: bool,
    /// Whether that is proven, rather than shown by heartbeats.
    pub proven: bool,
    /// Pipelines that it cannot work on for now.
    pub holds: Vec<Hold>,
}

impl WorkerView {
    /// Its last heartbeat, if silence is what it would be noticed by.
    pub fn unproven_beat(&self) -> Option<LastBeat> {
        (self.alive && !self.proven && !self.remote).then_some(self.last_beat())
    }

    /// The last word of a worker that lives elsewhere. It is never taken for gone while it has leases; without any it may be
    /// forgotten.
    pub fn remote_beat(&self) -> Option<LastBeat> {
        (self.remote && self.leases == 0).then_some(self.last_beat())
    }

    /// Whether it is to be reckoned with: its process lives, as far as is known, and where nothing proves that it was heard of not
    /// too long ago.
    pub fn is_at_work(&self, now: Timestamp) -> bool {
        self.alive && (self.proven || !self.last_beat().is_forgotten(now))
    }

    /// What is known of its process.
    pub fn presence(&self, now: Timestamp) -> Presence {
        Presence::of(self.alive, self.remote, self.unproven_beat(), now)
    }

    const fn last_beat(&self) -> LastBeat {
        LastBeat { worker: self.id, seen_at: self.seen_at }
    }
}
