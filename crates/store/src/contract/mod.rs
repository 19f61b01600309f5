//! The store contract: batch verbs of the domain, one file per noun, `now` always passed in.
//!
//! A backend implements the traits and is then a [`Store`]. Everything it must hold to is written down as a test in
//! the conformance suite.

pub mod breakers;
pub mod dead;
pub mod jobs;
pub mod leases;
pub mod ledger;
pub mod pages;
pub mod payloads;
pub mod workers;

pub use breakers::{BreakerStore, BreakerView, SweepBreakers};
pub use dead::{DeadFilter, DeadStore, DiscardDead, ExpireDead, ImportDead, ListDead};
pub use jobs::{
    CancelJobs, DiscardRecord, EnqueueJobs, EnqueuedJob, JobDetail, JobFilter, JobStore, LateSettlement, ListJobs,
};
pub use leases::{
    ExtendLeases, FindLostLeases, LeaseJobs, LeaseStore, LeasedJobs, NoteProgress, SettleJobs, Settled, StartJobs,
};
pub use ledger::{Audit, AuditedPipeline, Health, HourlyCount, LedgerStore};
pub use pages::Page;
pub use payloads::{ListPayloads, PayloadStore, PayloadView, RegisterPayload, SweepPayloads};
pub use workers::{AttachWorker, WorkerStore, WorkerView};

/// All that a backend can do.
pub trait Store:
    JobStore + LeaseStore + DeadStore + LedgerStore + WorkerStore + BreakerStore + PayloadStore + Send + Sync
{
}

impl<T> Store for T where
    T: JobStore + LeaseStore + DeadStore + LedgerStore + WorkerStore + BreakerStore + PayloadStore + Send + Sync
{
}
