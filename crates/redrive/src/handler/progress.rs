//! How far an attempt got: noted on disk, so that a worker that is killed does not have to begin, and pay, again.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use redrive_core::failures::FailureReport;
use redrive_core::jobs::Lease;
use redrive_store::Store;
use redrive_store::contract::NoteProgress;
use serde_json::Value;

use super::HandlerError;
use super::isolated::Parent;

/// A job's progress.
#[derive(Clone, Default)]
pub struct Progress {
    value: Option<Value>,
    noting: Noting,
}

/// Where progress is noted.
#[derive(Clone, Default)]
enum Noting {
    #[default]
    Nowhere,
    InStore(Arc<dyn Store>, Lease),
    /// By the worker, for an isolated job.
    ByParent(Parent),
    /// By whoever leased the job from a server.
    Elsewhere(Arc<dyn NotesProgress>, Lease),
}

/// Notes how far jobs got that a server leased.
#[async_trait]
pub trait NotesProgress: Send + Sync {
    /// Notes it, on disk; says whether the lease still holds, or why nobody knows.
    async fn note(&self, lease: Lease, progress: Option<Value>) -> Result<bool, String>;
}

impl fmt::Debug for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.value, f)
    }
}

impl Progress {
    pub(crate) fn new(value: Option<Value>, store: Arc<dyn Store>, lease: Lease) -> Self {
        Self { value, noting: Noting::InStore(store, lease) }
    }

    pub(crate) fn handed(value: Option<Value>, parent: Parent) -> Self {
        Self { value, noting: Noting::ByParent(parent) }
    }

    pub(crate) fn elsewhere(value: Option<Value>, notes: Arc<dyn NotesProgress>, lease: Lease) -> Self {
        Self { value, noting: Noting::Elsewhere(notes, lease) }
    }

    /// What an earlier attempt noted.
    pub fn value(&self) -> Option<&Value> {
        self.value.as_ref()
    }

    /// Notes how far this attempt got; it is on disk when this returns. Nothing means that the next one begins anew.
    pub async fn note(&self, progress: Option<Value>) -> Result<(), HandlerError> {
        let noted = match &self.noting {
            Noting::Nowhere => return Ok(()),
            Noting::InStore(store, lease) => {
                let noted = store.note_progress(NoteProgress { lease: *lease, progress }).await;
                noted.map_err(|error| error.to_string())
            }
            Noting::Elsewhere(notes, lease) => notes.note(*lease, progress).await,
            Noting::ByParent(parent) => {
                parent.note_progress(progress).await;
                return Ok(());
            }
        };
        match noted {
            Ok(true) => Ok(()),
            Ok(false) => Err(FailureReport::message("another worker has the task now").with_code("lease_lost").into()),
            Err(error) => Err(HandlerError::Unavailable(format!("progress cannot be noted: {error}"))),
        }
    }
}
