//! What people do to replays: pause, resume and cancel them, and in which state that is possible.

use serde::{Deserialize, Serialize};

use super::ReplayState;
use super::pace::{Pacing, Progress, Step, resumed};
use crate::definitions::Pins;

/// What can be done to a replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReplayChange {
    /// Nothing is sent and nothing that was sent is worked on until it is resumed.
    Pause,
    /// It goes on, and what has failed so far is forgiven.
    Resume,
    /// Nothing more is sent, and what nobody works on is taken back.
    Cancel,
    /// It goes faster or slower from now on.
    Rate,
}

impl ReplayChange {
    /// What it is called in the record of what people did.
    pub const fn verb(self) -> &'static str {
        match self {
            Self::Pause => "pause",
            Self::Resume => "resume",
            Self::Cancel => "cancel",
            Self::Rate => "rate",
        }
    }

    /// What it is to a replay, in words.
    pub const fn participle(self) -> &'static str {
        match self {
            Self::Pause => "paused",
            Self::Resume => "resumed",
            Self::Cancel => "cancelled",
            Self::Rate => "sent at another rate",
        }
    }

    /// Whether it can be done to a replay in this state.
    pub const fn applies_to(self, state: ReplayState) -> bool {
        use ReplayState::{Paused, Preparing, Running};
        match self {
            Self::Pause => matches!(state, Running),
            Self::Resume => matches!(state, Paused),
            Self::Cancel | Self::Rate => matches!(state, Preparing | Running | Paused),
        }
    }
}

/// How it begins why a person paused or cancelled a replay.
const BY: &str = "by ";

/// Whether a replay that is paused for a reason paused itself.
pub fn paused_itself(state: ReplayState, why: Option<&str>) -> bool {
    state == ReplayState::Paused && why.is_some_and(|why| !why.starts_with(BY))
}

/// What a replay is to be next.
#[derive(Clone, Debug, PartialEq)]
pub struct NextReplay {
    /// Its state. One that is over has come to its end.
    pub state: ReplayState,
    /// Why it is paused or cancelled.
    pub why: Option<String>,
    /// How its step of the ramp changes, if it does.
    pub step: Option<StepChange>,
    /// Letters that had failed when a person last let it go on.
    pub forgiven: u64,
    /// The versions that its pipelines are to have from now on, if they are others.
    pub pins: Option<Pins>,
    /// How fast it goes from now on, if that is another pace.
    pub pacing: Option<Pacing>,
    /// What was done to it by that, for the record; nothing if it goes its way.
    pub verb: Option<&'static str>,
}

/// How a step of the ramp changes. What has settled between the decision and its writing is not lost: only the difference is
/// written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepChange {
    /// The step on which it was decided.
    pub from: Step,
    /// The step as it is to be.
    pub to: Step,
}

impl NextReplay {
    /// The same as it is, but pinned to other versions.
    pub fn pinned(self, pins: Pins) -> Self {
        Self { pins: Some(pins), verb: Some("pin"), ..self }
    }

    /// The same as it is, but at another rate.
    pub fn paced(self, pacing: Pacing) -> Self {
        Self { pacing: Some(pacing), verb: Some(ReplayChange::Rate.verb()), ..self }
    }

    /// It pauses itself, for a reason.
    pub fn paused_itself(why: String, progress: &Progress) -> Self {
        Self { verb: Some(ReplayChange::Pause.verb()), ..Self::of(ReplayState::Paused, Some(why), progress) }
    }

    /// The same as it is, but in another state.
    pub const fn of(state: ReplayState, why: Option<String>, progress: &Progress) -> Self {
        Self { state, why, step: None, forgiven: progress.forgiven, pins: None, pacing: None, verb: None }
    }
}

/// Decides what a replay is after a person changed it; nothing if that is not possible in the state it is in.
pub fn changed(change: ReplayChange, state: ReplayState, progress: &Progress, by: &str) -> Option<NextReplay> {
    if !change.applies_to(state) {
        return None;
    }
    let why = Some(format!("{BY}{by}"));
    let next = match change {
        ReplayChange::Pause => NextReplay::of(ReplayState::Paused, why, progress),
        ReplayChange::Cancel => NextReplay::of(ReplayState::Cancelling, why, progress),
        // A pace is no state: it is changed by [`NextReplay::paced`].
        ReplayChange::Rate => return None,
        ReplayChange::Resume => NextReplay {
            step: Some(StepChange { from: progress.step, to: resumed(progress) }),
            forgiven: progress.failed,
            ..NextReplay::of(ReplayState::Running, None, progress)
        },
    };
    Some(NextReplay { verb: Some(change.verb()), ..next })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_possible_in_some_states() {
        use ReplayState::{Cancelled, Cancelling, Done, Paused, Preparing, Running};
        let states = [Preparing, Running, Paused, Cancelling, Cancelled, Done];
        let possible = |change: ReplayChange| states.into_iter().filter(|state| change.applies_to(*state)).collect();
        let (pause, resume, cancel): (Vec<_>, Vec<_>, Vec<_>) =
            (possible(ReplayChange::Pause), possible(ReplayChange::Resume), possible(ReplayChange::Cancel));
        assert_eq!((pause, resume, cancel), (vec![Running], vec![Paused], vec![Preparing, Running, Paused]));
    }

    #[test]
    fn who_paused_is_known() {
        let by_person =
            changed(ReplayChange::Pause, ReplayState::Running, &Progress::default(), "ada").expect("possible");
        assert!(!paused_itself(by_person.state, by_person.why.as_deref()));
        assert!(paused_itself(ReplayState::Paused, Some("5 of 5 letters failed again")));
        assert!(!paused_itself(ReplayState::Running, Some("5 of 5 letters failed again")));
    }

    #[test]
    fn what_has_failed_is_forgiven_by_who_resumes() {
        let step = Step { number: 1, sent: 5, settled: 4, failed: 3 };
        let progress = Progress { running: 1, failed: 4, step, ..Progress::default() };
        let next = changed(ReplayChange::Resume, ReplayState::Paused, &progress, "ada").expect("possible");
        assert_eq!((next.state, next.why, next.forgiven), (ReplayState::Running, None, 4));
        assert_eq!(next.verb, Some("resume"));
        let to = Step { number: 1, sent: 1, settled: 0, failed: 0 };
        assert_eq!(next.step, Some(StepChange { from: step, to }));
        assert_eq!(changed(ReplayChange::Resume, ReplayState::Done, &progress, "ada"), None);
    }
}
