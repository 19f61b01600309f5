//! Pipelines that people pause: nothing of them is leased, by any worker of any process, until somebody resumes them. What runs
//! comes to its end, and what is enqueued waits.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::actors::Actor;
use crate::alerts::Share;
use crate::ledger::Ledger;
use crate::time::Timestamp;

/// The share of tasks that died from which on a pipeline is said to fail, and how many there must be at least.
const FAILING_SHARE: f64 = 0.05;
const FAILING_MIN: u64 = 2;

/// Why a pipeline rests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pause {
    /// Who paused it.
    pub by: Actor,
    /// Why, if that was said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// Since when.
    pub since: Timestamp,
    /// Until when; without a time, until somebody resumes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
}

impl Pause {
    /// Whether its time is over: whoever comes next lets the pipeline go on.
    pub fn is_over(&self, now: Timestamp) -> bool {
        self.until.is_some_and(|until| until <= now)
    }
}

impl fmt::Display for Pause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "paused by {} since {}", self.by.name, self.since)?;
        if let Some(until) = self.until {
            write!(f, " until {until}")?;
        }
        match &self.why {
            Some(why) => write!(f, ": {why}"),
            None => Ok(()),
        }
    }
}

/// What somebody asks for who pauses a pipeline.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PauseWish {
    /// Why, if that was said.
    pub why: Option<String>,
    /// Until when; without a time, until somebody resumes it.
    pub until: Option<Timestamp>,
}

/// The pause of a pipeline after somebody asked for one. Who pauses what is paused has the last word on why and until when; it rests
/// since the first.
pub fn paused(known: Option<&Pause>, by: &Actor, wish: PauseWish, now: Timestamp) -> Pause {
    let known = known.filter(|known| !known.is_over(now));
    let since = known.map_or(now, |known| known.since);
    let why = wish.why.or_else(|| known.and_then(|known| known.why.clone()));
    Pause { by: by.clone(), why, since, until: wish.until }
}

/// Contents of a pipeline that keep it from being forgotten.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contents {
    /// Jobs that wait.
    pub queued: i64,
    /// Jobs in the hands of workers.
    pub running: i64,
    /// Dead letters.
    pub dead: i64,
    /// Results that the store keeps.
    pub results: i64,
    /// Targets on hold.
    pub held: i64,
    /// Set if it is paused.
    pub paused: bool,
}

impl Contents {
    /// Adds up what a ledger has and a change to it.
    pub const fn new(ledger: &Ledger, change: &Ledger, held: i64, paused: bool) -> Self {
        Self {
            queued: ledger.queued + change.queued,
            running: ledger.leased + change.leased,
            dead: ledger.dead + change.dead,
            results: ledger.results.kept + change.results.kept,
            held,
            paused,
        }
    }

    /// Returns true if the pipeline may be forgotten.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl fmt::Display for Contents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts = [
            (self.queued, "queued"),
            (self.running, "running"),
            (self.dead, "dead"),
            (self.results, "kept results"),
            (self.held, "targets on hold"),
        ];
        let counted = counts.iter().filter(|(count, _)| *count != 0).map(|(count, what)| format!("{count} {what}"));
        let paused = self.paused.then(|| "a pause".to_owned());
        f.write_str(&counted.chain(paused).collect::<Vec<_>>().join(", "))
    }
}

/// Where a pipeline stands, in a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// Somebody paused it.
    Paused,
    /// Too many of its tasks die.
    Failing,
    /// Tasks wait for a target, or a worker cannot work on it.
    Held,
    /// Tasks wait, and nobody works on it.
    Unattended,
    /// An alert of it fires.
    Alerting,
    /// Nothing is the matter.
    Normal,
}

impl Standing {
    /// The name in JSON and on the screen.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Paused => "paused",
            Self::Failing => "failing",
            Self::Held => "held",
            Self::Unattended => "unattended",
            Self::Alerting => "alerting",
            Self::Normal => "normal",
        }
    }
}

/// What the standing of a pipeline follows from.
#[derive(Clone, Copy, Debug, Default)]
pub struct StandingFacts {
    /// Whether somebody paused it.
    pub is_paused: bool,
    /// Of the tasks that came to their end lately, those that died.
    pub died: Share,
    /// Whether tasks wait for a target, or a worker cannot work on it.
    pub is_held: bool,
    /// Tasks that wait.
    pub queued: u64,
    /// Workers that are there for it.
    pub workers: usize,
    /// Alerts of it that fire, whoever has seen them.
    pub alerts: usize,
}

/// Whether so many of the tasks that came to their end died that something is the matter.
pub fn is_failing(died: Share) -> bool {
    died.part >= FAILING_MIN && died.value() >= FAILING_SHARE
}

/// Where a pipeline stands.
pub fn standing(facts: &StandingFacts) -> Standing {
    match facts {
        StandingFacts { is_paused: true, .. } => Standing::Paused,
        StandingFacts { died, .. } if is_failing(*died) => Standing::Failing,
        StandingFacts { is_held: true, .. } => Standing::Held,
        StandingFacts { queued: 1.., workers: 0, .. } => Standing::Unattended,
        StandingFacts { alerts: 1.., .. } => Standing::Alerting,
        _ => Standing::Normal,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::actors::Via;

    #[test]
    fn the_worst_is_said_of_a_pipeline() {
        let calm = StandingFacts { workers: 1, died: Share::new(1, 1), ..StandingFacts::default() };
        assert_eq!(standing(&calm), Standing::Normal, "one may be unlucky");
        let failing = StandingFacts { died: Share::new(5, 100), is_held: true, ..calm };
        assert_eq!(standing(&failing), Standing::Failing);
        assert_eq!(standing(&StandingFacts { died: Share::new(4, 100), ..failing }), Standing::Held);
        assert_eq!(standing(&StandingFacts { is_paused: true, ..failing }), Standing::Paused);
        let alerting = StandingFacts { alerts: 1, ..calm };
        assert_eq!(standing(&alerting), Standing::Alerting);
        assert_eq!(standing(&StandingFacts { queued: 1, workers: 0, ..alerting }), Standing::Unattended);
        assert!(is_failing(Share::new(66, 121)) && !is_failing(Share::new(132, 4_000_000)), "few of millions are few");
    }

    #[test]
    fn who_pauses_again_has_the_last_word_but_not_the_first_hour() {
        let at = Timestamp::from_millis;
        let (ada, bob) = (Actor::new("ada", Via::Cli), Actor::new("bob", Via::Cli));
        let moves = PauseWish { why: Some("the shop moves".into()), until: None };
        let first = paused(None, &ada, moves.clone(), at(1_000));
        assert_eq!(first.to_string(), "paused by ada since 1970-01-01T00:00:01.000Z: the shop moves");
        let again = paused(Some(&first), &bob, PauseWish::default(), at(9_000));
        assert_eq!((again.by.name.as_str(), again.since, again.why), ("bob", at(1_000), first.why));
        let until = paused(None, &ada, PauseWish { until: Some(at(5_000)), ..moves }, at(1_000));
        assert!(
            until
                .to_string()
                .ends_with("since 1970-01-01T00:00:01.000Z until 1970-01-01T00:00:05.000Z: the shop moves")
        );
        assert_eq!([4_999, 5_000].map(|millis| until.is_over(at(millis))), [false, true]);
        let anew = paused(Some(&until), &bob, PauseWish::default(), at(9_000));
        assert_eq!((anew.since, anew.why, anew.until), (at(9_000), None, None), "that pause was over");
    }
}
