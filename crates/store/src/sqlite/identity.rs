//! Which file a store is in. A file that is removed or replaced while it is open goes on taking writes, but nobody will
//! ever find them: so every transaction makes sure, before it is answered, that the open file is the one at the path.

use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::{Result, StoreError};

/// The file at a path as it was when it was opened.
#[derive(Clone, Debug)]
pub(super) struct Identity(Arc<Found>);

#[derive(Debug)]
struct Found {
    path: PathBuf,
    /// Device and number. Nothing in memory, where there is no file.
    file: Option<(u64, u64)>,
}

impl Identity {
    /// The file that is at a path now.
    pub(super) fn of(path: &Path) -> io::Result<Self> {
        let file = Some(number(&std::fs::metadata(path)?));
        Ok(Self(Arc::new(Found { path: path.to_owned(), file })))
    }

    /// For a store that has no file.
    pub(super) fn none() -> Self {
        Self(Arc::new(Found { path: PathBuf::new(), file: None }))
    }

    /// It is an error if another file, or none, is at the path by now.
    pub(super) fn check(&self) -> Result<()> {
        let Found { path, file: Some(file) } = &*self.0 else { return Ok(()) };
        match std::fs::metadata(path) {
            Ok(found) if number(&found) == *file => Ok(()),
            // A disk that is away for a moment is told by whoever reads or writes.
            Err(error) if !matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(()),
            _ => Err(StoreError::Gone { place: path.display().to_string() }),
        }
    }
}

fn number(found: &Metadata) -> (u64, u64) {
    (found.dev(), found.ino())
}
