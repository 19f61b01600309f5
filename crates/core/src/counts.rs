//! What is counted about jobs over time, and which event counts for what: a job comes to its end once, however often it is
//! replayed, and what was imported did not die here.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::breakers::Signal;
use crate::dead::DeadLetter;
use crate::dead::import::{Arrival, Way};
use crate::failures::Reason;
use crate::settlements::{Decision, Destination};
use crate::time::Timestamp;

/// Something that is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    /// A job was accepted.
    Accepted,
    /// A dead letter of another store was taken in.
    Imported,
    /// A job became done, whether it was dead before or not.
    Done,
    /// A dead letter became done: of those that are done.
    Recovered,
    /// An attempt failed, and the job was put back.
    Retried,
    /// An attempt took its process down.
    Crashed,
    /// A job died for the first time.
    Buried,
    /// A dead letter failed again, in a replay or elsewhere.
    Refailed,
    /// A dead letter was sent through its pipeline again.
    Replayed,
    /// A job was given up.
    Discarded,
    /// Of those that died, one that was reported [late](LATE_AFTER): counted when it was reported.
    BuriedLate,
    /// Counts those of them that failed again.
    RefailedLate,
    /// Counts those of them that became done.
    DoneLate,
}

/// After how long what is reported is history: rates of what happens now leave it out.
pub const LATE_AFTER: Duration = Duration::from_secs(60 * 60);

impl Event {
    /// All events.
    pub const ALL: [Self; 13] = [
        Self::Accepted,
        Self::Imported,
        Self::Done,
        Self::Recovered,
        Self::Retried,
        Self::Crashed,
        Self::Buried,
        Self::Refailed,
        Self::Replayed,
        Self::Discarded,
        Self::BuriedLate,
        Self::RefailedLate,
        Self::DoneLate,
    ];

    /// The event that is counted besides, where this one is reported late.
    pub const fn late(self) -> Option<Self> {
        match self {
            Self::Buried => Some(Self::BuriedLate),
            Self::Refailed => Some(Self::RefailedLate),
            Self::Done => Some(Self::DoneLate),
            _ => None,
        }
    }

    /// The name in JSON and columns.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Accepted => "accepted",
            Self::Imported => "imported",
            Self::Done => "done",
            Self::Recovered => "recovered",
            Self::Retried => "retried",
            Self::Crashed => "crashed",
            Self::Buried => "buried",
            Self::Refailed => "refailed",
            Self::Replayed => "replayed",
            Self::Discarded => "discarded",
            Self::BuriedLate => "buried_late",
            Self::RefailedLate => "refailed_late",
            Self::DoneLate => "done_late",
        }
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Event {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|event| event.as_str() == text);
        found.ok_or_else(|| format!("{text:?} is nothing that is counted"))
    }
}

/// One more of an event, for a reason where there is one. The store adds it to the pipeline and the minute it happened in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Delta {
    /// What happened.
    pub event: Event,
    /// Why.
    pub reason: Option<Reason>,
}

impl Delta {
    /// One more of an event that has no reason.
    pub const fn of(event: Event) -> Self {
        Self { event, reason: None }
    }

    /// One more of an event, for a reason.
    pub const fn because(event: Event, reason: Reason) -> Self {
        Self { event, reason: Some(reason) }
    }

    /// Returns the event that is counted at `now` as well if this one happened long before: a counter that only grows cannot tell the two apart.
    pub fn late(self, at: Timestamp, now: Timestamp) -> Option<Self> {
        let event = self.event.late().filter(|_| now.since(at) > LATE_AFTER)?;
        Some(Self { event, ..self })
    }
}

/// Which time a job dies: each counts once by its first death, and what fails again is counted apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Death {
    /// The first, here or elsewhere.
    First,
    /// It was a dead letter before.
    Again,
}

impl Decision {
    /// Which death it is, if the job becomes a dead letter.
    pub fn death(&self) -> Death {
        if self.tally.replays == 0 { Death::First } else { Death::Again }
    }

    /// What is counted when it is applied.
    pub fn deltas(&self) -> impl Iterator<Item = Delta> {
        let failed = self.failure.as_ref().map(|failure| (failure.reason, failure.crash));
        let because = |event: Event| failed.map(|(reason, _)| Delta::because(event, reason));
        let crashed = because(Event::Crashed).filter(|_| failed.is_some_and(|(_, crash)| crash));
        let died_before = self.tally.replays > 0;
        match &self.destination {
            Destination::Done => [Some(Delta::of(Event::Done)), died_before.then_some(Delta::of(Event::Recovered))],
            Destination::Queue { .. } => [crashed.or(because(Event::Retried)), None],
            Destination::Dead { .. } => [crashed, because(if died_before { Event::Refailed } else { Event::Buried })],
            Destination::Discarded { .. } => [because(Event::Discarded), None],
        }
        .into_iter()
        .flatten()
    }

    /// Whether an attempt that came to a result ends by it.
    pub fn ends_attempt(&self) -> bool {
        self.failure.is_some() || self.destination == Destination::Done
    }

    /// Whether the job's target was asked in that attempt, so that it counts among what the target answered.
    pub fn asked_target(&self) -> bool {
        self.ends_attempt() && self.signal != Signal::Unasked
    }

    /// Whether the fields that were found in that attempt count. Those of a letter that fails again were counted when it died.
    pub fn counts_fields(&self) -> bool {
        let fails_again = self.tally.replays > 0 && self.failure.is_some();
        self.ends_attempt() && !fails_again
    }

    /// Whether the job is done or dead by it, and never was before. One that is discarded counts as neither.
    pub fn is_first_end(&self) -> bool {
        self.tally.replays == 0 && (self.destination == Destination::Done || self.buries())
    }
}

/// Returns what is counted when a reported or imported letter arrives, and for which time: what comes late counts at its own time, and as
/// late. What was imported did not die here; what a program reports did.
pub fn of_arrival(
    arrival: &Arrival,
    way: Way,
    letter: &DeadLetter,
    now: Timestamp,
) -> impl Iterator<Item = (Delta, Timestamp)> {
    let event = match (arrival, way) {
        (Arrival::New, Way::Imported { .. }) => Some(Event::Imported),
        (Arrival::New, Way::Reported) => Some(Event::Buried),
        (Arrival::FailedAgain(_), _) => Some(Event::Refailed),
        (Arrival::FailedBesides(_), _) => Some(Event::Retried),
        (Arrival::Known(_) | Arrival::KeyTaken { .. }, _) => None,
    };
    // The clock of another machine may be ahead.
    let at = if event == Some(Event::Imported) { now } else { letter.died_at.min(now) };
    let delta = event.map(|event| Delta::because(event, letter.reason));
    let late = delta.and_then(|delta| delta.late(at, now));
    delta.map(|delta| (delta, at)).into_iter().chain(late.map(|late| (late, now)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::failures::FailureReport;
    use crate::jobs::{LeasedJob, Tally};
    use crate::policy::Policy;
    use crate::settlements::tests::{ending, job};
    use crate::settlements::{Outcome, decide};

    fn events(replays: u32, outcome: Outcome) -> (Vec<Event>, bool) {
        let job: LeasedJob = job(Tally { replays, ..Tally::default() });
        let decision = decide(&Policy::default(), &job, outcome, ending());
        (decision.deltas().map(|delta| delta.event).collect(), decision.is_first_end())
    }

    #[test]
    fn a_job_comes_to_its_end_once() {
        let fatal = || Outcome::Failed(FailureReport::new(Reason::Blocked, "no"));
        assert_eq!(events(0, Outcome::Done), (vec![Event::Done], true));
        assert_eq!(events(0, fatal()), (vec![Event::Buried], true));
        assert_eq!(events(1, fatal()), (vec![Event::Refailed], false));
        assert_eq!(events(2, Outcome::Done), (vec![Event::Done, Event::Recovered], false));
        let fields = |replays, outcome| {
            let job = job(Tally { replays, ..Tally::default() });
            decide(&Policy::default(), &job, outcome, ending()).counts_fields()
        };
        let counted = [fields(0, fatal()), fields(1, fatal()), fields(1, Outcome::Done)];
        assert_eq!(counted, [true, false, true], "what was missing when it died is not missing twice");
        let death = |replays| {
            decide(&Policy::default(), &job(Tally { replays, ..Tally::default() }), fatal(), ending()).death()
        };
        assert_eq!((death(0), death(1)), (Death::First, Death::Again));
    }

    #[test]
    fn what_goes_on_is_no_end() {
        let timeout = Outcome::Failed(FailureReport::new(Reason::Timeout, "slow"));
        assert_eq!(events(0, timeout), (vec![Event::Retried], false));
        let crash = Outcome::Crashed(FailureReport::message("SIGKILL"));
        assert_eq!(events(0, crash), (vec![Event::Crashed], false));
        assert_eq!(events(0, Outcome::Returned), (vec![], false));
    }

    #[test]
    fn what_is_imported_did_not_die_here() {
        let id = job(Tally::default()).lease.job;
        let (then, now) = (Timestamp::from_millis(5_000), Timestamp::from_millis(90_000));
        let letter: DeadLetter = serde_json::from_value(json!({
            "id": id, "pipeline": "p", "input": {}, "reason": "tls", "message": "no", "attempts": 1, "crashes": 0, "replays": 0,
            "gate": "auto", "accepted_at": then, "died_at": then,
        }))
        .expect("a letter");
        let counted = |arrival, way, now| -> Vec<_> {
            of_arrival(&arrival, way, &letter, now).map(|(delta, at)| (delta.event, at)).collect()
        };
        let imported = Way::Imported { dated: true };
        assert_eq!(counted(Arrival::New, imported, now), [(Event::Imported, now)]);
        assert_eq!(counted(Arrival::New, Way::Reported, now), [(Event::Buried, then)]);
        assert_eq!(counted(Arrival::FailedAgain(id), imported, now), [(Event::Refailed, then)]);
        assert_eq!(counted(Arrival::FailedBesides(id), Way::Reported, now), [(Event::Retried, then)]);
        assert_eq!(counted(Arrival::Known(id), Way::Reported, now), []);
        let behind = Timestamp::from_millis(1_000);
        assert_eq!(counted(Arrival::New, Way::Reported, behind), [(Event::Buried, behind)], "a clock is ahead");
        let late = then + LATE_AFTER + Duration::from_millis(1);
        let buried = counted(Arrival::New, Way::Reported, late);
        assert_eq!(buried, [(Event::Buried, then), (Event::BuriedLate, late)]);
        let retried = counted(Arrival::FailedBesides(id), Way::Reported, late);
        assert_eq!(retried, [(Event::Retried, then)], "no rule is about it");
    }

    #[test]
    fn events_survive_text() {
        for event in Event::ALL {
            assert_eq!(event.as_str().parse(), Ok(event));
        }
    }
}
