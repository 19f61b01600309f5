//! How attempts end, case by case, and for other tests a job and the end of an attempt.

use super::*;
use crate::ids::{JobId, LeaseToken};
use crate::retry::RetryPolicy;
use crate::rules::Rule;
use proptest::prelude::*;

pub(crate) fn job(tally: Tally) -> LeasedJob {
    let now = Timestamp::from_millis(0);
    LeasedJob {
        lease: Lease { job: JobId::new(now, 1), token: LeaseToken::new(now, 2), epoch: 1 },
        number: 1,
        pipeline: "p".parse().expect("a name"),
        round: None,
        key: None,
        target: Some("example.com".into()),
        input: Default::default(),
        tally,
        accepted_at: now,
        progress: None,
        saved: None,
        automatic: false,
        tried: Vec::new(),
        probe: false,
        origin: None,
        edited: false,
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
fn rule_discards_a_job_whatever_it_worked_from() {
    let rules: Vec<Rule> =
        serde_json::from_value(serde_json::json!([{"status": [404], "reason": "not_found", "disposition": "discard"}]))
            .expect("the rules are valid");
    let policy = Policy { rules, ..Policy::default() };
    let report = FailureReport { http_status: Some(404), ..FailureReport::message("no such page") };
    for saved in [None, Some(Payload::bare(crate::payloads::PayloadHash::from_bytes([1; 32]), 3))] {
        let job = LeasedJob { saved, ..job(Tally::default()) };
        let mut decision = decide(&policy, &job, Outcome::Failed(report.clone()), ending());
        let why = "a rule discards it: not_found: no such page".to_owned();
        assert_eq!(decision.destination, Destination::Discarded { why });
        assert!(!decision.is_first_end() && !decision.signal.is_trouble(), "it counts as neither done nor dead");
        decision.keep(Some(Payload::bare(crate::payloads::PayloadHash::from_bytes([2; 32]), 3)));
        assert_eq!(decision.payload(), None);
    }
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
        assert!(matches!(decision.destination, Destination::Dead { gate: found, .. } if found == gate), "{attempts}");
        assert_eq!(decision.tally.attempts, attempts);
        tally = Tally { attempts_before: attempts, replays: tally.replays + 1, ..decision.tally };
    }
}

#[test]
fn only_failures_about_the_target_count_against_it() {
    let signal = |report| decide(&Policy::default(), &job(Tally::default()), Outcome::Failed(report), ending()).signal;
    for reason in [Reason::Timeout, Reason::Network, Reason::Dns, Reason::Tls, Reason::RateLimited, Reason::ServerError]
    {
        assert_eq!(signal(FailureReport::new(reason, "x")), Signal::Failed, "{reason}");
    }
    assert_eq!(signal(FailureReport::new(Reason::NoCapacity, "x")), Signal::Failed);
    assert_eq!(signal(FailureReport::new(Reason::Blocked, "x")), Signal::Blocked);
    for reason in [Reason::HandlerError, Reason::SchemaValidation, Reason::MalformedPayload, Reason::NotFound] {
        assert_eq!(signal(FailureReport::new(reason, "x")), Signal::Answered, "{reason}");
    }
    assert_eq!(signal(FailureReport::new(Reason::Misconfigured, "x")), Signal::Silent, "it was not asked");
    let crash = Outcome::Crashed(FailureReport::message("SIGSEGV"));
    assert_eq!(decide(&Policy::default(), &job(Tally::default()), crash, ending()).signal, Signal::Answered);
}

#[test]
fn status_of_a_failed_target_counts_though_an_exception_hides_it() {
    let hidden = |reason, status| FailureReport { http_status: Some(status), ..FailureReport::new(reason, "no price") };
    let decide = |policy: &Policy, report| decide(policy, &job(Tally::default()), Outcome::Failed(report), ending());
    for (status, signal) in
        [(503, Signal::Failed), (403, Signal::Blocked), (404, Signal::Answered), (200, Signal::Answered)]
    {
        let decision = decide(&Policy::default(), hidden(Reason::HandlerError, status));
        assert_eq!(decision.signal, signal, "{status}");
        assert_eq!(decision.failure.map(|failure| failure.reason), Some(Reason::HandlerError), "the reason stays");
    }
    let said = decide(&Policy::default(), hidden(Reason::NotFound, 503));
    assert_eq!(said.signal, Signal::Answered, "the handler knows better");
    let rule = Rule { message: Some("no price".parse().expect("a pattern")), ..Rule::for_reason(Reason::HandlerError) };
    let ruled = decide(&Policy { rules: vec![rule], ..Policy::default() }, hidden(Reason::HandlerError, 503));
    assert_eq!(ruled.signal, Signal::Answered, "so does the user");
}

/// Of sixty jobs each fifth gets a 503, and the others die of the user's own error: their site is not put on hold.
#[test]
fn healthy_target_stays_open_though_the_users_code_fails() {
    let policy = Policy::default();
    let said = (0..60).map(|n| {
        let (reason, status) = if n % 5 == 0 { (Reason::ServerError, Some(503)) } else { (Reason::HandlerError, None) };
        let report = FailureReport { http_status: status, ..FailureReport::new(reason, "x") };
        let signal = decide(&policy, &job(Tally::default()), Outcome::Failed(report), ending()).signal;
        Said { signal, probe: false, at: Timestamp::from_millis(n), took_ms: None, why: None }
    });
    let said: Vec<_> = said.collect();
    let breaker = crate::breakers::fold(None, &said, &policy.breaker);
    assert!(breaker.is_none_or(|breaker| breaker.state == crate::breakers::BreakerState::Closed));
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
                Destination::Done | Destination::Discarded { .. } => prop_assert!(false, "no rule says so"),
            }
        }
        prop_assert!(false, "never buried");
    }
}

#[test]
fn a_probe_that_fails_for_its_targets_sake_has_its_attempt_back_and_waits_behind_the_others() {
    let policy = Policy { retry: RetryPolicy { attempts_max: 1, ..RetryPolicy::default() }, ..Policy::default() };
    let probe = LeasedJob { probe: true, ..job(Tally { attempts: 5, ..Tally::default() }) };
    for reason in [Reason::Timeout, Reason::Network, Reason::ServerError, Reason::Blocked, Reason::RateLimited] {
        let decision = decide(&policy, &probe, Outcome::Failed(FailureReport::new(reason, "no")), ending());
        assert_eq!(decision.destination, Destination::Queue { due_at: ending().at }, "{reason}");
        assert_eq!(decision.tally.attempts, 5, "{reason}");
        assert!(decision.failure.is_some(), "what it met is kept");
    }
    let own = decide(&policy, &probe, Outcome::Failed(FailureReport::new(Reason::HandlerError, "no")), ending());
    assert!(matches!(own.destination, Destination::Dead { .. }), "its own errors are its own");
    let done = decide(&policy, &probe, Outcome::Done, ending());
    assert_eq!((done.destination, done.signal), (Destination::Done, Signal::Answered));
}

#[test]
fn a_settlement_says_what_its_target_failed_with() {
    let job = job(Tally::default());
    let failed = Settlement::new(&job, fail(Tally::default(), Reason::Timeout), &CauseRules::default());
    let (target, heard) = failed.heard(3, ending().at).expect("it has a target");
    assert_eq!((target, heard.by, heard.said.signal, heard.said.probe), ("example.com", 3, Signal::Failed, false));
    assert_eq!(heard.said.why.map(|why| why.to_string()).as_deref(), Some("timeout: no"));
    let nowhere = Settlement { target: None, ..failed };
    assert_eq!(nowhere.heard(0, ending().at), None);
}

#[test]
fn a_settlement_is_known_again_by_where_its_lease_brought_the_job() {
    let settlement = |outcome| {
        let job = job(Tally::default());
        Settlement::new(&job, decide(&Policy::default(), &job, outcome, ending()), &CauseRules::default())
    };
    let timeout = || Outcome::Failed(FailureReport::new(Reason::Timeout, "slow"));
    let fatal = || Outcome::Failed(FailureReport::new(Reason::Blocked, "no"));
    for (outcome, state) in [(Outcome::Done, JobState::Done), (timeout(), JobState::Queued), (fatal(), JobState::Dead)]
    {
        let sent = settlement(outcome.clone());
        assert!(sent.is_resent(Some(state)) && !sent.is_resent(None), "{state}");
        assert!(outcome.is_resent(state), "{state}");
        let others = [JobState::Done, JobState::Queued, JobState::Dead].into_iter().filter(|other| *other != state);
        assert!(others.into_iter().all(|other| !sent.is_resent(Some(other))), "another verdict was given: {state}");
    }
    assert!(!Outcome::Done.is_resent(JobState::Queued) && !timeout().is_resent(JobState::Done));
}

#[test]
fn job_that_waited_too_long_for_its_target_becomes_a_letter_with_what_that_failed_with() {
    let last = |reason| TargetFailure { reason, code: None, http_status: Some(504), message: "Gateway Timeout".into() };
    let job = job(Tally { attempts: 2, suspect: true, ..Tally::default() });
    let given_up = |reason| give_up(&job, &last(reason), ending());
    let decision = given_up(Reason::ServerError);
    assert_eq!(decision.destination, Destination::bury(Gate::Auto, None));
    assert_eq!(given_up(Reason::Blocked).destination, Destination::bury(Gate::Review, None));
    assert_eq!((decision.signal, decision.tally), (Signal::Silent, Tally { suspect: false, ..job.tally }));
    let failure = decision.failure.expect("it has one");
    assert_eq!((failure.reason, failure.code.as_deref()), (Reason::ServerError, Some("target_on_hold")));
    assert_eq!((failure.http_status, failure.attempt, failure.message.as_str()), (Some(504), 2, "Gateway Timeout"));
}
