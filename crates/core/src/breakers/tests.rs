//! How breakers open, let probes through and close.

use super::*;

const fn at(secs: i64) -> Timestamp {
    Timestamp::from_millis(secs * 1_000)
}

fn said(signal: Signal, secs: i64) -> Said {
    Said { signal, probe: false, at: at(secs), took_ms: None, why: None }
}

fn probe(signal: Signal, secs: i64) -> Said {
    Said { probe: true, ..said(signal, secs) }
}

/// Opened at 1 s, until 31 s.
fn opened(policy: &BreakerPolicy) -> Breaker {
    let mut breaker = Breaker::closed(at(0));
    for _ in 0..policy.attempts_min {
        breaker.record(&said(Signal::Failed, 1), policy);
    }
    assert_eq!(breaker.state, BreakerState::Open);
    breaker
}

#[test]
fn opens_on_a_share_not_on_a_count() {
    let policy = BreakerPolicy::default();
    let mut breaker = Breaker::closed(at(0));
    for _ in 0..30 {
        breaker.record(&said(Signal::Answered, 1), &policy);
        breaker.record(&said(Signal::Answered, 1), &policy);
        breaker.record(&said(Signal::Failed, 1), &policy);
    }
    assert_eq!(breaker.state, BreakerState::Closed);
    let mut fresh = Breaker::closed(at(0));
    for _ in 0..19 {
        fresh.record(&said(Signal::Failed, 1), &policy);
        assert_eq!(fresh.state, BreakerState::Closed, "below the minimum");
    }
    opened(&policy);
}

#[test]
fn old_failures_are_forgotten() {
    let policy = BreakerPolicy::default();
    let mut breaker = Breaker::closed(at(0));
    for minute in 0..40 {
        breaker.record(&said(Signal::Failed, minute * 61), &policy);
    }
    assert_eq!(breaker.state, BreakerState::Closed);
}

#[test]
fn a_few_refusals_in_a_row_are_enough() {
    let policy = BreakerPolicy::default();
    let mut breaker = Breaker::closed(at(0));
    for _ in 0..4 {
        breaker.record(&said(Signal::Blocked, 1), &policy);
    }
    breaker.record(&said(Signal::Answered, 1), &policy);
    for _ in 0..4 {
        breaker.record(&said(Signal::Blocked, 1), &policy);
    }
    assert_eq!(breaker.state, BreakerState::Closed);
    breaker.record(&said(Signal::Blocked, 1), &policy);
    assert_eq!(breaker.admission(at(2)), Admission::NotBefore(at(31)));
}

#[test]
fn probes_slowly_and_closes_on_success() {
    let policy = BreakerPolicy::default();
    let mut breaker = opened(&policy);
    assert_eq!(breaker.admission(at(30)), Admission::NotBefore(at(31)));
    for allowed in [1, 2, 4] {
        assert_eq!(breaker.admission(at(31)), Admission::Probes(allowed));
        breaker.record(&probe(Signal::Answered, 32), &policy);
    }
    assert_eq!(breaker.state, BreakerState::Closed);
    assert!(breaker.is_idle(&policy, at(32)));
}

#[test]
fn a_failed_probe_opens_it_for_longer_and_those_that_were_out_with_it_add_nothing() {
    let policy = BreakerPolicy::default();
    let mut breaker = opened(&policy);
    breaker.record(&probe(Signal::Answered, 31), &policy);
    assert_eq!(breaker.admission(at(31)), Admission::Probes(2));
    breaker.record(&probe(Signal::Failed, 32), &policy);
    assert_eq!(breaker.admission(at(33)), Admission::NotBefore(at(32 + 60)));
    breaker.record(&probe(Signal::Failed, 34), &policy);
    breaker.record(&probe(Signal::Answered, 35), &policy);
    assert_eq!(breaker.admission(at(36)), Admission::NotBefore(at(32 + 60)));
    assert_eq!(breaker.opened_at, Some(at(1)), "it has been open all the time");
}

#[test]
fn only_probes_have_a_verdict() {
    let policy = BreakerPolicy::default();
    let mut breaker = opened(&policy);
    for straggler in [Signal::Failed, Signal::Answered, Signal::Blocked, Signal::WentOn] {
        breaker.record(&said(straggler, 40), &policy);
        assert_eq!((breaker.state, breaker.admission(at(41))), (BreakerState::Open, Admission::Probes(1)));
    }
    breaker.record(&probe(Signal::Answered, 41), &policy);
    let half_open = breaker.clone();
    for straggler in [Signal::Failed, Signal::Answered, Signal::Hold(Duration::from_secs(600))] {
        breaker.record(&said(straggler, 42), &policy);
    }
    assert_eq!((breaker.state, breaker.probes_ok), (half_open.state, half_open.probes_ok));
}

#[test]
fn a_probe_that_says_nothing_about_the_target_leaves_its_place_to_another() {
    let policy = BreakerPolicy::default();
    let mut breaker = opened(&policy);
    breaker.record(&probe(Signal::Silent, 40), &policy);
    assert_eq!(breaker.admission(at(41)), Admission::Probes(1));
    breaker.record(&probe(Signal::Answered, 42), &policy);
    breaker.record(&probe(Signal::Silent, 43), &policy);
    assert_eq!(breaker.admission(at(44)), Admission::Probes(2));
}

#[test]
fn a_probe_that_goes_on_through_another_proxy_is_the_only_one_of_its_cool_down() {
    let policy = BreakerPolicy::default();
    let mut closed = Breaker::closed(at(0));
    for _ in 0..100 {
        closed.record(&said(Signal::WentOn, 1), &policy);
    }
    assert_eq!(closed, Breaker::closed(at(0)), "while jobs flow only their last proxy counts");
    let mut breaker = opened(&policy);
    let mut now = 31;
    for cool_down in [60, 120, 240, 240] {
        assert_eq!(breaker.admission(at(now)), Admission::Probes(1));
        breaker.record(&probe(Signal::WentOn, now), &policy);
        assert_eq!(breaker.admission(at(now)), Admission::NotBefore(at(now + cool_down)));
        now += cool_down;
    }
}

#[test]
fn it_knows_the_failure_that_opened_it_and_the_last_one() {
    let policy = BreakerPolicy::default();
    let why = |message: &str| {
        Some(TargetFailure {
            reason: Reason::Timeout,
            code: Some("E1".into()),
            http_status: None,
            message: message.into(),
        })
    };
    let mut breaker = Breaker::closed(at(0));
    for n in 0..20 {
        let failed = Said { why: why(&format!("failure {n}")), ..said(Signal::Failed, n) };
        breaker.record(&failed, &policy);
    }
    breaker.record(&Said { why: why("a probe"), ..probe(Signal::Failed, 60) }, &policy);
    assert_eq!(breaker.opened_by, why("failure 19"));
    assert_eq!((breaker.opened_at, breaker.last.clone()), (Some(at(19)), why("a probe")));
    for _ in 0..3 {
        breaker.record(&probe(Signal::Answered, 600), &policy);
    }
    assert_eq!(breaker, Breaker::closed(at(600)), "it is over");
}

#[test]
fn a_breaker_that_opened_while_the_clock_was_ahead_waits_no_longer_than_it_was_told() {
    let policy = BreakerPolicy::default();
    let mut breaker = Breaker::closed(at(10_800));
    breaker.record(&said(Signal::Hold(Duration::from_secs(600)), 10_800), &policy);
    assert!(breaker.rewind(at(1)));
    assert_eq!(breaker.admission(at(2)), Admission::NotBefore(at(601)));
    assert!(!breaker.rewind(at(2)), "it is right now");
}

#[test]
fn hold_opens_at_once_and_honours_the_wait() {
    let policy = BreakerPolicy::default();
    let mut breaker = Breaker::closed(at(0));
    breaker.record(&said(Signal::Hold(Duration::from_secs(600)), 1), &policy);
    assert_eq!(breaker.admission(at(2)), Admission::NotBefore(at(601)));
}

#[test]
fn a_target_is_remembered_only_while_it_gives_trouble() {
    let policy = BreakerPolicy::default();
    assert_eq!(fold(None, &[said(Signal::Answered, 1), said(Signal::Silent, 2)], &policy), None);
    let one = fold(None, &[said(Signal::Answered, 1), said(Signal::Failed, 2)], &policy).expect("it failed");
    assert_eq!((one.attempts, one.failures), (1, 1));
    let two = fold(Some(&one), &[said(Signal::Failed, 3), said(Signal::Answered, 4)], &policy).expect("it failed");
    assert_eq!((two.attempts, two.failures), (3, 2));
    assert_eq!(fold(Some(&two), &[said(Signal::Answered, 90)], &policy), None, "its window is over");
}

/// Returns how long jobs have waited for the target of a breaker, in seconds.
fn waited(breaker: &Breaker, now: i64) -> Option<u64> {
    let by = breaker.overdue_by(Duration::ZERO, at(0), at(now))?;
    Some(by.since(breaker.waits_from.expect("they wait")).as_secs())
}

fn failed_probe(secs: i64, took: u64) -> Said {
    Said { took_ms: Some(took * 1_000), ..probe(Signal::Failed, secs) }
}

#[test]
fn jobs_that_wait_longer_for_a_target_than_they_may_are_known() {
    let mut breaker = opened(&BreakerPolicy::default());
    let overdue = |breaker: &Breaker, now| breaker.overdue_by(Duration::from_secs(40), at(0), at(now));
    assert_eq!((breaker.waits_from, overdue(&breaker, 31)), (Some(at(1)), None));
    breaker.record(&failed_probe(36, 5), &BreakerPolicy::default());
    assert_eq!(
        (overdue(&breaker, 40), overdue(&breaker, 41), overdue(&breaker, 50)),
        (None, Some(at(1)), Some(at(10)))
    );
    assert_eq!(breaker.overdue_by(Duration::from_secs(40), at(5), at(44)), None, "they wait since 5 s");
}

/// Between a cool-down and the next probe nobody asked the target: there was no worker, or the pipeline was paused.
#[test]
fn time_in_which_nobody_asked_the_target_does_not_count() {
    let mut breaker = opened(&BreakerPolicy::default());
    assert_eq!((waited(&breaker, 31), waited(&breaker, 9_000)), (Some(30), Some(30)));
    breaker.record(&failed_probe(9_005, 5), &BreakerPolicy::default());
    assert_eq!(waited(&breaker, 9_005), Some(35), "its cool-down, and the probe");
}

#[test]
fn time_in_a_hold_that_a_person_or_a_rule_asked_for_does_not_count() {
    let policy = BreakerPolicy::default();
    let mut breaker = opened(&policy);
    breaker.record(&said(Signal::Hold(Duration::from_secs(500)), 2), &policy);
    assert_eq!((breaker.open_until, waited(&breaker, 400)), (at(502), None));
    breaker.record(&probe(Signal::Hold(Duration::from_secs(500)), 502), &policy);
    assert_eq!(waited(&breaker, 600), None);
    breaker.record(&probe(Signal::Failed, 1_002), &policy);
    assert_eq!(waited(&breaker, 1_012), Some(10), "now it is the target's own doing");
    let by = crate::actors::Actor::redrive();
    let held = BreakerTurn::Hold(HeldBy { by, why: None, until: Some(at(2_000)) });
    let mut breaker = turned(Some(&breaker), &held, at(1_020)).expect("held").expect("a breaker");
    assert_eq!(waited(&breaker, 1_900), None);
    breaker.record(&probe(Signal::Failed, 2_001), &policy);
    assert_eq!(waited(&breaker, 2_011), Some(10));
}

#[test]
fn nobody_waits_too_long_for_a_target_that_answers_again() {
    let policy = BreakerPolicy::default();
    let mut breaker = opened(&policy);
    breaker.record(&probe(Signal::Answered, 31), &policy);
    assert_eq!((breaker.state, waited(&breaker, 31)), (BreakerState::HalfOpen, None));
    breaker.record(&failed_probe(40, 0), &policy);
    assert_eq!(waited(&breaker, 41), Some(31), "it answered for a moment");
}
