//! The lock files by which the processes on one file notice that a worker is gone.
//!
//! Each worker holds a lock on a file of its own beside the database. The operating system frees it the moment the
//! process ends, however it ends; who can take the lock knows that the worker is dead.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use redrive_core::ids::WorkerId;

/// The workers of this process, and how to ask after those of others.
#[derive(Clone)]
pub(super) struct Presence {
    /// `None` where no other process can reach the store.
    folder: Option<PathBuf>,
    held: Arc<Mutex<HashMap<WorkerId, Option<File>>>>,
}

impl Presence {
    /// Beside the database itself: whoever comes by another path or link finds the same folder.
    pub(super) fn beside(database: &Path) -> Self {
        let database = database.canonicalize().unwrap_or_else(|_| database.to_owned());
        let mut folder = database.into_os_string();
        folder.push("-workers");
        Self { folder: Some(folder.into()), held: Arc::default() }
    }

    pub(super) fn single_process() -> Self {
        Self { folder: None, held: Arc::default() }
    }

    fn held(&self) -> MutexGuard<'_, HashMap<WorkerId, Option<File>>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_file(&self, worker: WorkerId) -> Option<PathBuf> {
        self.folder.as_ref().map(|folder| folder.join(format!("{worker}.lock")))
    }

    /// Shows that a worker of this process lives.
    pub(super) fn enter(&self, worker: WorkerId) -> io::Result<()> {
        let lock = match self.lock_file(worker) {
            Some(path) => {
                path.parent().map_or(Ok(()), std::fs::create_dir_all)?;
                let file = OpenOptions::new().create(true).truncate(false).write(true).open(path)?;
                file.lock()?;
                Some(file)
            }
            None => None,
        };
        self.held().insert(worker, lock);
        Ok(())
    }

    /// Shows again that a worker of this process lives, if its file was taken away.
    pub(super) fn stay(&self, worker: WorkerId) -> io::Result<()> {
        match self.lock_file(worker) {
            Some(path) if !path.exists() => self.enter(worker),
            _ => Ok(()),
        }
    }

    /// Removes what is left of a worker: of this process, or one that is gone.
    pub(super) fn leave(&self, worker: WorkerId) {
        self.held().remove(&worker);
        if let Some(path) = self.lock_file(worker) {
            // Nothing depends on it any more; a file that stays is only untidy.
            let _ = std::fs::remove_file(path);
        }
    }

    /// Whether a worker is known to be gone.
    pub(super) fn is_gone(&self, worker: WorkerId) -> bool {
        if self.held().contains_key(&worker) {
            return false;
        }
        let Some(path) = self.lock_file(worker) else { return true };
        match File::open(path) {
            Ok(file) => file.try_lock().is_ok(),
            Err(error) => error.kind() == io::ErrorKind::NotFound,
        }
    }
}
