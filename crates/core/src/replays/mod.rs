//! Replays: sending dead letters through their pipeline again, in growing steps, and stopping when they fail again.
//!
//! - `letters`: which letters go, and from what they are worked on; `drift`: what is different from a plan that was seen
//! - `pace`: what is sent when, and when to stop
//! - `changes`: what people do to a replay
//! - `tries`: what was found out without settling anything
//! - `withdraw`: what a letter is after it was taken back

mod changes;
mod drift;
mod letters;
mod pace;
mod tries;
mod withdraw;

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use self::changes::{NextReplay, ReplayChange, StepChange, changed, paused_itself};
pub use self::drift::PlanDrift;
pub use self::letters::{
    Automatic, CHOSEN_AT_ONCE_MAX, LetterFacts, Outgoing, ReplayPlan, SavedPayload, Source, Wish, outgoing, treat,
};
pub use self::pace::{
    Advance, HANDFUL, IN_FLIGHT_MAX, Pacing, Progress, Step, advance, next, per_minute, resumed, sent, throughput,
};
pub use self::tries::{
    SAMPLES_MAX, TRY_BEAT, TRY_KEPT, TriedDetails, TriedWith, TryOutdated, is_abandoned, outdated, record_of,
};
pub use self::withdraw::{Sent, Withdrawn, withdrawn};
use crate::failures::Reason;
use crate::time::Timestamp;

/// What a replay works from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReplayMode {
    /// What suits each letter: its saved payload where it died of what came and that is enough, else everything anew, except
    /// that a task which was left at a provider is asked for first.
    Suited,
    /// The saved payload: no network.
    Saved,
    /// Everything anew: also what was submitted, and paid for, before.
    Refetch,
}

impl ReplayMode {
    /// The name in JSON, columns and on the screen.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Suited => "suited",
            Self::Saved => "saved",
            Self::Refetch => "refetch",
        }
    }
}

impl fmt::Display for ReplayMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for ReplayMode {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = [Self::Suited, Self::Saved, Self::Refetch].into_iter().find(|mode| mode.as_str() == text);
        found.ok_or_else(|| format!("{text:?} is not what a replay works from"))
    }
}

/// Where a replay is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReplayState {
    /// Its letters are being chosen; none is sent before all are.
    Preparing,
    /// Letters are sent.
    Running,
    /// Nothing is sent until a person resumes it; what was sent is not worked on either.
    Paused,
    /// Every letter has come to its end.
    Done,
    /// Nothing more is sent. What nobody works on is being taken back, the rest comes to its end.
    Cancelling,
    /// It was cancelled, and none of its letters is under way any more.
    Cancelled,
}

impl ReplayState {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Preparing, Self::Running, Self::Paused, Self::Done, Self::Cancelling, Self::Cancelled];

    /// Whether it has come to its end.
    pub const fn is_over(self) -> bool {
        matches!(self, Self::Done | Self::Cancelled)
    }

    /// The name in JSON, columns and on the screen.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Preparing => "preparing",
            Self::Running => "running",
            Self::Paused => "paused",
            Self::Done => "done",
            Self::Cancelling => "cancelling",
            Self::Cancelled => "cancelled",
        }
    }
}

impl fmt::Display for ReplayState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for ReplayState {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|state| state.as_str() == text);
        found.ok_or_else(|| format!("{text:?} is not the state of a replay"))
    }
}

/// Why a dead letter is left out of a replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Exclusion {
    /// Another replay has it.
    BeingReplayed,
    /// Its gate is `never`.
    GateNever,
    /// Its gate is not `auto`, and nobody asked.
    GateReview,
    /// It is to be replayed from its saved payload and has none, or none that is left.
    PayloadGone,
    /// The bytes of its payload could not be kept.
    PayloadLost,
    /// Its payload waits in the spool of another machine.
    PayloadOnItsWay,
    /// Only the beginning of its payload was kept.
    PayloadCut,
    /// It was replayed by itself as often as it may be.
    ReplayedEnough,
    /// Its target's breaker is not closed.
    BreakerOpen,
    /// Only what a try recovered is wanted, and it did not recover this one as it is.
    NotRecovered,
}

impl Exclusion {
    /// All of them, in the order they are looked for.
    pub const ALL: [Self; 10] = [
        Self::BeingReplayed,
        Self::GateNever,
        Self::NotRecovered,
        Self::PayloadLost,
        Self::PayloadGone,
        Self::PayloadOnItsWay,
        Self::PayloadCut,
        Self::GateReview,
        Self::ReplayedEnough,
        Self::BreakerOpen,
    ];

    /// The name in JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::BeingReplayed => "being_replayed",
            Self::GateNever => "gate_never",
            Self::GateReview => "gate_review",
            Self::PayloadGone => "payload_gone",
            Self::PayloadLost => "payload_lost",
            Self::PayloadOnItsWay => "payload_on_its_way",
            Self::PayloadCut => "payload_cut",
            Self::ReplayedEnough => "replayed_enough",
            Self::BreakerOpen => "breaker_open",
            Self::NotRecovered => "not_recovered",
        }
    }
}

impl FromStr for Exclusion {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|exclusion| exclusion.as_str() == text);
        found.ok_or_else(|| format!("{text:?} excludes nothing"))
    }
}

/// What became of a letter in a replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LetterState {
    /// It waits for its turn.
    Pending,
    /// It was sent.
    Running,
    /// It was processed successfully.
    Recovered,
    /// It failed again.
    Failed,
    /// It was discarded meanwhile.
    Gone,
    /// The replay was cancelled before its turn.
    Cancelled,
}

impl LetterState {
    /// The name in JSON, columns and on the screen.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Running => "running",
            Self::Recovered => "recovered",
            Self::Failed => "failed",
            Self::Gone => "gone",
            Self::Cancelled => "cancelled",
        }
    }
}

impl fmt::Display for LetterState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for LetterState {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let all = [Self::Pending, Self::Running, Self::Recovered, Self::Failed, Self::Gone, Self::Cancelled];
        let found = all.into_iter().find(|state| state.as_str() == text);
        found.ok_or_else(|| format!("{text:?} is not the state of a letter in a replay"))
    }
}

/// When dead letters are replayed by themselves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AutoReplay {
    /// For which reason; none means every reason whose letters have the gate `auto`.
    pub reason: Option<Reason>,
    /// How often.
    pub every: Duration,
    /// How long a letter must have been dead.
    pub delay: Duration,
    /// How often a letter may be replayed so.
    pub times_max: u32,
    /// How many letters at once.
    pub letters_max: u32,
}

/// Whether it is time for another turn of a policy that has one every so often. A turn that was had further ahead than it lasts was
/// had while the clock was ahead.
pub fn is_turn(last_at: Option<Timestamp>, every: Duration, now: Timestamp) -> bool {
    last_at.is_none_or(|last| now.since(last) >= every || last.since(now) > every)
}

impl AutoReplay {
    /// Every so often, with the defaults for the rest.
    pub const fn every(every: Duration) -> Self {
        Self { reason: None, every, delay: Duration::ZERO, times_max: 2, letters_max: 1_000 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_comes_every_so_often_and_after_a_clock_that_was_ahead() {
        let (at, every) = (|secs: i64| Timestamp::from_millis(secs * 1_000), Duration::from_secs(60));
        assert!(is_turn(None, every, at(0)));
        assert!(!is_turn(Some(at(100)), every, at(159)) && is_turn(Some(at(100)), every, at(160)));
        assert!(!is_turn(Some(at(160)), every, at(100)), "clocks may differ");
        assert!(is_turn(Some(at(161)), every, at(100)), "the clock was ahead");
    }
}
