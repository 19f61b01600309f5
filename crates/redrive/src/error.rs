//! What can go wrong in the engine.

use std::io;

use redrive_api::RequestError;
use redrive_core::breakers::BreakerView;
use redrive_core::causes::{CauseId, Unchangeable};
use redrive_core::ids::{InvalidName, PipelineName};
use redrive_core::jobs::UnfitKey;
use redrive_core::pipelines::Pause;
use redrive_core::time::Timestamp;
use redrive_store::StoreError;

use crate::access::AccessError;
use crate::alerts::AlertError;
use crate::backup::BackupError;
use crate::breakers::BreakerError;
use crate::config::ConfigError;
use crate::copies::CopyError;
use crate::dead::DeadError;
use crate::jobs::JobError;
use crate::outcomes::OutcomeError;
use crate::payloads::PayloadError;
use crate::pipelines::PipelineError;
use crate::replays::ReplayError;
use crate::tasks::TasksError;
use crate::tokens::TokenError;

/// Why the engine stopped, or did not begin. No job is lost by any of these.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A request cannot be read, or its fields contradict each other.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// The caller may not do that.
    #[error(transparent)]
    Access(#[from] AccessError),
    /// A name that cannot be one.
    #[error(transparent)]
    Name(#[from] InvalidName),
    /// A job whose input is not a JSON object.
    #[error("a task's input must be a JSON object, not {0}")]
    InputNotAnObject(String),
    /// A job whose key is none to be known by.
    #[error("a task's key {0}")]
    Key(#[from] UnfitKey),
    /// The configuration is wrong, or what the caller said does not fit it.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A file of tasks cannot be taken.
    #[error(transparent)]
    Tasks(#[from] TasksError),
    /// Something about dead letters cannot be done.
    #[error(transparent)]
    Dead(#[from] DeadError),
    /// Something about jobs cannot be done.
    #[error(transparent)]
    Job(#[from] JobError),
    /// A payload cannot be found.
    #[error(transparent)]
    Payload(#[from] PayloadError),
    /// Something about an alert cannot be done.
    #[error(transparent)]
    Alert(#[from] AlertError),
    /// A breaker cannot be turned.
    #[error(transparent)]
    Breaker(#[from] BreakerError),
    /// Something about a pipeline cannot be done.
    #[error(transparent)]
    Pipeline(#[from] PipelineError),
    /// A store is not copied.
    #[error(transparent)]
    Copy(Box<CopyError>),
    /// A replay is refused.
    #[error(transparent)]
    Replay(#[from] ReplayError),
    /// A backup is not made or not restored.
    #[error(transparent)]
    Backup(#[from] BackupError),
    /// What a program counted of its jobs cannot be believed.
    #[error(transparent)]
    Outcome(#[from] OutcomeError),
    /// Something about tokens cannot be done.
    #[error(transparent)]
    Token(#[from] TokenError),
    /// Dead letters are to be chosen, and nothing in particular was: that would be all of them.
    #[error("say which dead letters: by cause, by filter or by id")]
    NothingChosen,
    /// Dead letters are chosen by id and by filter at once.
    #[error("dead letters are chosen by id or by filter, not both")]
    ChosenTwice,
    /// A sink that the file does not have.
    #[error("no sink {name}{}", if .known.is_empty() { String::new() } else { format!(" (there are: {})", .known.join(", ")) })]
    NoSink {
        /// What it was called.
        name: String,
        /// The sinks there are.
        known: Vec<String>,
    },
    /// A change of a cause that cannot be.
    #[error("{cause} cannot be changed so: {why}")]
    Unchangeable {
        /// Which.
        cause: CauseId,
        /// Why not.
        why: Unchangeable,
    },
    /// Others changed the same cause again and again meanwhile.
    #[error("{0} was changed by others meanwhile: try again")]
    ChangedMeanwhile(CauseId),
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
    /// Somebody works on the store: what was asked has to wait.
    #[error("{workers} worker{} at work on the store: stop {} first", if *.workers == 1 { " is" } else { "s are" }, if *.workers == 1 { "it" } else { "them" })]
    AtWork {
        /// How many.
        workers: usize,
    },
    /// A server that was asked instead of a store did not do it.
    #[error("{message}")]
    Server {
        /// What it means to who asked.
        kind: ErrorKind,
        /// What it is, for programs.
        code: String,
        /// What the server said.
        message: String,
    },
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

/// What an error means to who asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// What was asked for makes no sense, and never will.
    Invalid,
    /// The caller may not do it.
    Forbidden,
    /// What was named is not there.
    Missing,
    /// It is there, but not in a state in which that can be done.
    Refused,
    /// Something failed on the way: the store, the vault, the disk, the network.
    Failed,
}

impl Error {
    /// What it means to who asked.
    pub const fn kind(&self) -> ErrorKind {
        match self {
            Self::Config(ConfigError::Unreadable { .. }) => ErrorKind::Failed,
            Self::Access(_) => ErrorKind::Forbidden,
            Self::Config(_) | Self::Request(_) | Self::Name(_) | Self::InputNotAnObject(_) | Self::Key(_) => {
                ErrorKind::Invalid
            }
            Self::NothingChosen | Self::ChosenTwice | Self::NoSink { .. } => ErrorKind::Invalid,
            Self::Unchangeable { why: Unchangeable::Over(_), .. } => ErrorKind::Invalid,
            Self::AtWork { .. } | Self::Unchangeable { .. } | Self::ChangedMeanwhile(_) => ErrorKind::Refused,
            Self::Tasks(error) => error.kind(),
            Self::Dead(error) => error.kind(),
            Self::Job(error) => error.kind(),
            Self::Payload(error) => error.kind(),
            Self::Alert(error) => error.kind(),
            Self::Breaker(error) => error.kind(),
            Self::Pipeline(error) => error.kind(),
            Self::Replay(error) => error.kind(),
            Self::Copy(error) => error.kind(),
            Self::Backup(error) => error.kind(),
            Self::Token(error) => error.kind(),
            Self::Outcome(_) => ErrorKind::Invalid,
            Self::Server { kind, .. } => *kind,
            _ => ErrorKind::Failed,
        }
    }

    /// Returns the field of the request that is wrong, if one is.
    pub fn field(&self) -> Option<&str> {
        match self {
            Self::Request(error) => error.field.as_deref(),
            Self::Access(error) => error.field(),
            Self::Breaker(BreakerError::Over(_)) => Some("until"),
            _ => None,
        }
    }
}

/// What was waited for in vain.
#[derive(Clone, Debug, thiserror::Error)]
#[error("pipeline {pipeline}: nothing has moved since {since}, and {queued} tasks wait")]
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
    /// The pause of the pipeline, if somebody paused it.
    pub paused: Option<Pause>,
}
