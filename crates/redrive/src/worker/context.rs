//! What the tasks of one worker share.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use redrive_core::ids::{JobId, WorkerId};
use redrive_core::settlements::Ending;
use redrive_core::time::Timestamp;
use tokio::sync::{RwLock, watch};
use tokio_util::sync::CancellationToken;

use crate::engine::Redrive;
use crate::error::Error;

pub(super) struct Context {
    pub(super) redrive: Redrive,
    pub(super) id: WorkerId,
    /// Nothing more is leased or started once it is cancelled.
    pub(super) stop: CancellationToken,
    /// Running jobs are returned at once when it is cancelled.
    pub(super) hurry: CancellationToken,
    /// Jobs that share this process hold it together; a suspect holds it alone.
    pub(super) gate: RwLock<()>,
    /// Changes when any process has changed the store.
    pub(super) changed: watch::Sender<u64>,
    /// The jobs this worker has, each with the token that ends its run.
    held: Mutex<HashMap<JobId, CancellationToken>>,
    failure: Mutex<Option<Error>>,
}

impl Context {
    pub(super) fn new(redrive: Redrive, id: WorkerId) -> Self {
        Self {
            redrive,
            id,
            stop: CancellationToken::new(),
            hurry: CancellationToken::new(),
            gate: RwLock::default(),
            changed: watch::channel(0).0,
            held: Mutex::default(),
            failure: Mutex::default(),
        }
    }

    pub(super) fn now(&self) -> Timestamp {
        self.redrive.now()
    }

    fn held(&self) -> MutexGuard<'_, HashMap<JobId, CancellationToken>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that this worker has a job; the token is cancelled if it loses it.
    pub(super) fn hold(&self, job: JobId) -> CancellationToken {
        let token = CancellationToken::new();
        self.held().insert(job, token.clone());
        token
    }

    /// Whether this worker still has a job.
    pub(super) fn holds(&self, job: JobId) -> bool {
        self.held().contains_key(&job)
    }

    /// Notes that this worker no longer has a job.
    pub(super) fn release(&self, job: JobId) {
        self.held().remove(&job);
    }

    /// The jobs this worker has.
    pub(super) fn held_jobs(&self) -> Vec<JobId> {
        self.held().keys().copied().collect()
    }

    /// Ends the run of a job that this worker has lost.
    pub(super) fn lose(&self, job: JobId) {
        if let Some(token) = self.held().remove(&job) {
            token.cancel();
        }
    }

    /// Stops the worker for an error; the first one is kept.
    pub(super) fn fail(&self, error: Error) {
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        if failure.is_none() {
            *failure = Some(error);
        }
        self.stop.cancel();
    }

    pub(super) fn take_failure(&self) -> Option<Error> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// The circumstances of something that ends now.
    pub(super) fn ending(&self) -> Ending {
        Ending { at: self.now(), duration: None, worker: Some(self.id), chance: self.redrive.chance.fraction() }
    }
}
