//! What can go wrong in a store, as far as a caller can act on it.
//!
//! An error names the place where it happened, as text, and what is wrong there. It knows neither files nor commands: whoever
//! speaks to a person adds the way out.

use std::fmt::Display;
use std::time::Duration;

use redrive_core::ids::PipelineName;
use redrive_core::outages::Obstacle;
use redrive_core::policy::Exceeded;
use redrive_core::state::IllegalMove;

/// The result of a store's verb.
pub type Result<T, E = StoreError> = std::result::Result<T, E>;

/// Why a verb had no effect.
#[derive(Clone, Debug, thiserror::Error)]
pub enum StoreError {
    /// The pipeline's queue is full: nothing of the batch was accepted.
    #[error("the queue of pipeline {pipeline} is full: {queued} of at most {max} tasks are queued")]
    QueueFull {
        /// The pipeline.
        pipeline: PipelineName,
        /// Jobs queued now.
        queued: u64,
        /// Jobs that may be queued.
        max: u64,
    },
    /// The pipeline has too many dead letters: nothing of the batch was accepted.
    #[error("pipeline {pipeline} has {letters} dead letters, and at {max} nothing more is enqueued")]
    LettersFull {
        /// The pipeline.
        pipeline: PipelineName,
        /// Dead letters now.
        letters: u64,
        /// Dead letters at which an enqueue is refused.
        max: u64,
    },
    /// There is no store at the place, and none was to be made.
    #[error("no store at {place}")]
    Missing {
        /// Where.
        place: String,
    },
    /// The store was made by a newer version.
    #[error("{place} was made by a newer version of redrive (schema {found}, this one knows {known})")]
    NewerSchema {
        /// Where.
        place: String,
        /// Its schema version.
        found: i64,
        /// The newest version known here.
        known: i64,
    },
    /// What is at the place is not a store.
    #[error("{place} is not a redrive store: {why}")]
    NotAStore {
        /// Where.
        place: String,
        /// What is wrong with it.
        why: String,
    },
    /// Others kept the store busy for too long. Nothing was written; the same call may go through a little later.
    #[error("{place} is locked by another process")]
    Busy {
        /// Where.
        place: String,
        /// When it is worth another try.
        retry_after: Duration,
    },
    /// The store does not answer. Nothing of what was asked is written, unless `why` says that nobody knows.
    #[error("{place} does not answer: {why}")]
    Unavailable {
        /// Where.
        place: String,
        /// What went wrong last.
        why: String,
    },
    /// The store stopped to answer at the last moment, and was waited for already: what was asked is written or it is not. Asked again
    /// under the same ids and tokens, it is written once.
    #[error("{place} does not answer: {why}; whether what was asked last is written is not known")]
    Unanswered {
        /// Where.
        place: String,
        /// What went wrong last.
        why: String,
    },
    /// The store does not let this user in, or not do this. Nothing was written, and waiting does not help.
    #[error("{place} refuses: {why}")]
    Refused {
        /// Where.
        place: String,
        /// Why, and what would have to be changed there.
        why: String,
    },
    /// The disk is full; nothing of the batch was written.
    #[error("the disk is full: {place} could not be written")]
    DiskFull {
        /// Where.
        place: String,
    },
    /// There is not enough free space for what was asked.
    #[error("{place} needs {needed_bytes} bytes of free space for that, and has {free_bytes}")]
    NoRoom {
        /// Where.
        place: String,
        /// Bytes that are needed.
        needed_bytes: u64,
        /// Bytes that are free.
        free_bytes: u64,
    },
    /// The store is empty or missing, but something is left of the one that it was.
    #[error(
        "{place} is {state}, but {left} is there: it was a store, and to begin anew would destroy what is left of it; put a copy of it back, or {way_out}"
    )]
    Emptied {
        /// Where.
        place: String,
        /// What it is now.
        state: &'static str,
        /// What is left.
        left: String,
        /// How to begin anew all the same.
        way_out: &'static str,
    },
    /// The store is of an older version and cannot be brought forward.
    #[error(
        "{place} was made by an older version of redrive (schema {found}, this one reads {known}) and cannot be brought forward: {why}"
    )]
    CannotMigrate {
        /// Where.
        place: String,
        /// Its schema version.
        found: i64,
        /// The version known here.
        known: i64,
        /// What is in the way.
        why: Box<StoreError>,
    },
    /// The store cannot be written.
    #[error("{place} cannot be written: {why}")]
    ReadOnly {
        /// Where.
        place: String,
        /// Why not.
        why: String,
    },
    /// Several processes could not use the store without losing what others write.
    #[error("{place} cannot be used: {why}")]
    Unsafe {
        /// Where.
        place: String,
        /// Why, and the way out.
        why: String,
    },
    /// The store or its log was removed or replaced while it was open. What was settled since may be nowhere.
    #[error("{place} was removed or replaced while it was in use")]
    Gone {
        /// The file.
        place: String,
    },
    /// The store is being copied to another: nothing is written to it meanwhile.
    #[error("{place} is being copied to {to}: nothing can be written to it until that is done")]
    BeingCopied {
        /// Where.
        place: String,
        /// Where to.
        to: String,
    },
    /// The store is being filled from another, or that was stopped in the middle.
    #[error("{place} is an unfinished copy of {from}: nothing can be done with it until all has come over")]
    Unfinished {
        /// Where.
        place: String,
        /// Where from.
        from: String,
    },
    /// A store was to be filled, and has something of its own.
    #[error("{place} is not empty: it has {has}")]
    NotEmpty {
        /// Where.
        place: String,
        /// What it has.
        has: String,
    },
    /// A store was to be copied, and is worked on.
    #[error("{leases} tasks of {place} are leased")]
    Leased {
        /// Where.
        place: String,
        /// How many.
        leases: u64,
    },
    /// What a decision was made from has changed meanwhile: nothing was written, and it is to be made anew.
    #[error("{what} changed meanwhile")]
    Conflict {
        /// What changed.
        what: String,
    },
    /// More than is done in one step: nothing was done, and it is to be asked for in pieces.
    #[error("{what} is too much at once")]
    TooBroad {
        /// What was asked.
        what: String,
    },
    /// This kind of store does not have that.
    #[error("{place} has no way to give {what}")]
    Unsupported {
        /// Where.
        place: String,
        /// What was asked.
        what: &'static str,
    },
    /// There is no such cause.
    #[error("no cause {0}")]
    NoCause(String),
    /// The beginning of an id fits several causes.
    #[error("several causes begin with {0}: give more of the id")]
    AmbiguousCause(String),
    /// There is no such replay.
    #[error("no replay {0}")]
    NoReplay(String),
    /// A text that is not the address of a store.
    #[error("{text:?} is not a store: expected {known}")]
    InvalidLocation {
        /// The text.
        text: String,
        /// The addresses that are understood.
        known: String,
    },
    /// The address of a store with something wrong in it.
    #[error("the store {address} cannot be: {why}")]
    InvalidAddress {
        /// The address, without a password.
        address: String,
        /// What is wrong with it.
        why: String,
    },
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
    #[error("{place}: {message}")]
    Database {
        /// Where.
        place: String,
        /// What it says.
        message: String,
    },
}

/// What may be over after a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passing<'a> {
    /// What it is.
    pub obstacle: Obstacle,
    /// Where.
    pub place: &'a str,
    /// What is wrong there.
    pub why: &'a str,
}

/// When a store that was busy is worth another try: it was waited for already.
const RETRY_AFTER: Duration = Duration::from_millis(50);

impl StoreError {
    /// The refusal of an enqueue by a limit of its pipeline.
    pub fn exceeded(pipeline: &PipelineName, exceeded: Exceeded) -> Self {
        let pipeline = pipeline.clone();
        match exceeded {
            Exceeded::Queued { queued, max } => Self::QueueFull { pipeline, queued, max },
            Exceeded::Letters { letters, max } => Self::LettersFull { pipeline, letters, max },
        }
    }

    /// Others keep the store at a place busy.
    pub(crate) fn busy(place: impl Display) -> Self {
        Self::Busy { place: place.to_string(), retry_after: RETRY_AFTER }
    }

    /// The same error about what may have been written all the same.
    pub fn unanswered(self) -> Self {
        match self {
            Self::Unavailable { place, why } => Self::Unanswered { place, why },
            Self::Busy { place, .. } => Self::Unanswered { place, why: "it is locked by another process".to_owned() },
            other => other,
        }
    }

    /// Where, and what is wrong there, if it may be over after a while without anybody doing anything to what was asked: nothing of that
    /// is written, and the same call may go through then.
    pub fn passing(&self) -> Option<Passing<'_>> {
        let (obstacle, place, why) = match self {
            Self::Busy { place, .. } => (Obstacle::Locked, place, "another process has it locked"),
            Self::Unavailable { place, why } => (Obstacle::Away, place, why.as_str()),
            Self::DiskFull { place } => (Obstacle::Full, place, "its disk is full"),
            _ => return None,
        };
        Some(Passing { obstacle, place, why })
    }

    /// Whether the verb was refused before it wrote anything, so that others in the same transaction may go on.
    pub(crate) const fn is_refusal(&self) -> bool {
        matches!(
            self,
            Self::QueueFull { .. }
                | Self::LettersFull { .. }
                | Self::NotEmpty { .. }
                | Self::Leased { .. }
                | Self::Conflict { .. }
                | Self::TooBroad { .. }
                | Self::NoCause(_)
                | Self::AmbiguousCause(_)
                | Self::NoReplay(_)
                | Self::InvalidCursor(_)
        )
    }

    /// Whether the store itself is in trouble, so that every operation of a transaction fails alike.
    pub(crate) const fn is_about_the_store(&self) -> bool {
        matches!(
            self,
            Self::Busy { .. }
                | Self::Unavailable { .. }
                | Self::Unanswered { .. }
                | Self::DiskFull { .. }
                | Self::ReadOnly { .. }
                | Self::Refused { .. }
                | Self::NotAStore { .. }
                | Self::Unsafe { .. }
                | Self::Gone { .. }
                | Self::BeingCopied { .. }
                | Self::Unfinished { .. }
                | Self::Closed
        )
    }
}
