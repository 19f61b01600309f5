//! From where a store is read. One that can be written is read beside its writers. One that cannot, because its disk is full
//! or read-only, has no room for the shared index of its write-ahead log:
//!
//! - where that index is there already, it is read as it is;
//! - where the log is empty, the file is read as it lies, and whoever writes to it meanwhile is noticed;
//! - else the file and its log are read from a copy in the folder for temporary files.

use std::fs::Metadata;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rusqlite::{Connection, OpenFlags};
use tempfile::TempDir;

use super::fault::Fault;
use crate::error::StoreError;

/// From where a store is read.
#[derive(Clone, Debug)]
pub(super) struct View {
    path: PathBuf,
    how: How,
    /// Removed with the last that reads it.
    _copy: Option<Arc<TempDir>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum How {
    /// Beside its writers.
    Shared,
    /// The same, without the right to write.
    SharedReadOnly,
    /// As it lies on disk: nobody writes. How long it was and when it was last written.
    Still { written: (u64, i64, i64) },
}

impl View {
    /// A store that can be written.
    pub(super) fn shared(path: &Path) -> Self {
        Self { path: path.to_owned(), how: How::Shared, _copy: None }
    }

    /// A store that cannot be written.
    pub(super) fn without_writing(path: &Path) -> Result<Self, Fault> {
        let shared = Self { path: path.to_owned(), how: How::SharedReadOnly, _copy: None };
        if shared.works().is_ok() {
            return Ok(shared);
        }
        let unreadable = |error: std::io::Error| StoreError::Database {
            place: path.display().to_string(),
            message: format!("it cannot be read: {error}"),
        };
        let view = match has_log(path) {
            false => {
                let written = written(&std::fs::metadata(path).map_err(unreadable)?);
                Self { how: How::Still { written }, ..shared }
            }
            true => copy(path).map_err(unreadable)?,
        };
        view.works()?;
        Ok(view)
    }

    fn works(&self) -> Result<(), Fault> {
        let conn = self.connect()?;
        Ok(conn.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?)
    }

    /// Opens a connection to read on.
    pub(super) fn connect(&self) -> Result<Connection, Fault> {
        let flags = OpenFlags::SQLITE_OPEN_NO_MUTEX;
        Ok(match self.how {
            How::Shared => Connection::open_with_flags(&self.path, flags | OpenFlags::SQLITE_OPEN_READ_WRITE)?,
            How::SharedReadOnly => Connection::open_with_flags(&self.path, flags | OpenFlags::SQLITE_OPEN_READ_ONLY)?,
            How::Still { .. } => {
                let flags = flags | OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
                Connection::open_with_flags(still_uri(&self.path), flags)?
            }
        })
    }

    /// It is an error if somebody wrote to a store that was read as it lies: what was read may be of two moments.
    pub(super) fn check(&self) -> Result<(), StoreError> {
        let How::Still { written: before } = self.how else { return Ok(()) };
        let now = std::fs::metadata(&self.path).map(|found| written(&found));
        match now.is_ok_and(|now| now == before) && !has_log(&self.path) {
            true => Ok(()),
            false => Err(StoreError::busy(self.path.display())),
        }
    }
}

/// A file beside the store.
pub(super) fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

/// Whether a store's write-ahead log has anything in it.
pub(super) fn has_log(path: &Path) -> bool {
    std::fs::metadata(beside(path, "-wal")).is_ok_and(|found| found.len() > 0)
}

fn written(found: &Metadata) -> (u64, i64, i64) {
    (found.len(), found.mtime(), found.mtime_nsec())
}

/// Copies a store and its log to where they can be opened.
fn copy(path: &Path) -> std::io::Result<View> {
    let folder = tempfile::Builder::new().prefix("redrive-read-").tempdir()?;
    let copied = folder.path().join("redrive.db");
    tracing::warn!(
        store = %path.display(), copy = %folder.path().display(),
        "the store cannot be written and has an unfinished log: a copy is read"
    );
    std::fs::copy(path, &copied)?;
    std::fs::copy(beside(path, "-wal"), beside(&copied, "-wal"))?;
    Ok(View { path: copied, how: How::Shared, _copy: Some(Arc::new(folder)) })
}

/// The address by which SQLite takes a file as one that nobody writes.
fn still_uri(path: &Path) -> String {
    let mut uri = String::from("file:");
    for byte in path.as_os_str().as_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'_' | b'.' => uri.push(char::from(*byte)),
            other => uri.push_str(&format!("%{other:02X}")),
        }
    }
    uri.push_str("?immutable=1");
    uri
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_path_is_an_address() {
        assert_eq!(still_uri(Path::new("a/b.db")), "file:a/b.db?immutable=1");
        assert_eq!(still_uri(Path::new("/what? 100%#1.db")), "file:/what%3F%20100%25%231.db?immutable=1");
    }
}
