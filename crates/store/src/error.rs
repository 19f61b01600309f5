//! What can go wrong in a store, as far as a caller can act on it.

use std::path::PathBuf;

use redrive_core::ids::PipelineName;
use redrive_core::state::IllegalMove;

/// The result of a store's verb.
pub type Result<T, E = StoreError> = std::result::Result<T, E>;

/// Why a verb had no effect.
#[derive(Clone, Debug, thiserror::Error)]
pub enum StoreError {
    /// The pipeline's queue is full: nothing of the batch was accepted.
    #[error(
        "the queue of pipeline {pipeline} is full: {queued} of at most {max} jobs are queued; work on them, or raise max_queued"
    )]
    QueueFull {
        /// The pipeline.
        pipeline: PipelineName,
        /// Jobs queued now.
        queued: u64,
        /// Jobs that may be queued.
        max: u64,
    },
    /// There is no store at the path, and none was to be made.
    #[error("no store at {}: `redrive run` or `redrive push` makes one; name another with --store", .0.display())]
    Missing(PathBuf),
    /// The file was made by a newer version.
    #[error("{} was made by a newer version of redrive (schema {found}, this one knows {known}): upgrade redrive", .path.display())]
    NewerSchema {
        /// The file.
        path: PathBuf,
        /// Its schema version.
        found: i64,
        /// The newest version known here.
        known: i64,
    },
    /// The file is not a store.
    #[error("{} is not a redrive store: {why}; name another file with --store", .path.display())]
    NotAStore {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// Another process kept the file locked for too long.
    #[error("{} is locked by another process: try again, or find it with `fuser`", .0.display())]
    Locked(PathBuf),
    /// The disk is full; nothing of the batch was written.
    #[error("the disk is full: {} could not be written; make room and run the same command again, nothing that was acknowledged is lost", .0.display())]
    DiskFull(PathBuf),
    /// The file is empty or missing, but something is left of the store that it was.
    #[error(
        "{} is {state}, but {} is there: it was a store, and to begin anew would destroy what is left of it; put a copy of it back, or {way_out}",
        .path.display(), .left.display()
    )]
    Emptied {
        /// The file.
        path: PathBuf,
        /// What it is now.
        state: &'static str,
        /// What is left.
        left: PathBuf,
        /// How to begin anew all the same.
        way_out: &'static str,
    },
    /// The file is of an older version and cannot be brought forward.
    #[error("{} was made by an older version of redrive (schema {found}, this one reads {known}) and cannot be brought forward: {why}", .path.display())]
    CannotMigrate {
        /// The file.
        path: PathBuf,
        /// Its schema version.
        found: i64,
        /// The version known here.
        known: i64,
        /// What is in the way.
        why: Box<StoreError>,
    },
    /// The file or its folder cannot be written.
    #[error("{} cannot be written: {why}", .path.display())]
    ReadOnly {
        /// The file.
        path: PathBuf,
        /// Why not.
        why: String,
    },
    /// The file was removed or replaced while it was open. What was settled since may be nowhere.
    #[error("the store {} was removed or replaced while it was in use: put it back if you can, then run the same command again", .0.display())]
    Gone(PathBuf),
    /// There is no such cause.
    #[error("no cause {0}: `redrive cause list --all` shows which there are")]
    NoCause(String),
    /// The beginning of an id fits several causes.
    #[error("several causes begin with {0}: give more of the id")]
    AmbiguousCause(String),
    /// Two causes that cannot be one.
    #[error("{from} cannot be merged into {into}: {why}")]
    CannotMerge {
        /// Which.
        from: String,
        /// Into which.
        into: String,
        /// Why not.
        why: &'static str,
    },
    /// A cause that cannot be split so.
    #[error("{cause} cannot be split so: {why}")]
    CannotSplit {
        /// Which.
        cause: String,
        /// Why not.
        why: &'static str,
    },
    /// There is no such replay.
    #[error("no replay {0}: `redrive replay list` shows which there are")]
    NoReplay(String),
    /// A text that is not the address of a store.
    #[error("{0:?} is not a store: expected sqlite:PATH or memory:")]
    InvalidLocation(String),
    /// A cursor that no list has given out.
    #[error("{0:?} is not a cursor: use the one that the list before it printed")]
    InvalidCursor(String),
    /// A move that the state table does not have.
    #[error(transparent)]
    IllegalMove(#[from] IllegalMove),
    /// The store was closed.
    #[error("the store is closed")]
    Closed,
    /// Anything else the database says.
    #[error("{}: {message}", .path.display())]
    Database {
        /// The file.
        path: PathBuf,
        /// What it says.
        message: String,
    },
}

impl StoreError {
    /// Whether the verb was refused before it wrote anything, so that others in the same transaction may go on.
    pub(crate) const fn is_refusal(&self) -> bool {
        matches!(
            self,
            Self::QueueFull { .. }
                | Self::NoCause(_)
                | Self::AmbiguousCause(_)
                | Self::CannotMerge { .. }
                | Self::CannotSplit { .. }
                | Self::NoReplay(_)
                | Self::InvalidCursor(_)
        )
    }

    /// Whether the store itself is in trouble, so that every operation of a transaction fails alike.
    pub(crate) const fn is_about_the_store(&self) -> bool {
        matches!(
            self,
            Self::Locked(_)
                | Self::DiskFull(_)
                | Self::ReadOnly { .. }
                | Self::NotAStore { .. }
                | Self::Gone(_)
                | Self::Closed
        )
    }
}
