//! What does the work of a pipeline.
//!
//! A handler is dropped in the middle of its work when its job is cancelled or the worker must stop; it must leave
//! nothing behind then.

mod closure;
pub mod exec;
pub mod http;
pub mod isolated;
mod notes;
mod progress;
mod saved;
pub mod submit_poll;

use std::any::Any;
use std::time::Duration;

use async_trait::async_trait;
use redrive_core::failures::{FailureReport, Reason};
use redrive_core::ids::{JobId, PipelineName, WorkerId};
use redrive_core::jobs::{Input, LeasedJob};
use redrive_core::proxies::{ProxyPolicy, TriedProxy};
use redrive_core::secrets::Secrets;
use serde::Serialize;
use serde_json::Value;

pub use self::notes::Notes;
pub use self::progress::Progress;
pub use self::saved::Saved;
use crate::export::HttpRequest;
use crate::pipeline::Pipeline;
use crate::vault::Evidence;

/// A job as its handler sees it. Its JSON form is what commands read.
#[derive(Clone, Debug, Serialize)]
pub struct Job {
    /// Its id.
    pub id: JobId,
    /// Its pipeline.
    pub pipeline: PipelineName,
    /// Its key, if it has one.
    pub key: Option<String>,
    /// Its target, if it has one.
    pub target: Option<String>,
    /// What it is about.
    pub input: Input,
    /// The number of this attempt, counted over all replays from 1.
    pub attempt: u32,
    /// Times it took its process down.
    pub crashes: u32,
    /// How often it was replayed.
    pub replays: u32,
    /// The saved payload to work from, without asking for anything.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub saved: Option<Saved>,
    /// The worker that runs it.
    #[serde(skip)]
    pub worker: WorkerId,
    /// How long it may take.
    #[serde(skip)]
    pub deadline: Duration,
    /// The proxies through which its earlier attempts failed, oldest first, if the pipeline has several.
    #[serde(skip)]
    pub tried: Vec<TriedProxy>,
    /// Where its payloads are kept.
    #[serde(skip)]
    pub evidence: Evidence,
    /// How far an earlier attempt got, and where to note how far this one does.
    #[serde(skip)]
    pub progress: Progress,
    /// What is noted about this attempt.
    #[serde(skip)]
    pub notes: Notes,
    /// The worker that it asks for everything, if it runs isolated from it.
    #[serde(skip)]
    pub(crate) parent: Option<isolated::Parent>,
}

impl Job {
    pub(crate) fn new(
        leased: &LeasedJob,
        worker: WorkerId,
        pipeline: &Pipeline,
        evidence: Evidence,
        progress: Progress,
    ) -> Self {
        let able = pipeline.handler.works_from_saved(false);
        let saved = leased.saved.clone().filter(|_| able).zip(pipeline.vault.clone());
        Self {
            id: leased.lease.job,
            pipeline: leased.pipeline.clone(),
            key: leased.key.clone(),
            target: leased.target.clone(),
            input: leased.input.clone(),
            attempt: leased.attempt(),
            crashes: leased.tally.crashes,
            replays: leased.tally.replays,
            saved: saved.map(|(payload, vault)| Saved::new(payload, vault)),
            worker,
            deadline: pipeline.policy.deadline,
            tried: leased.tried.clone(),
            evidence,
            progress,
            notes: Notes::default(),
            parent: None,
        }
    }
}

/// How an attempt failed.
#[derive(Clone, Debug, PartialEq)]
pub enum HandlerError {
    /// The job failed.
    Failed(Box<FailureReport>),
    /// The job took its own process down.
    Crashed(Box<FailureReport>),
    /// The handler cannot work at all, whatever the job: the pipeline is held and the job is queued again, as it was.
    Unavailable(String),
}

impl From<FailureReport> for HandlerError {
    fn from(report: FailureReport) -> Self {
        Self::Failed(Box::new(report))
    }
}

impl HandlerError {
    /// The same without secrets.
    pub(crate) fn masked(self, secrets: &Secrets) -> Self {
        match self {
            Self::Failed(mut report) => {
                secrets.mask_report(&mut report);
                Self::Failed(report)
            }
            Self::Crashed(mut report) => {
                secrets.mask_report(&mut report);
                Self::Crashed(report)
            }
            Self::Unavailable(why) => Self::Unavailable(secrets.mask(&why)),
        }
    }

    /// The same with a line below what the handler wrote to its error stream.
    pub(crate) fn noting(mut self, line: &str) -> Self {
        if let Self::Failed(report) | Self::Crashed(report) = &mut self {
            let before = report.stderr.take().map(|text| text.trim_end().to_owned() + "\n").unwrap_or_default();
            report.stderr = Some(before + line);
        }
        self
    }

    /// The job took its own process down.
    pub fn crashed(report: FailureReport) -> Self {
        Self::Crashed(Box::new(report))
    }
}

/// What a handler that panicked said; nothing if it was only stopped.
pub(crate) fn panic_report(ended: tokio::task::JoinError) -> Option<FailureReport> {
    let panic = ended.try_into_panic().ok()?;
    let said =
        panic.downcast_ref::<&str>().map(ToString::to_string).or_else(|| panic.downcast_ref::<String>().cloned());
    let message = format!("the handler panicked: {}", said.as_deref().unwrap_or("it did not say why"));
    Some(FailureReport::new(Reason::HandlerError, message).with_code("panic"))
}

/// Where a handler runs its jobs, which decides who is blamed when a process dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isolation {
    /// Inside the worker, beside others: if the worker dies, its started jobs are suspects.
    Shared,
    /// Each in a process of its own, which alone it answers for.
    OwnProcess,
}

/// Does the work of a pipeline.
#[async_trait]
pub trait Handler: Send + Sync {
    /// Runs a job and gives its result.
    async fn run(&self, job: Job) -> Result<Value, HandlerError>;

    /// Where it runs its jobs.
    fn isolation(&self) -> Isolation {
        Isolation::Shared
    }

    /// The request it would send for an input, without secrets; none if it sends none, or cannot make it.
    fn request(&self, _input: &Input) -> Option<HttpRequest> {
        None
    }

    /// Waits until a job that runs isolated may send a request to a target; the request is over when what this gives back is
    /// dropped. Handlers that keep to a pace per target say here when it is whose turn.
    async fn turn(&self, _target: &str) -> Option<Box<dyn Any + Send>> {
        None
    }

    /// The proxies it goes through, if it has any.
    fn proxies(&self) -> ProxyPolicy {
        ProxyPolicy::default()
    }

    /// Whether it can work from a saved payload, without the network and without any other effect; and also then if the
    /// input was changed since the payload was saved.
    fn works_from_saved(&self, _edited: bool) -> bool {
        false
    }
}
