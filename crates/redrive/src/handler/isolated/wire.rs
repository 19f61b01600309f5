//! What a worker and the process of an isolated job say to each other: lines of JSON on the process's standard streams.
//!
//! The worker sends the [`Task`], and later an empty line whenever something that the process asked for has been done. The
//! process sends [`Said`].

use std::path::PathBuf;
use std::time::Duration;

use redrive_core::failures::FailureReport;
use redrive_core::ids::{JobId, PipelineName, RoundName, WorkerId};
use redrive_core::jobs::Input;
use redrive_core::payloads::{PayloadHash, Response};
use redrive_core::proxies::TriedProxy;
use redrive_core::traffic::Facts;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::handler::{HandlerError, Success};
use crate::vault::Keep;

/// A job, and everything that its process needs.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Task {
    /// What the handler is made of, as the embedder wrote it.
    pub(super) definition: Value,
    pub(super) id: JobId,
    pub(super) pipeline: PipelineName,
    pub(super) round: Option<RoundName>,
    pub(super) key: Option<String>,
    pub(super) target: Option<String>,
    pub(super) input: Input,
    pub(super) attempt: u32,
    pub(super) crashes: u32,
    pub(super) replays: u32,
    pub(super) tried: Vec<TriedProxy>,
    pub(super) worker: WorkerId,
    pub(super) deadline: Duration,
    pub(super) progress: Option<Value>,
    pub(super) saved: Option<SavedFile>,
    pub(super) keep: Keep,
    pub(super) from_network: bool,
    pub(super) edited: bool,
    /// The file for the payload, and how much of it is kept.
    pub(super) payload: (PathBuf, u64),
}

/// A saved payload to work from, in a file.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct SavedFile {
    pub(super) hash: PayloadHash,
    pub(super) size_bytes: u64,
    pub(super) truncated: bool,
    pub(super) total_bytes: Option<u64>,
    pub(super) response: Response,
    pub(super) file: PathBuf,
}

/// What the process of an isolated job says.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Said {
    /// How far it got; it goes on when that is on disk.
    Progress(Option<Value>),
    /// It wants to send a request to a target; it goes on when it is the target's turn.
    Turn(String),
    /// The request is over.
    TurnOver,
    /// The payload is in its file; it goes on when the worker knows.
    Payload { response: Response, total_bytes: Option<u64> },
    /// The job came to an end.
    Ended(Box<Ended>),
}

/// How a job ended, and what was noted about it.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Ended {
    pub(super) answer: Result<Success, Failed>,
    pub(super) facts: Facts,
}

/// How a job failed.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Failed {
    #[serde(rename = "Failed")]
    Reported {
        report: Box<FailureReport>,
        /// The report's own, which it leaves out of its JSON.
        body: Option<String>,
    },
    Unavailable(String),
    Unkept(String),
}

impl From<HandlerError> for Failed {
    fn from(error: HandlerError) -> Self {
        match error {
            // Whoever lives to say that it crashed did not.
            HandlerError::Failed(report) | HandlerError::Crashed(report) => {
                Self::Reported { body: report.body.clone(), report }
            }
            HandlerError::Unavailable(why) => Self::Unavailable(why),
            HandlerError::Unkept(why) => Self::Unkept(why),
        }
    }
}

impl From<Failed> for HandlerError {
    fn from(failed: Failed) -> Self {
        match failed {
            Failed::Reported { report, body } => Self::Failed(Box::new(FailureReport { body, ..*report })),
            Failed::Unavailable(why) => Self::Unavailable(why),
            Failed::Unkept(why) => Self::Unkept(why),
        }
    }
}
