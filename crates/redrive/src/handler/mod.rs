//! What does the work of a pipeline.
//!
//! A handler is dropped in the middle of its work when its job is cancelled or the worker must stop; it must leave
//! nothing behind then.

mod closure;
mod elsewhere;
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
pub use redrive_core::hand_on::HandedOn;
use redrive_core::ids::{JobId, PipelineName, RoundName, WorkerId};
use redrive_core::jobs::{Input, LeasedJob, Origin};
use redrive_core::proxies::{ProxyPolicy, TriedProxy};
use redrive_core::secrets::Secrets;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use self::closure::HandsOn;
pub use self::elsewhere::Elsewhere;
pub use self::notes::Notes;
pub(crate) use self::notes::SILENT_AFTER;
pub use self::progress::{NotesProgress, Progress};
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
    /// The round it belongs to, if there are rounds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub round: Option<RoundName>,
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
    /// The trace that it is part of, as the W3C's Trace Context writes it, if it was given one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<String>,
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
    /// Whether it came over the network, or may have: it is to reach no more than whoever sent it could.
    #[serde(skip)]
    pub from_network: bool,
    /// Whether its input is not the one that it was accepted with.
    #[serde(skip)]
    pub edited: bool,
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
            round: leased.round.clone(),
            key: leased.key.clone(),
            target: leased.target.clone(),
            input: leased.input.clone(),
            attempt: leased.attempt(),
            crashes: leased.tally.crashes,
            replays: leased.tally.replays,
            traceparent: leased.origin.as_ref().and_then(Origin::traceparent).map(str::to_owned),
            saved: saved.map(|(payload, vault)| Saved::new(payload, vault)),
            worker,
            deadline: pipeline.policy.deadline,
            tried: leased.tried.clone(),
            evidence,
            progress,
            notes: Notes::default(),
            from_network: leased.is_from_network(),
            edited: leased.edited,
            parent: None,
        }
    }
}

/// What a handler gives when a job is done.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Success {
    /// The job's result.
    pub result: Value,
    /// The jobs that it hands on: they come into being when, and only if, this one is done. They may be for its own pipeline
    /// and for those that were named with [`Pipeline::hand_on`].
    pub handed_on: Vec<HandedOn>,
    /// Text that a command printed before its result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log: Option<String>,
}

impl From<Value> for Success {
    fn from(result: Value) -> Self {
        Self { result, ..Self::default() }
    }
}

impl Success {
    /// The same with one more job that it hands on.
    pub fn hand_on(mut self, job: HandedOn) -> Self {
        self.handed_on.push(job);
        self
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
    /// The evidence of the attempt cannot be kept, so there is no verdict: the same follows, until a payload is kept again.
    Unkept(String),
}

impl From<FailureReport> for HandlerError {
    fn from(report: FailureReport) -> Self {
        Self::Failed(Box::new(report))
    }
}

impl HandlerError {
    /// The same without secrets, and then with the two ends of each text that is too long: a secret that was cut before it
    /// was looked for would not be known as one.
    pub(crate) fn masked(mut self, secrets: &Secrets) -> Self {
        match &mut self {
            Self::Failed(report) | Self::Crashed(report) => mask(report, secrets),
            Self::Unavailable(why) | Self::Unkept(why) => *why = ends(&secrets.mask(why)),
        }
        self
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

/// Masks the secrets in a failure, and then cuts each text that is too long.
pub(crate) fn mask(report: &mut FailureReport, secrets: &Secrets) {
    secrets.mask_report(report);
    shorten(report);
}

/// The longest text of a failure, in bytes: what is longer is nothing that anybody reads.
const TEXT_BYTES_MAX: usize = 64 * 1024;

/// Keeps the two ends of each text of a failure that is too long.
fn shorten(report: &mut FailureReport) {
    let FailureReport { message, code, error_type, stack, stage, target, proxy, stderr, .. } = report;
    // Misses are cut when they are kept.
    let others = [code, error_type, stack, stage, target, proxy, stderr];
    for text in std::iter::once(message).chain(others.into_iter().flatten()) {
        if text.len() > TEXT_BYTES_MAX {
            *text = ends(text);
        }
    }
}

/// A text, or its two ends with a line between them that says what is missing.
fn ends(text: &str) -> String {
    if text.len() <= TEXT_BYTES_MAX {
        return text.to_owned();
    }
    let is_boundary = |at: &usize| text.is_char_boundary(*at);
    let head = (0..=TEXT_BYTES_MAX / 2).rev().find(is_boundary).unwrap_or_default();
    let tail = (text.len() - TEXT_BYTES_MAX / 2..=text.len()).find(is_boundary).unwrap_or(text.len());
    format!("{}\n… {} bytes …\n{}", &text[..head], tail - head, &text[tail..])
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
    /// Runs a job and gives its result, and the jobs that it hands on.
    async fn run(&self, job: Job) -> Result<Success, HandlerError>;

    /// Where it runs its jobs.
    fn isolation(&self) -> Isolation {
        Isolation::Shared
    }

    /// Returns the request that it sends for an input, without secrets: the one that asks for a provider's task, if that is named.
    /// Returns nothing if it sends none, or cannot make it.
    fn request(&self, _input: &Input, _task: Option<&str>) -> Option<HttpRequest> {
        None
    }

    /// What must not get out of what is told about its jobs, also by a process that dies with one.
    fn secrets(&self) -> Option<&Secrets> {
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

    /// Whether the definition of its pipeline says what becomes of its jobs. It does not where others run them, whatever they have.
    fn is_known_by_definition(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_masked_and_then_cut() {
        let mut secrets = Secrets::default();
        secrets.add_value("s3cret-value-of-some-length");
        for text in ["s3cret-value-of-some-length".repeat(50_000), format!("{}é", "xé".repeat(50_000))] {
            let report = FailureReport { stderr: Some(text.clone()), ..FailureReport::message(text.clone()) };
            let HandlerError::Failed(report) = HandlerError::from(report).masked(&secrets) else { panic!("it failed") };
            let stderr = report.stderr.expect("kept");
            assert!(!stderr.contains("s3") && stderr.contains(" bytes …") && stderr.len() < TEXT_BYTES_MAX + 64);
            assert_eq!(report.message, stderr);
            assert!(text.contains("s3") || stderr.starts_with("xé") && stderr.ends_with("xéé"));
        }
        assert_eq!(ends("short"), "short");
    }
}
