//! Proxies: which one a job takes next, and when a job that one of them failed goes on through another.
//!
//! A target that refuses one address may serve another, so a job that is blocked, or cannot connect, is not lost with the first
//! proxy. It is no retry loop either: it goes through a few proxies, each once, and then to a person.

use serde::{Deserialize, Serialize};

use crate::breakers::Signal;
use crate::failures::{Disposition, FailureReport, Reason};
use crate::jobs::{LeasedJob, Tally};
use crate::policy::Policy;
use crate::rules::Verdict;
use crate::settlements::{Decision, Destination, Ending, record};
use crate::traffic::Facts;

/// The stage of a request at which no connection has been made.
pub const CONNECT_STAGE: &str = "connect";

/// The proxies that the jobs of a pipeline may take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProxyPolicy {
    /// What they are called.
    pub labels: Vec<String>,
    /// How many of them a job that is blocked, or cannot connect, goes through in one run.
    pub tried_max: usize,
}

impl Default for ProxyPolicy {
    fn default() -> Self {
        Self { labels: Vec::new(), tried_max: 3 }
    }
}

/// A proxy through which an attempt of a job failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TriedProxy {
    /// What it is called.
    pub label: String,
    /// The replay that the attempt was part of; 0 before the first.
    pub replay: u32,
}

/// The proxies that a job has tried, oldest first, and the replay it is in now.
#[derive(Clone, Copy, Debug)]
pub struct History<'a> {
    /// Failed attempts.
    pub tried: &'a [TriedProxy],
    /// The replay under way; 0 before the first.
    pub replay: u32,
}

impl History<'_> {
    /// How often a job failed through a proxy: in this run, and ever.
    fn failures(&self, label: &str) -> (usize, usize) {
        let through = || self.tried.iter().filter(|tried| tried.label == label);
        (through().filter(|tried| tried.replay == self.replay).count(), through().count())
    }
}

impl ProxyPolicy {
    /// Whether there is a choice.
    pub fn is_choice(&self) -> bool {
        self.labels.len() > 1
    }

    /// The place of the proxy that a job takes next: one that it has not failed through, while there is one, else the one it
    /// failed through least often. Of equals it is the `turn`-th, so that jobs spread. None if there are no proxies.
    pub fn next(&self, history: History<'_>, turn: usize) -> Option<usize> {
        let failures: Vec<_> = self.labels.iter().map(|label| history.failures(label)).collect();
        let fewest = failures.iter().min()?;
        let equals: Vec<usize> = (0..failures.len()).filter(|place| failures[*place] == *fewest).collect();
        equals.get(turn % equals.len()).copied()
    }

    /// Whether a job that failed so goes on through another proxy: it was the proxy, or how the target takes it, that failed,
    /// one is left that this run has not tried, and it has not tried as many as it may.
    pub fn goes_on(&self, report: &FailureReport, reason: Reason, history: History<'_>) -> bool {
        let Some(label) = report.proxy.as_ref().filter(|label| self.labels.contains(label)) else { return false };
        let is_unreached = report.stage.as_deref() == Some(CONNECT_STAGE)
            && matches!(reason, Reason::Network | Reason::Timeout | Reason::Dns | Reason::Tls);
        let is_tried = |known: &&String| *known == label || history.failures(known).0 > 0;
        let mut tried: Vec<&String> = self.labels.iter().filter(is_tried).collect();
        tried.sort();
        tried.dedup();
        let is_left = self.labels.iter().any(|known| !tried.contains(&known));
        (reason == Reason::Blocked || is_unreached) && is_left && tried.len() < self.tried_max
    }
}

/// Whether a job that failed goes on through another proxy. What works from a saved payload takes none, and what is held waits.
pub(crate) fn goes_on(policy: &Policy, job: &LeasedJob, report: &FailureReport, verdict: Verdict) -> bool {
    let is_held = report.hold || verdict.disposition == Disposition::Hold;
    let is_over = verdict.disposition == Disposition::Discard;
    job.saved.is_none() && !is_held && !is_over && policy.proxies.goes_on(report, verdict.reason, job.proxies())
}

/// Sends a job on through another proxy. It waits as after a first failure, whatever the one that blocked it asks for, and only
/// its last proxy counts for its target's breaker: one job is one word about the target, through however many proxies it was
/// asked. As a probe of a breaker that was open it found no answer, and waits with the others.
pub(crate) fn go_on(
    policy: &Policy,
    job: &LeasedJob,
    report: FailureReport,
    verdict: Verdict,
    ending: Ending,
) -> Decision {
    let delay = policy.retry.delay(1, None, ending.chance);
    Decision {
        destination: Destination::Queue { due_at: ending.at + delay },
        tally: Tally { attempts: job.attempt(), suspect: false, ..job.tally },
        failure: Some(record(job, report, verdict.reason, ending)),
        signal: Signal::WentOn,
        kept: None,
        facts: Facts::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dead::Gate;
    use crate::retry::RetryPolicy;
    use crate::settlements::tests::{ending, job};
    use crate::settlements::{Outcome, decide};
    use crate::time::Timestamp;

    fn policy(labels: &[&str]) -> ProxyPolicy {
        ProxyPolicy { labels: labels.iter().map(ToString::to_string).collect(), ..ProxyPolicy::default() }
    }

    fn tried(labels: &[(&str, u32)]) -> Vec<TriedProxy> {
        labels.iter().map(|(label, replay)| TriedProxy { label: (*label).into(), replay: *replay }).collect()
    }

    fn next(policy: &ProxyPolicy, labels: &[(&str, u32)], replay: u32, turn: usize) -> Option<usize> {
        policy.next(History { tried: &tried(labels), replay }, turn)
    }

    #[test]
    fn a_job_takes_no_proxy_twice_while_another_is_left() {
        let policy = policy(&["a", "b", "c"]);
        assert_eq!(
            (0..4).map(|turn| next(&policy, &[], 0, turn)).collect::<Vec<_>>(),
            [Some(0), Some(1), Some(2), Some(0)]
        );
        for turn in 0..5 {
            assert_ne!(next(&policy, &[("a", 0)], 0, turn), Some(0));
            assert_eq!(next(&policy, &[("a", 0), ("c", 0)], 0, turn), Some(1));
            assert_eq!(next(&policy, &[("a", 0), ("c", 0), ("b", 0), ("c", 0), ("a", 0)], 0, turn), Some(1));
            assert_eq!(next(&policy, &[("a", 0), ("c", 0)], 1, turn), Some(1), "also in a replay");
            assert_eq!(next(&policy, &[("a", 0), ("b", 0), ("c", 0), ("a", 1), ("c", 1)], 1, turn), Some(1));
        }
        assert_eq!(next(&ProxyPolicy::default(), &[], 0, 7), None);
        assert_eq!(next(&policy, &[("gone", 0)], 0, 1), Some(1), "one that is no longer configured does not matter");
    }

    #[test]
    fn it_goes_on_until_it_has_tried_as_many_as_it_may() {
        let policy = policy(&["a", "b", "c", "d"]);
        let goes_on = |label: &str, labels: &[(&str, u32)], replay| {
            let report = FailureReport { proxy: Some(label.into()), ..FailureReport::default() };
            policy.goes_on(&report, Reason::Blocked, History { tried: &tried(labels), replay })
        };
        assert!(goes_on("a", &[], 0));
        assert!(goes_on("b", &[("a", 0)], 0));
        assert!(!goes_on("c", &[("a", 0), ("b", 0)], 0), "the third is the last");
        assert!(goes_on("d", &[("a", 0), ("b", 0), ("c", 0)], 1), "a replay is a run of its own");
        assert!(!goes_on("elsewhere", &[], 0), "it is not one of ours");
    }

    #[test]
    fn only_what_another_proxy_may_change_goes_on() {
        let goes_on = |policy: &ProxyPolicy, reason, stage: Option<&str>| {
            let report =
                FailureReport { proxy: Some("a".into()), stage: stage.map(str::to_owned), ..FailureReport::default() };
            policy.goes_on(&report, reason, History { tried: &[], replay: 0 })
        };
        let two = policy(&["a", "b"]);
        assert!(goes_on(&two, Reason::Blocked, None));
        for reason in [Reason::Network, Reason::Timeout, Reason::Dns, Reason::Tls] {
            assert!(goes_on(&two, reason, Some("connect")), "{reason}");
            assert!(!goes_on(&two, reason, Some("read")), "{reason}: the target was reached");
        }
        assert!(!goes_on(&two, Reason::SchemaValidation, Some("connect")));
        assert!(!goes_on(&policy(&["a"]), Reason::Blocked, None), "there is no other");
        assert!(!goes_on(&policy(&["a", "a"]), Reason::Blocked, None), "nor is the same one twice");
        assert!(!goes_on(&ProxyPolicy { tried_max: 1, ..two }, Reason::Blocked, None));
    }

    /// Fails a job through proxies, one after the other, until it is buried; gives the decisions.
    fn blocked_through(policy: &Policy, labels: &[&str]) -> Vec<Decision> {
        let mut job = job(Tally::default());
        let mut decisions = Vec::new();
        for label in labels {
            // What asks to wait is the way that is left.
            let report =
                FailureReport { retry_after_secs: Some(3_600.0), ..FailureReport::new(Reason::Blocked, "403") };
            let report = FailureReport { proxy: Some((*label).into()), ..report };
            let decision = decide(policy, &job, Outcome::Failed(report), ending());
            job.tally = decision.tally;
            job.tried.push(TriedProxy { label: (*label).into(), replay: 0 });
            decisions.push(decision);
        }
        decisions
    }

    fn with_proxies(labels: &[&str], attempts: u32) -> Policy {
        let mut policy = Policy { retry: RetryPolicy::default().with_attempts(attempts), ..Policy::default() };
        policy.proxies.labels = labels.iter().map(ToString::to_string).collect();
        policy
    }

    #[test]
    fn a_blocked_job_goes_on_through_other_proxies_and_counts_once() {
        let decisions = blocked_through(&with_proxies(&["a", "b", "c", "d"], 4), &["a", "b", "c"]);
        for going_on in &decisions[..2] {
            let soon = Timestamp::from_millis(11_000);
            assert_eq!(
                (&going_on.destination, going_on.signal),
                (&Destination::Queue { due_at: soon }, Signal::WentOn)
            );
            assert_eq!(going_on.failure.as_ref().map(|failure| failure.reason), Some(Reason::Blocked));
        }
        assert!(matches!(decisions[2].destination, Destination::Dead { gate: Gate::Review, .. }));
        assert_eq!((decisions[2].signal, decisions[2].tally.attempts), (Signal::Blocked, 3));
    }

    #[test]
    fn going_on_needs_attempts_and_another_proxy() {
        let spent = blocked_through(&with_proxies(&["a", "b", "c"], 2), &["a", "b"]);
        assert!(matches!(spent[1].destination, Destination::Dead { .. }), "each proxy is an attempt");
        assert_eq!(spent[1].signal, Signal::Blocked);
        for labels in [&["a"][..], &[]] {
            let decision = &blocked_through(&with_proxies(labels, 4), &["a"])[0];
            assert!(matches!(decision.destination, Destination::Dead { .. }));
            assert_eq!(decision.signal, Signal::Blocked);
        }
    }
}
