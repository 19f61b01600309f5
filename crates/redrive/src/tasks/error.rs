//! Why tasks cannot be taken.

use std::io;

use crate::error::ErrorKind;

/// A line that cannot be a task.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{number}: {why}")]
pub struct BrokenLine {
    /// Its number in the file, from 1.
    pub number: u64,
    /// What is wrong with it.
    pub why: String,
}

/// Why a file of tasks cannot be taken.
#[derive(Debug, thiserror::Error)]
pub enum TasksError {
    /// It cannot be opened.
    #[error("cannot open {place}")]
    Unopened {
        /// The file.
        place: String,
        /// Why.
        source: io::Error,
    },
    /// It cannot be read.
    #[error("cannot read {place}")]
    Unreadable {
        /// The file.
        place: String,
        /// Why.
        source: io::Error,
    },
    /// There is no place for what does not fit into memory, or can be read only once.
    #[error("cannot make or use a temporary file")]
    NoTemporaryFile(#[source] io::Error),
    /// It is a folder.
    #[error("{0} is a folder, not a file of tasks")]
    Folder(String),
    /// It can be read only once, and was.
    #[error("{0} can be read only once")]
    Spent(String),
    /// It has broken lines and was to be taken whole or not at all.
    #[error("nothing was enqueued, the file has broken lines:\n  {}", .lines.iter().map(|line| format!("{place}:{line}")).collect::<Vec<_>>().join("\n  "))]
    Broken {
        /// The file.
        place: String,
        /// The first of them.
        lines: Vec<BrokenLine>,
    },
    /// It may be a file that was known by its lines and was changed since; nobody said that its tasks may run again.
    #[error(
        "{place} is not known in this form, and tasks of before are known only by their unchanged file: {new} of its tasks are new"
    )]
    Changed {
        /// The file.
        place: String,
        /// Tasks that would be new, as far as was looked.
        new: u64,
    },
    /// The queue has no room for the rest, or there are too many dead letters.
    #[error("{accepted} of the tasks were accepted before it")]
    Full {
        /// Tasks that were accepted.
        accepted: u64,
        /// How full it is.
        source: redrive_store::StoreError,
    },
}

impl TasksError {
    /// What it means to who asked.
    pub const fn kind(&self) -> ErrorKind {
        match self {
            Self::Folder(_) | Self::Broken { .. } | Self::Changed { .. } => ErrorKind::Invalid,
            Self::Full { .. } | Self::Spent(_) => ErrorKind::Refused,
            Self::Unopened { .. } | Self::Unreadable { .. } | Self::NoTemporaryFile(_) => ErrorKind::Failed,
        }
    }
}
