//! Backups: a store in a file, with the payloads of its folder, as one archive that any `tar` reads.
//!
//! - `archive`: what is in it
//! - `make`: writing one while the store is in use
//! - `restore`: making a store of it again

mod archive;
mod make;
mod restore;

use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::error::ErrorKind;

/// Why a backup is not made or not restored.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// The store is not in a file.
    #[error(
        "{place} is not in a file: only a SQLite store is backed up and restored here; on PostgreSQL, pg_dump does it"
    )]
    NotInAFile {
        /// Where it is.
        place: String,
    },
    /// Something is there already.
    #[error("{} is there already: {way_out}", .path.display())]
    Taken {
        /// Where.
        path: PathBuf,
        /// What to do about it.
        way_out: &'static str,
    },
    /// Payloads are in the backup, and the vault is not a folder.
    #[error(
        "the backup has payloads, which are restored to a folder, and the vault is {vault}: take `vault` out of redrive.toml for it"
    )]
    VaultNotAFolder {
        /// Where the vault is.
        vault: String,
    },
    /// The file is not a backup, or not all of one.
    #[error("{} is not a whole backup: {why}", .path.display())]
    NotWhole {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// A file could not be read or written.
    #[error("cannot {doing} {}", .path.display())]
    Io {
        /// What was being done.
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// What went wrong.
        source: io::Error,
    },
}

impl BackupError {
    /// What it means to who asked.
    pub const fn kind(&self) -> ErrorKind {
        match self {
            Self::NotInAFile { .. } | Self::NotWhole { .. } => ErrorKind::Invalid,
            Self::Taken { .. } | Self::VaultNotAFolder { .. } => ErrorKind::Refused,
            Self::Io { .. } => ErrorKind::Failed,
        }
    }

    /// Something went wrong with a file.
    fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { doing, path: path.to_owned(), source }
    }
}

/// Problems that are named; the others are counted.
const NAMED_MAX: usize = 20;

/// What a backup has, or what was restored from one.
#[derive(Clone, Debug, Default, Serialize)]
pub struct BackedUp {
    /// Tasks that the store ever accepted and has not forgotten.
    pub tasks: u64,
    /// Payloads in the archive.
    pub payloads: u64,
    /// Bytes of the archive.
    pub bytes: u64,
    /// Where payloads stay, if they are not part of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vault: Option<String>,
    /// What is not as it should be: of the audit, and payloads that are gone or damaged. They are as they were in the store.
    pub problems: Vec<String>,
}
