//! What can go wrong in the engine.

use std::io;

use redrive_core::ids::{InvalidName, PipelineName};
use redrive_core::jobs::KEY_BYTES_MAX;
use redrive_core::time::Timestamp;
use redrive_store::StoreError;
use redrive_store::contract::BreakerView;

/// Why the engine stopped, or did not begin. No job is lost by any of these.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A name that cannot be one.
    #[error(transparent)]
    Name(#[from] InvalidName),
    /// A job whose input is not a JSON object.
    #[error("a job's input must be a JSON object, not {0}")]
    InputNotAnObject(String),
    /// A job whose key is too long to be known by.
    #[error("a job's key of {0} bytes is too long: at most {KEY_BYTES_MAX} are allowed")]
    KeyTooLong(usize),
    /// A replay of nothing in particular.
    #[error("a replay needs a choice of dead letters: by cause, by filter or by id")]
    NothingChosen,
    /// A replay of letters by id and by filter at once.
    #[error("dead letters are chosen by id or by filter, not both")]
    ChosenTwice,
    /// The results could not be written; their jobs are queued again.
    #[error("cannot write results to {place}")]
    Sink {
        /// Where they were to go.
        place: String,
        /// What went wrong.
        source: io::Error,
    },
    /// Whoever read the results has gone, and nobody else can come; their jobs are queued again.
    #[error("nobody reads {0} any more: it was closed before all results were written")]
    SinkClosed(String),
    /// The vault failed.
    #[error(transparent)]
    Vault(Box<crate::vault::VaultError>),
    /// A part of the engine failed in a way that should not be possible.
    #[error("internal error: {0}; please report it")]
    Internal(String),
    /// A pipeline could not work and did not get better; its jobs are queued.
    #[error("pipeline {pipeline} cannot go on: {why}{}", if *.tries > 1 { format!(" (tried {} times)", .tries) } else { String::new() })]
    Held {
        /// The pipeline.
        pipeline: PipelineName,
        /// What is wrong.
        why: String,
        /// How often it was tried.
        tries: u32,
    },
    /// Nothing moved for as long as was to be waited; what is queued stays queued.
    #[error(transparent)]
    WaitedInVain(Box<Waited>),
    /// The handler cannot work at all; its jobs are queued again.
    #[error("the handler of pipeline {pipeline} cannot run: {why}")]
    HandlerUnavailable {
        /// The pipeline.
        pipeline: PipelineName,
        /// What is wrong.
        why: String,
    },
}

/// What was waited for in vain.
#[derive(Clone, Debug, thiserror::Error)]
#[error("pipeline {pipeline}: nothing has moved since {since}, and {queued} jobs wait")]
pub struct Waited {
    /// The pipeline.
    pub pipeline: PipelineName,
    /// Jobs that wait.
    pub queued: u64,
    /// When something last moved, or the work began.
    pub since: Timestamp,
    /// When the next job may be tried.
    pub next_due: Option<Timestamp>,
    /// The targets that were waited for.
    pub targets: Vec<BreakerView>,
}
