//! Failures of jobs that wait for another attempt, by cause. None of them is a dead letter yet, so causes do not show them; while a
//! target is on hold they may wait for long.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::failures::{Failure, Reason};
use crate::fingerprint::{of_failure, own_place};
use crate::ids::{JobId, PipelineName};

/// The most causes and targets that a [`RetryingView`] names.
const CAUSES_MAX: usize = 5;
const TARGETS_MAX: usize = 3;

/// A queued job that has failed before.
#[derive(Clone, Debug)]
pub struct RetryingJob {
    /// The job.
    pub id: JobId,
    /// Its target.
    pub target: Option<String>,
    /// Its last failure.
    pub failure: Failure,
}

/// Jobs of one pipeline that wait for another attempt while a target is on hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RetryingView {
    /// The pipeline.
    pub pipeline: PipelineName,
    /// Its targets whose breakers are not closed, those for which most jobs wait first. At most three.
    pub targets: Vec<String>,
    /// Number of other targets on hold.
    pub more_targets: u64,
    /// Queued jobs of targets on hold that have failed before, as far as they were read.
    pub jobs: u64,
    /// True if not all of these jobs were read. The counts of causes are then a lower bound.
    pub at_least: bool,
    /// Their last failures, at most five causes: those that are not about the target first, since its breaker tells the others,
    /// and of these the most frequent first.
    pub causes: Vec<RetryingCause>,
    /// Number of other causes.
    pub more_causes: u64,
}

/// Last failures that have the same cause.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RetryingCause {
    /// Jobs that failed with it last.
    pub count: u64,
    /// Why they failed.
    pub reason: Reason,
    /// A short stable code.
    pub code: Option<String>,
    /// The type of the error.
    pub error_type: Option<String>,
    /// The status of the HTTP response.
    pub http_status: Option<u16>,
    /// The file and line of your own code in which the first of them failed: `scrape.py:12`.
    pub place: Option<String>,
    /// What happened, in words. Where several failed, without what differs between them.
    pub message: String,
    /// One of the jobs.
    pub example: JobId,
}

impl RetryingView {
    /// Groups the jobs that were read of `all` that wait, as far as their target is on hold: to close its breaker helps no others.
    /// `targets` are all that are on hold, with the number of jobs that wait.
    pub fn new(pipeline: PipelineName, mut targets: Vec<(String, u64)>, read: Vec<RetryingJob>, all: u64) -> Self {
        targets.sort_by_key(|(_, waiting)| std::cmp::Reverse(*waiting));
        let at_least = (read.len() as u64) < all;
        let is_held = |job: &RetryingJob| targets.iter().any(|(target, _)| job.target.as_ref() == Some(target));
        let jobs: Vec<_> = read.into_iter().filter(is_held).collect();
        let mut causes = by_cause(&pipeline, &jobs);
        let more = |all: usize, max: usize| all.saturating_sub(max) as u64;
        let (more_targets, more_causes) = (more(targets.len(), TARGETS_MAX), more(causes.len(), CAUSES_MAX));
        causes.truncate(CAUSES_MAX);
        let targets = targets.into_iter().take(TARGETS_MAX).map(|(target, _)| target).collect();
        Self { pipeline, targets, more_targets, jobs: jobs.len() as u64, at_least, causes, more_causes }
    }

    /// Returns a line for each of at most `max` causes, and one for the rest: `139 × AttributeError scrape.py:12: …`.
    pub fn lines(&self, max: usize) -> Vec<String> {
        let bound = if self.at_least { "at least " } else { "" };
        let line = |cause: &RetryingCause| format!("{bound}{} × {}", cause.count, cause.what());
        let mut lines: Vec<_> = self.causes.iter().take(max).map(line).collect();
        let more = self.more_causes + self.causes.len().saturating_sub(max) as u64;
        if more > 0 {
            lines.push(format!("{more} more {}", if more == 1 { "cause" } else { "causes" }));
        }
        lines
    }
}

impl RetryingCause {
    /// Returns the error with its place if it is known, else the reason; then the message.
    pub fn what(&self) -> String {
        let head = match (&self.error_type, &self.place, self.http_status) {
            (Some(error_type), Some(place), _) => format!("{error_type} {place}"),
            (Some(error_type), None, _) => error_type.clone(),
            (None, Some(place), _) => format!("{} {place}", self.reason),
            (None, None, Some(status)) if status >= 400 => format!("{} {status}", self.reason),
            (None, None, _) => self.reason.to_string(),
        };
        // Many messages begin with the type of their error.
        let error_type = self.error_type.as_deref().unwrap_or_default();
        let said = self.message.strip_prefix(error_type).unwrap_or(&self.message).trim_start_matches([':', ' ']);
        match (&self.code, said) {
            (_, "") => head,
            (Some(code), said) if self.error_type.is_none() && !said.starts_with(code.as_str()) => {
                format!("{head}: {code}: {said}")
            }
            (_, said) => format!("{head}: {said}"),
        }
    }
}

/// Groups jobs by the fingerprint of their last failure. Failures of the target come last, and larger groups first.
fn by_cause(pipeline: &PipelineName, jobs: &[RetryingJob]) -> Vec<RetryingCause> {
    let (mut causes, mut known): (Vec<RetryingCause>, HashMap<String, usize>) = Default::default();
    for RetryingJob { id, target, failure } in jobs {
        let print = of_failure(pipeline, target.as_deref(), failure);
        let at = *known.entry(print.key).or_insert(causes.len());
        if let Some(cause) = causes.get_mut(at) {
            cause.count += 1;
            if cause.message != failure.message {
                cause.message = print.template;
            }
            continue;
        }
        causes.push(RetryingCause {
            count: 1,
            reason: failure.reason,
            code: failure.code.clone(),
            error_type: failure.error_type.clone(),
            http_status: failure.http_status,
            place: failure.stack.as_deref().and_then(own_place),
            message: failure.message.clone(),
            example: *id,
        });
    }
    causes.sort_by_key(|cause| (cause.reason.is_about_target(), std::cmp::Reverse(cause.count)));
    causes
}

#[cfg(test)]
mod tests;
