//! How an attempt ends: from its outcome and the pipeline's policy to the one move the store is to make.
//!
//! Everything a store writes when a job is settled is decided here and handed over as data.

use std::sync::Arc;
use std::time::Duration;

use crate::breakers::{Heard, Said, Signal, TargetFailure};
use crate::causes::{CauseRules, Print};
use crate::crashes;
use crate::dead::Gate;
use crate::definitions::DefinitionVersion;
use crate::failures::{self, Disposition, Failure, FailureReport, Reason};
use crate::good::GoodPage;
use crate::hand_on::HandedJob;
use crate::ids::{PipelineName, WorkerId};
use crate::jobs::{Lease, LeasedJob, TASK_ID_BYTES_MAX, Tally, kept_name};
use crate::payloads::Payload;
use crate::policy::Policy;
use crate::proxies;
use crate::retry::RetryPolicy;
use crate::rules::{Verdict, classify, reason_of_target};
use crate::state::JobState;
use crate::time::Timestamp;
use crate::traffic::Facts;

/// How an attempt ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// It succeeded.
    Done,
    /// It failed, and said so.
    Failed(FailureReport),
    /// It took its own process down.
    Crashed(FailureReport),
    /// It was not started, or stopped through no fault of its own.
    Returned,
}

impl Outcome {
    /// Whether an attempt that ended so was settled before and is brought back again because the answer was lost: its lease settled
    /// the job into that state.
    pub fn is_resent(&self, settled_into: JobState) -> bool {
        matches!(settled_into, JobState::Done) == matches!(self, Self::Done)
    }
}

/// The circumstances of an attempt's end.
#[derive(Clone, Copy, Debug)]
pub struct Ending {
    /// When it ended.
    pub at: Timestamp,
    /// How long it ran, if it did.
    pub duration: Option<Duration>,
    /// The worker that ran it.
    pub worker: Option<WorkerId>,
    /// A random number in `[0, 1)`, for jitter.
    pub chance: f64,
}

/// Where a settled job goes.
#[derive(Clone, Debug, PartialEq)]
pub enum Destination {
    /// It is done.
    Done,
    /// Back to the queue, not to be leased before then.
    Queue {
        /// When it is due again.
        due_at: Timestamp,
    },
    /// It becomes a dead letter.
    Dead {
        /// Whether it may be replayed.
        gate: Gate,
        /// What is to be said of it, if this was the last that was tried.
        verdict: Option<String>,
    },
    /// It is discarded, as a rule says.
    Discarded {
        /// What is recorded of why.
        why: String,
    },
}

/// The actor that is recorded of jobs that a rule discards.
pub const RULE_ACTOR: &str = "rule";

impl Destination {
    /// It becomes a dead letter.
    pub const fn bury(gate: Gate, verdict: Option<String>) -> Self {
        Self::Dead { gate, verdict }
    }

    /// The state that the job is in then.
    pub const fn state(&self) -> JobState {
        match self {
            Self::Done => JobState::Done,
            Self::Queue { .. } => JobState::Queued,
            Self::Dead { .. } => JobState::Dead,
            Self::Discarded { .. } => JobState::Discarded,
        }
    }
}

/// What is to be written for a settled attempt.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// Where the job goes.
    pub destination: Destination,
    /// What the job's counters are then.
    pub tally: Tally,
    /// What is kept of the attempt, if it failed. A buried job always has one.
    pub failure: Option<Failure>,
    /// What it means for the breaker of the job's target.
    pub signal: Signal,
    /// The payload that is kept of an attempt that succeeded.
    pub kept: Option<Payload>,
    /// What is counted about the attempt.
    pub facts: Facts,
}

impl Decision {
    /// Adds the payload of the attempt: to its failure, or beside its success. Nothing is kept of a job that is discarded.
    pub fn keep(&mut self, payload: Option<Payload>) {
        let payload = payload.filter(|_| !matches!(self.destination, Destination::Discarded { .. }));
        match &mut self.failure {
            Some(failure) => failure.payload = payload,
            None => self.kept = payload.filter(|_| self.destination == Destination::Done),
        }
    }

    /// Whether the job becomes a dead letter.
    pub const fn buries(&self) -> bool {
        matches!(self.destination, Destination::Dead { .. })
    }

    /// The same for a job that may have worked from a saved payload, which says nothing about its target as it is now, or may
    /// have gone to see whether its target is better. If it is not, that is not the job's fault: it has its attempt back, and
    /// waits behind the others.
    pub(crate) fn of(self, job: &LeasedJob, ending: Ending) -> Self {
        let signal = if job.saved.is_some() { Signal::Unasked } else { self.signal };
        if job.probe && signal.is_trouble() {
            let tally = Tally { attempts: job.tally.attempts, ..self.tally };
            let failure = self.failure.map(|failure| Failure { probe: true, ..failure });
            return Self { signal, tally, failure, destination: Destination::Queue { due_at: ending.at }, ..self };
        }
        Self { signal, ..self }
    }

    /// The payload that goes with it and is kept, if there is one.
    pub fn payload(&self) -> Option<&Payload> {
        let failed = self.failure.as_ref().and_then(|failure| failure.payload.as_ref());
        failed.or(self.kept.as_ref()).filter(|payload| payload.lost.is_none())
    }

    /// Notes that the payload that goes with it is lost, and why.
    pub fn lose_payload(&mut self, why: &str) {
        let failed = self.failure.as_mut().and_then(|failure| failure.payload.as_mut());
        if let Some(payload) = failed.or(self.kept.as_mut()) {
            payload.lost = Some(why.to_owned());
        }
    }
}

/// A decision and the lease that gives the right to it.
#[derive(Clone, Debug, PartialEq)]
pub struct Settlement {
    /// The right to settle; if it is stale nothing moves.
    pub lease: Lease,
    /// The job's pipeline.
    pub pipeline: PipelineName,
    /// The job's target, if it has one.
    pub target: Option<String>,
    /// Whether the job went to see if its target is better.
    pub probe: bool,
    /// What is to be written.
    pub decision: Decision,
    /// What the letter is recognised by, if the job is buried.
    pub print: Option<Print>,
    /// The version of the definition that the attempt was made with, if it is known.
    pub definition: Option<DefinitionVersion>,
    /// The jobs that it hands on, if it is done.
    pub handed_on: Vec<HandedJob>,
    /// The page that it worked from, if the job is done and the page is to be kept as one that works.
    pub good: Option<Box<GoodPage>>,
    /// The shape of the address that it is about, if the job is buried: its cause holds on to the page that worked.
    pub shape: Option<String>,
    /// The result that the store keeps, as a line of JSON, if the job is done.
    pub result: Option<Arc<str>>,
}

impl Settlement {
    /// The settlement of a job as it was decided. Only a burial needs the rules of causes.
    pub fn new(job: &LeasedJob, decision: Decision, rules: &CauseRules) -> Self {
        let failure = decision.failure.as_ref().filter(|_| decision.buries());
        let print = failure.map(|failure| Print::of(&job.pipeline, job.target.as_deref(), failure, rules));
        let (pipeline, target) = (job.pipeline.clone(), job.target.clone());
        let (definition, handed_on) = (None, Vec::new());
        let (lease, probe) = (job.lease, job.probe);
        let (good, shape, result) = (None, None, None);
        Self { lease, pipeline, target, probe, decision, print, definition, handed_on, good, shape, result }
    }

    /// The same with the page that it worked from, which is kept if its job is done, and with the shape of its address, which counts if
    /// its job is buried.
    pub fn about_page(self, good: Option<Box<GoodPage>>, shape: Option<String>) -> Self {
        let (done, buries) = (self.decision.destination == Destination::Done, self.decision.buries());
        Self { good: good.filter(|_| done), shape: shape.filter(|_| buries), ..self }
    }

    /// The same, which hands on jobs if it says that its own is done.
    pub fn handing_on(self, jobs: Vec<HandedJob>) -> Self {
        let done = self.decision.destination == Destination::Done;
        Self { handed_on: if done { jobs } else { Vec::new() }, ..self }
    }

    /// The same with the result that the store keeps, if its job is done.
    pub fn with_result(self, line: Option<Arc<str>>) -> Self {
        let done = self.decision.destination == Destination::Done;
        Self { result: line.filter(|_| done), ..self }
    }

    /// Whether it was applied before and is sent again because its answer was lost: its lease settled the job into that state. A
    /// verdict that is not the one that was given then is another settlement, and comes too late.
    pub fn is_resent(&self, settled_into: Option<JobState>) -> bool {
        settled_into == Some(self.decision.destination.state())
    }

    /// What it says about the job's target, if it has one, as the settlement at that place of a batch.
    pub fn heard(&self, by: usize, now: Timestamp) -> Option<(&str, Heard)> {
        let target = self.target.as_deref()?;
        let (signal, why) = (self.decision.signal, self.decision.failure.as_ref());
        let took_ms = why.and_then(|failure| failure.duration_ms);
        let why = why.filter(|_| signal.is_trouble()).map(TargetFailure::of);
        Some((target, Heard { by, said: Said { signal, probe: self.probe, at: now, took_ms, why } }))
    }

    /// The same of an attempt that was made with a definition.
    pub fn tried_with(mut self, definition: Option<&DefinitionVersion>) -> Self {
        self.definition = definition.cloned();
        if let Some(failure) = &mut self.decision.failure {
            failure.definition = definition.cloned();
        }
        self
    }
}

/// Decides how an attempt ends.
pub fn decide(policy: &Policy, job: &LeasedJob, outcome: Outcome, ending: Ending) -> Decision {
    decide_asked(policy, job, outcome, ending).of(job, ending)
}

fn decide_asked(policy: &Policy, job: &LeasedJob, outcome: Outcome, ending: Ending) -> Decision {
    match outcome {
        Outcome::Done => Decision {
            destination: Destination::Done,
            tally: Tally { attempts: job.attempt(), suspect: false, ..job.tally },
            failure: None,
            signal: Signal::Answered,
            kept: None,
            facts: Facts::default(),
        },
        Outcome::Returned => Decision {
            destination: Destination::Queue { due_at: ending.at },
            tally: job.tally,
            failure: None,
            signal: Signal::Silent,
            kept: None,
            facts: Facts::default(),
        },
        Outcome::Crashed(report) => crashes::convict(policy, job, report, ending),
        Outcome::Failed(report) => failed(policy, job, report, ending),
    }
}

fn failed(policy: &Policy, job: &LeasedJob, report: FailureReport, ending: Ending) -> Decision {
    let mut verdict = classify(&policy.rules, &report);
    verdict.disposition = match verdict.disposition {
        Disposition::Discard => Disposition::Discard,
        // The same bytes give the same result: only other rules, or asking anew, can help.
        _ if job.saved.is_some() => Disposition::Dead,
        // There is no breaker to hold it: an attempt given back for nothing would never end.
        Disposition::Hold if job.target.is_none() => Disposition::Retry,
        // Whoever can write its result takes the failure for a success before.
        Disposition::Done => Disposition::Dead,
        other => other,
    };
    let wait = report.retry_after();
    if attempts_left(policy, job) && proxies::goes_on(policy, job, &report, verdict) {
        return proxies::go_on(policy, job, report, verdict, ending);
    }
    let signal = match report.hold {
        true => Signal::Hold(wait.unwrap_or_default()),
        false => Signal::of_failure(reason_of_target(&policy.rules, &report, verdict), verdict.disposition, wait),
    };
    let why = format!("a rule discards it: {}: {}", verdict.reason.as_str(), report.message);
    let failure = Some(record(job, report, verdict.reason, ending));
    if verdict.disposition == Disposition::Hold {
        let tally = Tally { suspect: false, ..job.tally };
        let destination = Destination::Queue { due_at: ending.at };
        return Decision { destination, tally, failure, signal, kept: None, facts: Facts::default() };
    }
    if job.saved.is_some() && verdict.reason == Reason::PayloadExpired {
        // Nothing was tried: a vault that is away for a moment must not use a letter up.
        let tally = Tally { suspect: false, ..job.tally };
        let destination = Destination::bury(Gate::Review, None);
        return Decision { destination, tally, failure, signal, kept: None, facts: Facts::default() };
    }
    let tally = Tally { attempts: job.attempt(), suspect: false, ..job.tally };
    let destination = match verdict.disposition {
        Disposition::Discard => Destination::Discarded { why },
        Disposition::Retry if attempts_left(policy, job) => {
            Destination::Queue { due_at: ending.at + policy.retry.delay(in_run(tally), wait, ending.chance) }
        }
        _ => bury(&policy.retry, verdict, tally),
    };
    Decision { destination, tally, failure, signal, kept: None, facts: Facts::default() }
}

/// The code of letters whose target stayed away for too long.
pub const TARGET_ON_HOLD: &str = "target_on_hold";

/// Decides the end of a job that waited too long for its target: it becomes a letter that says what the target last failed with. No
/// attempt was made for it.
pub fn give_up(job: &LeasedJob, last: &TargetFailure, ending: Ending) -> Decision {
    let report = FailureReport { http_status: last.http_status, ..FailureReport::new(last.reason, &*last.message) };
    let recorded = record(job, report.with_code(TARGET_ON_HOLD), last.reason, ending);
    Decision {
        destination: Destination::bury(last.reason.defaults().1, None),
        tally: Tally { suspect: false, ..job.tally },
        failure: Some(Failure { attempt: job.tally.attempts, ..recorded }),
        signal: Signal::Silent,
        kept: None,
        facts: Facts::default(),
    }
}

/// Whether a job may be tried once more after this attempt, in this run and in all. A replay that nobody asked for looks whether
/// things are better, once.
fn attempts_left(policy: &Policy, job: &LeasedJob) -> bool {
    let tally = Tally { attempts: job.attempt(), ..job.tally };
    let attempts_max = if job.automatic { 1 } else { policy.retry.attempts_max };
    in_run(tally) < attempts_max && tally.attempts < policy.retry.attempts_total_max
}

/// Attempts in this run.
const fn in_run(tally: Tally) -> u32 {
    tally.attempts.saturating_sub(tally.attempts_before)
}

fn bury(retry: &RetryPolicy, verdict: Verdict, tally: Tally) -> Destination {
    let worn_out = tally.attempts >= retry.attempts_total_max;
    let gate = if worn_out { Gate::Never } else { verdict.gate };
    Destination::bury(gate, worn_out.then(|| permanently(tally, retry)))
}

/// What is said of a letter whose attempts are used up for good.
fn permanently(tally: Tally, retry: &RetryPolicy) -> String {
    format!("permanently failed: {} attempts of at most {}", tally.attempts, retry.attempts_total_max)
}

/// The failure to keep of an attempt.
pub(crate) fn record(job: &LeasedJob, report: FailureReport, reason: Reason, ending: Ending) -> Failure {
    Failure {
        at: ending.at,
        attempt: job.attempt(),
        replay: job.tally.replays,
        reason,
        probe: false,
        crash: false,
        code: report.code.map(kept_name),
        message: report.message,
        misses: failures::capped(report.misses),
        error_type: report.error_type,
        stack: report.stack,
        stage: report.stage,
        http_status: report.http_status,
        target: report.target.map(kept_name).or_else(|| job.target.clone()),
        proxy: report.proxy.map(kept_name),
        task_id: report.task_id.filter(|id| id.len() <= TASK_ID_BYTES_MAX),
        retry_after_secs: report.retry_after_secs,
        stderr: report.stderr,
        worker: ending.worker,
        duration_ms: ending.duration.map(|d| u64::try_from(d.as_millis()).unwrap_or(u64::MAX)),
        payload: None,
        definition: None,
    }
}

#[cfg(test)]
pub(crate) mod tests;
