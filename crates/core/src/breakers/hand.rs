//! What people do to a breaker: close it, hold it, have a probe go.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Breaker, BreakerState};
use crate::actors::Actor;
use crate::time::Timestamp;

/// How long a target is held if nobody said until when: until somebody closes its breaker.
const FOR_GOOD: Duration = Duration::from_secs(100 * 365 * 86_400);

/// Who holds a target's jobs back, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HeldBy {
    /// Who.
    pub by: Actor,
    /// Why, if that was said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// Until when; without a time, until somebody closes the breaker.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
}

/// Something that a person does to a breaker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BreakerTurn {
    /// All jobs go on now.
    Close,
    /// They wait, whatever the target does.
    Hold(HeldBy),
    /// One goes now to see.
    Probe,
}

impl BreakerTurn {
    /// What it is called where it is written down.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Close => "close",
            Self::Hold(_) => "hold",
            Self::Probe => "probe",
        }
    }

    /// Why, if that was said.
    pub fn why(&self) -> Option<&str> {
        match self {
            Self::Hold(held) => held.why.as_deref(),
            Self::Close | Self::Probe => None,
        }
    }

    /// The time until which a target is to be held, if that is over.
    pub fn over(&self, now: Timestamp) -> Option<Timestamp> {
        match self {
            Self::Hold(held) => held.until.filter(|until| *until <= now),
            Self::Close | Self::Probe => None,
        }
    }
}

/// The breaker after a person turned it: nothing is one that is closed and forgotten. It is refused to close or probe a breaker
/// that is closed.
pub fn turned(known: Option<&Breaker>, turn: &BreakerTurn, now: Timestamp) -> Result<Option<Breaker>, AlreadyClosed> {
    let shut = known.filter(|breaker| breaker.state != BreakerState::Closed);
    match (turn, shut) {
        (BreakerTurn::Hold(held), _) => Ok(Some(hold(shut, held.clone(), now))),
        (BreakerTurn::Close, Some(_)) => Ok(None),
        // Its probes are on their way.
        (BreakerTurn::Probe, Some(half)) if half.state == BreakerState::HalfOpen => Ok(Some(half.clone())),
        (BreakerTurn::Probe, Some(open)) => {
            let open_until = open.open_until.min(now);
            Ok(Some(Breaker { open_until, held_by: None, ..open.clone() }))
        }
        (BreakerTurn::Close | BreakerTurn::Probe, None) => Err(AlreadyClosed),
    }
}

fn hold(shut: Option<&Breaker>, held: HeldBy, now: Timestamp) -> Breaker {
    let before = shut.cloned().unwrap_or_else(|| Breaker::closed(now));
    Breaker {
        state: BreakerState::Open,
        open_until: held.until.unwrap_or(now + FOR_GOOD),
        openings: before.openings.max(1),
        opened_at: before.opened_at.or(Some(now)),
        opened_by: before.opened_by,
        last: before.last,
        held_by: Some(held),
        ..Breaker::closed(now)
    }
}

/// A breaker that is closed cannot be closed or probed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it is closed")]
pub struct AlreadyClosed;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::actors::Via;
    use crate::breakers::{Admission, BreakerPolicy, Said, Signal, TargetFailure};
    use crate::failures::Reason;

    const fn at(secs: i64) -> Timestamp {
        Timestamp::from_millis(secs * 1_000)
    }

    fn held(until: Option<Timestamp>) -> BreakerTurn {
        BreakerTurn::Hold(HeldBy { by: Actor::new("ada", Via::Cli), why: Some("no money".into()), until })
    }

    fn said(signal: Signal, secs: i64, probe: bool) -> Said {
        Said { signal, probe, at: at(secs), took_ms: None, why: None }
    }

    #[test]
    fn what_is_held_waits_whatever_the_target_does_and_is_probed_then() {
        let policy = BreakerPolicy { probes: 1, ..BreakerPolicy::default() };
        let mut breaker = turned(None, &held(Some(at(100))), at(0)).expect("held").expect("a breaker");
        breaker.record(&said(Signal::Answered, 50, true), &policy);
        assert_eq!(breaker.admission(at(99)), Admission::NotBefore(at(100)));
        assert_eq!(breaker.explained().as_deref(), Some("held by ada: no money"));
        assert_eq!(breaker.admission(at(100)), Admission::Probes(1));
        breaker.record(&said(Signal::Failed, 101, true), &policy);
        assert_eq!((breaker.state, &breaker.held_by), (BreakerState::Open, &None), "now it is the target's own doing");
        let mut breaker = turned(None, &held(Some(at(100))), at(0)).expect("held").expect("a breaker");
        breaker.record(&said(Signal::Answered, 101, true), &policy);
        assert_eq!(breaker.state, BreakerState::Closed);
    }

    #[test]
    fn what_a_person_holds_waits_since_then_however_long_the_target_failed() {
        let policy = BreakerPolicy { blocked_max: 1, ..BreakerPolicy::default() };
        let mut failing = Breaker::closed(at(0));
        failing.record(&said(Signal::Blocked, 10, false), &policy);
        assert_eq!((failing.state, failing.waits_since()), (BreakerState::Open, at(10)));
        let held = turned(Some(&failing), &held(None), at(20)).expect("held").expect("a breaker");
        assert_eq!((held.opened_at, held.waits_since()), (Some(at(10)), at(20)));
    }

    #[test]
    fn without_a_time_it_is_held_until_somebody_closes_it() {
        let breaker = turned(None, &held(None), at(0)).expect("held").expect("a breaker");
        assert!(matches!(breaker.admission(at(86_400 * 365 * 50)), Admission::NotBefore(_)));
        assert_eq!(turned(Some(&breaker), &BreakerTurn::Close, at(1)), Ok(None));
    }

    #[test]
    fn a_hold_until_now_or_before_is_over() {
        assert_eq!([at(4), at(5), at(6)].map(|until| held(Some(until)).over(at(5)).is_some()), [true, true, false]);
        assert_eq!([held(None), BreakerTurn::Close].map(|turn| turn.over(at(5))), [None, None]);
    }

    #[test]
    fn a_probe_goes_now() {
        let breaker = turned(None, &held(None), at(0)).expect("held").expect("a breaker");
        let probed = turned(Some(&breaker), &BreakerTurn::Probe, at(5)).expect("open").expect("a breaker");
        assert_eq!(probed.admission(at(5)), Admission::Probes(1));
        let due = Breaker { open_until: at(3), ..breaker };
        let probed = turned(Some(&due), &BreakerTurn::Probe, at(5)).expect("open").expect("a breaker");
        assert_eq!(probed.open_until, at(3), "it is not put off");
    }

    #[test]
    fn what_is_closed_is_neither_closed_nor_probed() {
        for turn in [BreakerTurn::Close, BreakerTurn::Probe] {
            assert_eq!(turned(None, &turn, at(0)), Err(AlreadyClosed));
            assert_eq!(turned(Some(&Breaker::closed(at(0))), &turn, at(0)), Err(AlreadyClosed));
        }
    }

    #[test]
    fn what_opened_it_is_remembered_while_it_is_held() {
        let last = TargetFailure {
            reason: Reason::ServerError,
            code: None,
            http_status: Some(503),
            message: "HTTP 503".into(),
        };
        let open = Breaker {
            state: BreakerState::Open,
            opened_at: Some(at(1)),
            last: Some(last.clone()),
            ..Breaker::closed(at(1))
        };
        let breaker = turned(Some(&open), &held(None), at(9)).expect("held").expect("a breaker");
        assert_eq!((breaker.opened_at, breaker.last), (Some(at(1)), Some(last)));
    }
}
