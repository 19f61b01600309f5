//! The lock files by which the processes on one file notice that a worker is gone.
//!
//! Each worker holds a lock on a file of its own beside the database. The operating system frees it the moment the
//! process ends, however it ends; who can take the lock knows that the worker is dead.

use std::collections::HashMap;
use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use redrive_core::ids::WorkerId;

use super::view::beside;
use crate::host;

/// Ends the name of the folder beside a store that the lock files are in.
pub(super) const WORKERS: &str = "-workers";

/// The workers of this process, and how to ask after those of others.
#[derive(Clone)]
pub(super) struct Presence {
    /// The database. `None` where no other process can reach the store.
    database: Option<PathBuf>,
    held: Arc<Mutex<HashMap<WorkerId, Option<File>>>>,
}

impl Presence {
    /// Beside the database itself: whoever comes by another path or link finds the same folder.
    pub(super) fn beside(database: &Path) -> Self {
        let database = database.canonicalize().unwrap_or_else(|_| database.to_owned());
        Self { database: Some(database), held: Arc::default() }
    }

    pub(super) fn single_process() -> Self {
        Self { database: None, held: Arc::default() }
    }

    fn held(&self) -> MutexGuard<'_, HashMap<WorkerId, Option<File>>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_file(&self, worker: WorkerId) -> Option<PathBuf> {
        self.database.as_ref().map(|database| beside(database, WORKERS).join(format!("{worker}.lock")))
    }

    /// Shows that a worker of this process lives; says whether its death will be proven. It is not where there are no locks.
    pub(super) fn enter(&self, worker: WorkerId) -> io::Result<bool> {
        let Some(path) = self.lock_file(worker) else {
            self.held().insert(worker, None);
            return Ok(true);
        };
        path.parent().map_or(Ok(()), std::fs::create_dir_all)?;
        loop {
            let file = OpenOptions::new().create(true).truncate(false).write(true).open(&path)?;
            let locked = match file.lock() {
                Ok(()) => true,
                Err(error) if has_no_locks(&error) => false,
                Err(error) => return Err(error),
            };
            // Somebody may have removed it between the two: a lock on a file that nobody finds proves nothing.
            if is_at(&file, &path) {
                self.held().insert(worker, locked.then_some(file));
                return Ok(locked);
            }
        }
    }

    /// Shows again that a worker of this process lives, if it was not shown or its file was taken away.
    pub(super) fn stay(&self, worker: WorkerId) -> io::Result<bool> {
        let held = self.held().get(&worker).map(|lock| lock.is_some() || self.database.is_none());
        match (held, self.lock_file(worker)) {
            (Some(proven), None) => Ok(proven),
            (Some(proven), Some(path)) if path.exists() => Ok(proven),
            _ => self.enter(worker),
        }
    }

    /// Removes what is left of a worker: of this process, or one that is gone.
    pub(super) fn leave(&self, worker: WorkerId) {
        let own = self.held().remove(&worker);
        let Some(path) = self.lock_file(worker) else { return };
        // A worker that was taken for gone may have come back: while somebody has the lock, its file stays. Nothing depends on one
        // that stays for another reason; it is only untidy.
        let lock = File::open(&path).ok().filter(|file| own.is_some() || file.try_lock().is_ok());
        if lock.is_some() {
            let _ = std::fs::remove_file(path);
        }
    }

    /// What is known of a worker that has, or had, a lock on a running system.
    pub(super) fn of(&self, shown: &Shown) -> Known {
        if self.held().get(&shown.worker).is_some_and(|lock| lock.is_some() || self.database.is_none()) {
            return Known::Alive;
        }
        let Some(boot) = shown.boot.as_deref() else { return Known::Unproven };
        let Some(path) = self.lock_file(shown.worker) else { return Known::Gone };
        let lock_is_free = match File::open(path) {
            Ok(file) => file.try_lock().is_ok(),
            Err(error) => error.kind() == io::ErrorKind::NotFound,
        };
        // Older versions did not tell. A host that was started anew since has none of its former processes.
        let same_system = boot.is_empty() || boot == host::boot();
        match (lock_is_free, same_system) {
            (true, true) => Known::Gone,
            (true, false) if shown.host == host::host() => Known::Gone,
            (false, true) => Known::Alive,
            _ => Known::Unproven,
        }
    }
}

/// How a worker shows that it lives.
pub(super) struct Shown {
    pub(super) worker: WorkerId,
    pub(super) host: String,
    /// The running system whose lock it has; nothing if it has none.
    pub(super) boot: Option<String>,
}

/// What is known of a worker's process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Known {
    /// It is proven to live.
    Alive,
    /// It is proven to be gone.
    Gone,
    /// Only its heartbeats tell.
    Unproven,
}

/// Whether a file is the one at a path.
fn is_at(file: &File, path: &Path) -> bool {
    let number = |found: Metadata| (found.dev(), found.ino());
    file.metadata().map(number).ok() == std::fs::metadata(path).map(number).ok()
}

/// Whether a file system, of a network for instance, has no locks.
fn has_no_locks(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let known = [Errno::NOLCK, Errno::NOTSUP, Errno::OPNOTSUPP, Errno::NOSYS].map(Errno::raw_os_error);
    error.kind() == io::ErrorKind::Unsupported || error.raw_os_error().is_some_and(|code| known.contains(&code))
}

#[cfg(test)]
mod tests {
    use super::*;
    use redrive_core::time::Timestamp;

    fn worker() -> WorkerId {
        WorkerId::new(Timestamp::from_millis(0), 1)
    }

    fn shown(host: &str, boot: Option<&str>) -> Shown {
        Shown { worker: worker(), host: host.to_owned(), boot: boot.map(str::to_owned) }
    }

    #[test]
    fn only_a_lock_of_this_system_proves_anything() {
        let folder = tempfile::tempdir().expect("a folder");
        let (here, there) =
            (Presence::beside(&folder.path().join("a.db")), Presence::beside(&folder.path().join("a.db")));
        assert!(here.enter(worker()).expect("entered"));
        let boot = host::boot();
        assert_eq!(there.of(&shown("any", Some(boot))), Known::Alive);
        assert_eq!(there.of(&shown("far", Some("other"))), Known::Unproven, "a lock over a network may not be seen");
        assert_eq!(there.of(&shown("any", None)), Known::Unproven, "it has no lock");
        drop(here);
        assert_eq!(there.of(&shown("any", Some(boot))), Known::Gone);
        assert_eq!(there.of(&shown("far", Some("other"))), Known::Unproven);
        assert_eq!(there.of(&shown(host::host(), Some("before"))), Known::Gone, "this host was started anew since");
    }

    /// Whoever takes a worker for gone removes its file only while nobody has the lock; a lock on a file that was removed meanwhile is
    /// taken anew.
    #[test]
    fn the_file_of_a_worker_that_came_back_stays() {
        let folder = tempfile::tempdir().expect("a folder");
        let [here, there] = [(); 2].map(|()| Presence::beside(&folder.path().join("a.db")));
        here.enter(worker()).expect("entered");
        there.leave(worker());
        let path = here.lock_file(worker()).expect("a path");
        assert!(path.exists(), "it is locked");
        // One that is opened and then removed by another, before it is locked, is not the one that others look at.
        let opened = File::open(&path).expect("opened");
        std::fs::remove_file(&path).expect("removed");
        assert!(!is_at(&opened, &path));
        assert!(here.stay(worker()).expect("entered again") && path.exists());
        assert_eq!(there.of(&shown("any", Some(host::boot()))), Known::Alive);
        drop(here);
        there.leave(worker());
        assert!(!path.exists(), "nobody has it any more");
    }

    #[test]
    fn a_file_system_without_locks_is_known_by_its_error() {
        assert!(has_no_locks(&io::Error::from_raw_os_error(rustix::io::Errno::NOLCK.raw_os_error())));
        assert!(!has_no_locks(&io::Error::from(io::ErrorKind::PermissionDenied)));
    }
}
