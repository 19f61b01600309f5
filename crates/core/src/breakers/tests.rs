//! How breakers open, let probes through and close.

use super::*;

const fn at(secs: i64) -> Timestamp {
    Timestamp::from_millis(secs * 1_000)
}

fn opened(policy: &BreakerPolicy) -> Breaker {
    let mut breaker = Breaker::closed(at(0));
    for _ in 0..policy.attempts_min {
        breaker.record(Signal::Failed, policy, at(1));
    }
    assert_eq!(breaker.state, BreakerState::Open);
    breaker
}

#[test]
fn opens_on_a_share_not_on_a_count() {
    let policy = BreakerPolicy::default();
    let mut breaker = Breaker::closed(at(0));
    for _ in 0..30 {
        breaker.record(Signal::Answered, &policy, at(1));
        breaker.record(Signal::Answered, &policy, at(1));
        breaker.record(Signal::Failed, &policy, at(1));
    }
    assert_eq!(breaker.state, BreakerState::Closed);
    let mut fresh = Breaker::closed(at(0));
    for _ in 0..19 {
        fresh.record(Signal::Failed, &policy, at(1));
        assert_eq!(fresh.state, BreakerState::Closed, "below the minimum");
    }
    opened(&policy);
}

#[test]
fn old_failures_are_forgotten() {
    let policy = BreakerPolicy::default();
    let mut breaker = Breaker::closed(at(0));
    for minute in 0..40 {
        breaker.record(Signal::Failed, &policy, at(minute * 61));
    }
    assert_eq!(breaker.state, BreakerState::Closed);
}

#[test]
fn a_few_refusals_in_a_row_are_enough() {
    let policy = BreakerPolicy::default();
    let mut breaker = Breaker::closed(at(0));
    for _ in 0..4 {
        breaker.record(Signal::Blocked, &policy, at(1));
    }
    breaker.record(Signal::Answered, &policy, at(1));
    for _ in 0..4 {
        breaker.record(Signal::Blocked, &policy, at(1));
    }
    assert_eq!(breaker.state, BreakerState::Closed);
    breaker.record(Signal::Blocked, &policy, at(1));
    assert_eq!(breaker.admission(&policy, at(2)), Admission::NotBefore(at(31)));
}

#[test]
fn probes_slowly_and_closes_on_success() {
    let policy = BreakerPolicy::default();
    let mut breaker = opened(&policy);
    assert_eq!(breaker.admission(&policy, at(30)), Admission::NotBefore(at(31)));
    for allowed in [1, 2, 4] {
        assert_eq!(breaker.admission(&policy, at(31)), Admission::Probes(allowed));
        breaker.probe(1, &policy, at(31));
        breaker.record(Signal::Answered, &policy, at(32));
    }
    assert_eq!(breaker.state, BreakerState::Closed);
    assert!(breaker.is_idle(&policy, at(32)));
}

#[test]
fn a_failed_probe_opens_it_for_longer() {
    let policy = BreakerPolicy::default();
    let mut breaker = opened(&policy);
    breaker.probe(1, &policy, at(31));
    assert_eq!(breaker.admission(&policy, at(31)), Admission::NotBefore(at(61)));
    breaker.record(Signal::Failed, &policy, at(32));
    assert_eq!(breaker.admission(&policy, at(33)), Admission::NotBefore(at(32 + 60)));
    assert_eq!(breaker.opened_at, Some(at(1)), "it has been open all the time");
}

#[test]
fn a_probe_that_goes_on_through_another_proxy_is_the_only_one_of_its_cool_down() {
    let policy = BreakerPolicy::default();
    let mut closed = Breaker::closed(at(0));
    for _ in 0..100 {
        closed.record(Signal::WentOn, &policy, at(1));
    }
    assert_eq!(closed, Breaker::closed(at(0)), "while jobs flow only their last proxy counts");
    let mut breaker = opened(&policy);
    let mut now = at(31);
    for cool_down in [60, 120, 240, 240] {
        assert_eq!(breaker.admission(&policy, now), Admission::Probes(1));
        breaker.probe(1, &policy, now);
        breaker.record(Signal::WentOn, &policy, now);
        let next = now + Duration::from_secs(cool_down);
        assert_eq!(breaker.admission(&policy, now), Admission::NotBefore(next));
        now = next;
    }
}

#[test]
fn a_lost_probe_does_not_block_for_ever() {
    let policy = BreakerPolicy::default();
    let mut breaker = opened(&policy);
    breaker.probe(1, &policy, at(31));
    assert_eq!(breaker.admission(&policy, at(61)), Admission::Probes(1));
}

#[test]
fn a_breaker_that_opened_while_the_clock_was_ahead_waits_no_longer_than_it_was_told() {
    let policy = BreakerPolicy::default();
    let mut breaker = Breaker::closed(at(10_800));
    breaker.record(Signal::Hold(Duration::from_secs(600)), &policy, at(10_800));
    assert!(breaker.rewind(at(1)));
    assert_eq!(breaker.admission(&policy, at(2)), Admission::NotBefore(at(601)));
    assert!(!breaker.rewind(at(2)), "it is right now");
}

#[test]
fn hold_opens_at_once_and_honours_the_wait() {
    let policy = BreakerPolicy::default();
    let mut breaker = Breaker::closed(at(0));
    breaker.record(Signal::Hold(Duration::from_secs(600)), &policy, at(1));
    assert_eq!(breaker.admission(&policy, at(2)), Admission::NotBefore(at(601)));
}
