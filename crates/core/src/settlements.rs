//! How an attempt ends: from its outcome and the pipeline's policy to the one move the store is to make.
//!
//! Everything a store writes when a job is settled is decided here and handed over as data.

use std::time::Duration;

use crate::breakers::Signal;
use crate::crashes;
use crate::dead::Gate;
use crate::failures::{Disposition, Failure, FailureReport, Reason};
use crate::ids::WorkerId;
use crate::jobs::{Lease, LeasedJob, Tally};
use crate::payloads::Payload;
use crate::policy::Policy;
use crate::proxies;
use crate::retry::RetryPolicy;
use crate::rules::{Verdict, classify};
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
}

impl Destination {
    /// It becomes a dead letter.
    pub const fn bury(gate: Gate, verdict: Option<String>) -> Self {
        Self::Dead { gate, verdict }
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
    /// Adds the payload of the attempt: to its failure, or beside its success.
    pub fn keep(&mut self, payload: Option<Payload>) {
        match &mut self.failure {
            Some(failure) => failure.payload = payload,
            None => self.kept = payload.filter(|_| self.destination == Destination::Done),
        }
    }

    /// The same for a job that may have worked from a saved payload, which says nothing about its target as it is now.
    pub(crate) fn of(self, job: &LeasedJob) -> Self {
        let signal = if job.saved.is_some() { Signal::Unasked } else { self.signal };
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
    /// What is to be written.
    pub decision: Decision,
}

/// Decides how an attempt ends.
pub fn decide(policy: &Policy, job: &LeasedJob, outcome: Outcome, ending: Ending) -> Decision {
    decide_asked(policy, job, outcome, ending).of(job)
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
    if verdict.disposition == Disposition::Hold && job.target.is_none() {
        // There is no breaker to hold it: an attempt given back for nothing would never end.
        verdict.disposition = Disposition::Retry;
    }
    if job.saved.is_some() {
        // The same bytes give the same result: only other rules, or asking anew, can help.
        verdict.disposition = Disposition::Dead;
    }
    let wait = report.retry_after();
    if attempts_left(policy, job) && proxies::goes_on(policy, job, &report, verdict) {
        return proxies::go_on(policy, job, report, verdict, ending);
    }
    let signal = match report.hold {
        true => Signal::Hold(wait.unwrap_or_default()),
        false => Signal::of_failure(verdict.reason, verdict.disposition, wait),
    };
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
    let destination = match verdict.disposition == Disposition::Retry && attempts_left(policy, job) {
        true => Destination::Queue { due_at: ending.at + policy.retry.delay(in_run(tally), wait, ending.chance) },
        false => bury(&policy.retry, verdict, tally),
    };
    Decision { destination, tally, failure, signal, kept: None, facts: Facts::default() }
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
        crash: false,
        code: report.code,
        message: report.message,
        error_type: report.error_type,
        stack: report.stack,
        stage: report.stage,
        http_status: report.http_status,
        target: report.target.or_else(|| job.target.clone()),
        proxy: report.proxy,
        retry_after_secs: report.retry_after_secs,
        stderr: report.stderr,
        worker: ending.worker,
        duration_ms: ending.duration.map(|d| u64::try_from(d.as_millis()).unwrap_or(u64::MAX)),
        payload: None,
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::ids::{JobId, LeaseToken};
    use crate::retry::RetryPolicy;
    use proptest::prelude::*;

    pub(crate) fn job(tally: Tally) -> LeasedJob {
        let now = Timestamp::from_millis(0);
        LeasedJob {
            lease: Lease { job: JobId::new(now, 1), token: LeaseToken::new(now, 2), epoch: 1 },
            pipeline: "p".parse().expect("a name"),
            key: None,
            target: Some("example.com".into()),
            input: Default::default(),
            tally,
            accepted_at: now,
            progress: None,
            saved: None,
            automatic: false,
            tried: Vec::new(),
        }
    }

    pub(crate) fn ending() -> Ending {
        Ending { at: Timestamp::from_millis(10_000), duration: None, worker: None, chance: 0.0 }
    }

    fn fail(tally: Tally, reason: Reason) -> Decision {
        decide(&Policy::default(), &job(tally), Outcome::Failed(FailureReport::new(reason, "no")), ending())
    }

    #[test]
    fn a_saved_payload_is_tried_once_and_says_nothing_about_its_target() {
        let saved = Some(Payload::bare(crate::payloads::PayloadHash::from_bytes([1; 32]), 3));
        let job = LeasedJob { saved, ..job(Tally::default()) };
        for reason in [Reason::Timeout, Reason::RateLimited, Reason::SchemaValidation] {
            let decision = decide(&Policy::default(), &job, Outcome::Failed(FailureReport::new(reason, "x")), ending());
            assert!(matches!(decision.destination, Destination::Dead { .. }), "{reason}");
            assert_eq!(decision.signal, Signal::Unasked);
        }
        assert_eq!(decide(&Policy::default(), &job, Outcome::Done, ending()).signal, Signal::Unasked);
    }

    #[test]
    fn retries_until_the_attempts_are_used_up() {
        let mut tally = Tally::default();
        for wait in [1_000, 2_000, 4_000] {
            let decision = fail(tally, Reason::Timeout);
            assert_eq!(decision.destination, Destination::Queue { due_at: Timestamp::from_millis(10_000 + wait) });
            tally = decision.tally;
        }
        let last = fail(tally, Reason::Timeout);
        assert!(matches!(last.destination, Destination::Dead { gate: Gate::Auto, .. }));
        assert_eq!((last.tally.attempts, last.failure.map(|f| f.attempt)), (4, Some(4)));
    }

    #[test]
    fn fatal_errors_skip_retries() {
        let decision = fail(Tally::default(), Reason::SchemaValidation);
        assert!(matches!(decision.destination, Destination::Dead { gate: Gate::Review, .. }));
        assert_eq!(decision.tally.attempts, 1);
    }

    #[test]
    fn a_replay_has_its_own_attempts_up_to_the_total() {
        let replayed = Tally { attempts: 4, attempts_before: 4, replays: 1, ..Tally::default() };
        let fifth = fail(replayed, Reason::Timeout);
        assert!(matches!(fifth.destination, Destination::Queue { .. }));
        let sixth = fail(fifth.tally, Reason::Timeout);
        assert!(matches!(sixth.destination, Destination::Dead { gate: Gate::Never, .. }));
    }

    #[test]
    fn an_automatic_replay_is_one_attempt_so_that_two_fit_under_the_total() {
        let mut tally = Tally { attempts: 4, attempts_before: 4, replays: 1, ..Tally::default() };
        for (attempts, gate) in [(5, Gate::Auto), (6, Gate::Never)] {
            let job = LeasedJob { automatic: true, ..job(tally) };
            let slow = Outcome::Failed(FailureReport::new(Reason::Timeout, "slow"));
            let decision = decide(&Policy::default(), &job, slow, ending());
            assert!(
                matches!(decision.destination, Destination::Dead { gate: found, .. } if found == gate),
                "{attempts}"
            );
            assert_eq!(decision.tally.attempts, attempts);
            tally = Tally { attempts_before: attempts, replays: tally.replays + 1, ..decision.tally };
        }
    }

    #[test]
    fn hold_gives_the_attempt_back() {
        let report = FailureReport {
            disposition: Some(Disposition::Hold),
            retry_after_secs: Some(60.0),
            ..FailureReport::new(Reason::Misconfigured, "wrong key")
        };
        let decision = decide(&Policy::default(), &job(Tally::default()), Outcome::Failed(report), ending());
        assert!(matches!(decision.destination, Destination::Queue { .. }));
        assert_eq!(decision.tally.attempts, 0);
        assert_eq!(decision.signal, Signal::Hold(Duration::from_secs(60)));
        assert!(decision.failure.is_some(), "the evidence is kept");
    }

    #[test]
    fn a_job_may_be_buried_and_its_target_held_at_once() {
        let report = FailureReport { hold: true, ..FailureReport::new(Reason::Misconfigured, "wrong key") };
        let decision = decide(&Policy::default(), &job(Tally::default()), Outcome::Failed(report), ending());
        assert!(matches!(decision.destination, Destination::Dead { gate: Gate::Review, .. }));
        assert_eq!(decision.signal, Signal::Hold(Duration::ZERO));
    }

    #[test]
    fn a_job_without_a_target_cannot_be_held_for_ever() {
        let report = FailureReport { disposition: Some(Disposition::Hold), ..FailureReport::message("later") };
        let nowhere = LeasedJob { target: None, ..job(Tally::default()) };
        let decision = decide(&Policy::default(), &nowhere, Outcome::Failed(report), ending());
        assert_eq!(decision.tally.attempts, 1);
        assert!(matches!(decision.destination, Destination::Queue { due_at } if due_at > ending().at));
    }

    #[test]
    fn a_lost_payload_is_told_and_not_referred_to() {
        let mut decision = fail(Tally::default(), Reason::SchemaValidation);
        decision.keep(Some(Payload::bare(crate::payloads::PayloadHash::from_bytes([1; 32]), 3)));
        assert!(decision.payload().is_some());
        decision.lose_payload("collected too soon");
        assert_eq!(decision.payload(), None);
        let told = decision.failure.and_then(|failure| failure.payload).and_then(|payload| payload.lost);
        assert_eq!(told.as_deref(), Some("collected too soon"));
    }

    #[test]
    fn returning_a_job_costs_nothing() {
        let tally = Tally { attempts: 2, crashes: 1, ..Tally::default() };
        let decision = decide(&Policy::default(), &job(tally), Outcome::Returned, ending());
        assert_eq!((decision.tally, decision.failure), (tally, None));
        assert_eq!(decision.destination, Destination::Queue { due_at: ending().at });
    }

    proptest! {
        /// Whatever happens, a job ends after a bounded number of attempts.
        #[test]
        fn every_job_comes_to_an_end(attempts_max in 1u32..10, total in 1u32..10, picks in prop::collection::vec(0usize..17, 200)) {
            let retry = RetryPolicy { attempts_max, attempts_total_max: total, ..RetryPolicy::default() };
            let policy = Policy { retry, ..Policy::default() };
            let mut tally = Tally::default();
            for pick in picks {
                let outcome = match Reason::ALL[pick] {
                    Reason::PoisonPill => Outcome::Crashed(FailureReport::message("killed")),
                    reason => Outcome::Failed(FailureReport::new(reason, "no")),
                };
                let decision = decide(&policy, &job(tally), outcome, ending());
                prop_assert!(decision.failure.is_some());
                match decision.destination {
                    Destination::Queue { .. } => tally = decision.tally,
                    Destination::Dead { .. } => {
                        prop_assert!(decision.tally.attempts <= attempts_max.min(total));
                        prop_assert!(decision.tally.crashes <= policy.crashes_max);
                        return Ok(());
                    }
                    Destination::Done => prop_assert!(false, "a failure is never done"),
                }
            }
            prop_assert!(false, "never buried");
        }
    }
}
