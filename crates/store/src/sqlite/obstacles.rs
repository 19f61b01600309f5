//! Why a store cannot be written, as far as its place tells: SQLite says only that it cannot.

use std::path::Path;

use rustix::fs::{Access, StatVfsMountFlags, access, statvfs};
use rustix::io::Errno;

use super::view::beside;
use crate::error::StoreError;

const MIB: u64 = 1024 * 1024;

/// Free space below which not even the index of the write-ahead log fits, in bytes.
const FREE_BYTES_MIN: u64 = 64 * 1024;

/// What is in the way of writing to a store, if it can be told.
pub(super) fn of(path: &Path) -> Option<StoreError> {
    let folder = folder_of(path);
    let disk = statvfs(folder).ok()?;
    let place = || path.display().to_string();
    let read_only = |why: &str| Some(StoreError::ReadOnly { place: place(), why: why.to_owned() });
    if disk.f_flag.contains(StatVfsMountFlags::RDONLY) {
        return read_only("it is on a read-only file system");
    }
    if disk.f_bavail.saturating_mul(disk.f_frsize) < FREE_BYTES_MIN {
        return Some(full(path));
    }
    if has_no_files(path) {
        return Some(StoreError::Unavailable { place: place(), why: "too many files are open".to_owned() });
    }
    if path.exists() && access(path, Access::WRITE_OK).is_err() {
        return read_only("this user may not write the file");
    }
    if access(folder, Access::WRITE_OK | Access::EXEC_OK).is_err() {
        return read_only("this user may not write its folder, where its write-ahead log goes");
    }
    None
}

/// Returns true if no file can be opened, because this process or the machine has too many open.
fn has_no_files(path: &Path) -> bool {
    let opened = std::fs::File::open(path);
    opened.is_err_and(|error| matches!(Errno::from_io_error(&error), Some(Errno::MFILE | Errno::NFILE)))
}

/// The error of a full disk. Names the log if it has a part in it.
pub(super) fn full(path: &Path) -> StoreError {
    let log = beside(path, "-wal");
    let bytes = std::fs::metadata(&log).map_or(0, |found| found.len());
    let place = match bytes / MIB {
        0 => path.display().to_string(),
        mib => format!("{} (its log {} has {mib} MiB)", path.display(), log.display()),
    };
    StoreError::DiskFull { place }
}

/// The same, or `why` if it cannot be told.
pub(super) fn refusal(path: &Path, why: &str) -> StoreError {
    of(path).unwrap_or_else(|| StoreError::ReadOnly { place: path.display().to_string(), why: why.to_owned() })
}

/// The folder of a file.
fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_disk_names_the_log_that_has_a_part_in_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("redrive.db");
        let log = std::fs::File::create(beside(&path, "-wal")).expect("made");
        assert!(!full(&path).to_string().contains("-wal"));
        log.set_len(3 * MIB).expect("lengthened");
        assert!(full(&path).to_string().contains("redrive.db-wal has 3 MiB"));
    }
}
