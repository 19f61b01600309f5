//! The breaker of a target: when the target fails too often its jobs wait, untouched, instead of burning their attempts.
//!
//! A breaker is a small value with a version. Stores keep it; who settles folds in what attempts said of their target, and hands
//! the next value over with the version that it was made from. While it is not closed a few jobs go to see, as probes, and only
//! what they say counts.

mod hand;
mod known;
mod view;

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::clock::set_back;
use crate::failures::{Disposition, Failure, Reason};
use crate::time::Timestamp;

pub use hand::{AlreadyClosed, BreakerTurn, HeldBy, turned};
pub use known::{BreakerChange, BreakerRow, Gate, Gates, Heard, Known, NextBreaker, Overdue};
pub use view::BreakerView;

/// When a breaker opens and how it closes again.
#[derive(Clone, Debug, PartialEq)]
pub struct BreakerPolicy {
    /// Over how long attempts are counted.
    pub window: Duration,
    /// Attempts in the window below which it never opens.
    pub attempts_min: u32,
    /// The share of failed attempts at which it opens; above 1 it never does.
    pub failure_share: f64,
    /// Refusals (`blocked`) in a row at which it opens, however many attempts there were.
    pub blocked_max: u32,
    /// How long it stays open; doubles each time a probe fails, up to eight times.
    pub cool_down: Duration,
    /// Successful probes after which it closes. Each one doubles how many may be out at once.
    pub probes: u32,
    /// How long a job waits for a target that stays away before it becomes a letter; nothing means for ever.
    pub hold_max: Option<Duration>,
    /// Replays those letters when it closes.
    pub replays_on_recovery: bool,
}

impl Default for BreakerPolicy {
    fn default() -> Self {
        Self {
            window: Duration::from_secs(60),
            attempts_min: 20,
            failure_share: 0.5,
            blocked_max: 5,
            cool_down: Duration::from_secs(30),
            probes: 3,
            hold_max: Some(Duration::from_secs(30 * 60)),
            replays_on_recovery: true,
        }
    }
}

/// What a settled attempt means for the breaker of its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Signal {
    /// The target answered.
    Answered,
    /// The target failed.
    Failed,
    /// The target refused us.
    Blocked,
    /// The failure demands that the target's jobs wait, at least so long.
    Hold(Duration),
    /// The job goes on through another proxy: it has not had its last word about the target, and the target no answer.
    WentOn,
    /// The attempt says nothing about the target.
    Silent,
    /// The target was not asked at all: a saved payload was worked on.
    Unasked,
}

impl Signal {
    /// Decides what a failed attempt means. Only a failure that is about the target counts against it; an error of the user's
    /// own code means that the target answered.
    pub fn of_failure(reason: Reason, disposition: Disposition, wait: Option<Duration>) -> Self {
        match (disposition, reason) {
            (Disposition::Hold, _) => Self::Hold(wait.unwrap_or_default()),
            (_, Reason::Blocked) => Self::Blocked,
            (_, reason) if reason.is_about_target() => Self::Failed,
            (_, Reason::PayloadExpired | Reason::Misconfigured) => Self::Silent,
            _ => Self::Answered,
        }
    }

    /// Whether the target gave trouble.
    pub const fn is_trouble(self) -> bool {
        matches!(self, Self::Failed | Self::Blocked | Self::Hold(_) | Self::WentOn)
    }
}

/// What a settled attempt said about its target.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Said {
    /// What it means.
    pub signal: Signal,
    /// Whether it went to see if the target is better.
    #[serde(default)]
    pub probe: bool,
    /// When it ended.
    pub at: Timestamp,
    /// How long the attempt took, in milliseconds, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub took_ms: Option<u64>,
    /// What it failed with, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<TargetFailure>,
}

impl Said {
    /// When the attempt began, as far as is known.
    fn began(&self) -> Timestamp {
        self.at - Duration::from_millis(self.took_ms.unwrap_or_default())
    }

    /// Whether it can move a breaker.
    const fn counts(&self) -> bool {
        match self.signal {
            Signal::Answered | Signal::Failed | Signal::Blocked | Signal::Hold(_) => true,
            Signal::WentOn => self.probe,
            Signal::Silent | Signal::Unasked => false,
        }
    }
}

/// What an attempt said of its target when it failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TargetFailure {
    /// Why the attempt failed.
    pub reason: Reason,
    /// With which code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// The HTTP status, if there was an answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http_status: Option<u16>,
    /// What it said, cut.
    pub message: String,
}

impl TargetFailure {
    /// What is kept of a failure.
    pub fn of(failure: &Failure) -> Self {
        let message = failure.message.chars().take(WHY_MAX).collect();
        Self { reason: failure.reason, code: failure.code.clone(), http_status: failure.http_status, message }
    }
}

impl std::fmt::Display for TargetFailure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let code = self.code.as_ref().map(|code| format!(" {code}")).unwrap_or_default();
        write!(f, "{}{code}: {}", self.reason, self.message)
    }
}

/// Whether a breaker lets jobs through.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BreakerState {
    /// Jobs flow.
    Closed,
    /// Jobs wait.
    Open,
    /// A few jobs are let through to see.
    HalfOpen,
}

/// The breaker of one pipeline and target.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Breaker {
    /// Whether jobs flow.
    pub state: BreakerState,
    /// When it last changed its state, or its window began.
    pub since: Timestamp,
    /// While open: when the first probes may go.
    pub open_until: Timestamp,
    /// Attempts in the window.
    pub attempts: u32,
    /// Of those, failed.
    pub failures: u32,
    /// Refusals in a row.
    pub blocked: u32,
    /// Times it opened without having closed in between.
    pub openings: u32,
    /// Probes that came back with an answer.
    pub probes_ok: u32,
    /// While not closed: since when.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opened_at: Option<Timestamp>,
    /// While not closed: the failure that opened it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opened_by: Option<TargetFailure>,
    /// Since when jobs wait because the target fails, but for the time in which nobody asked it. Nothing while a person or a rule
    /// has them wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits_from: Option<Timestamp>,
    /// What the target last failed with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<TargetFailure>,
    /// Who holds it, if a person does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_by: Option<HeldBy>,
}

/// The most that is kept of why a target failed, in characters.
const WHY_MAX: usize = 200;

/// What a breaker lets through now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// Everything.
    All,
    /// Probes, at most so many at once.
    Probes(u32),
    /// Nothing before then.
    NotBefore(Timestamp),
}

impl Breaker {
    /// A closed breaker whose window begins now.
    pub const fn closed(now: Timestamp) -> Self {
        Self {
            state: BreakerState::Closed,
            since: now,
            open_until: now,
            attempts: 0,
            failures: 0,
            blocked: 0,
            openings: 0,
            probes_ok: 0,
            opened_at: None,
            opened_by: None,
            waits_from: None,
            last: None,
            held_by: None,
        }
    }

    /// Returns whether its jobs wait because the target fails, and not because a person or a rule has them wait.
    pub const fn awaits_recovery(&self) -> bool {
        self.waits_from.is_some() && self.held_by.is_none()
    }

    /// Since when jobs wait for what [`Self::explained`] says: a person may have held it long after it opened.
    pub fn waits_since(&self) -> Timestamp {
        let own = self.held_by.is_none().then_some(self.opened_at).flatten();
        own.unwrap_or(self.since)
    }

    /// Why it is not closed, in words: who holds it, or what opened it, or what the target last failed with.
    pub fn explained(&self) -> Option<String> {
        let held = self.held_by.as_ref().map(|held| match &held.why {
            Some(why) => format!("held by {}: {why}", held.by.name),
            None => format!("held by {}", held.by.name),
        });
        held.or_else(|| self.opened_by.as_ref().or(self.last.as_ref()).map(ToString::to_string))
    }

    /// Takes the breaker back to now if it changed at a time that has not come: the clock was set back since. What it was told
    /// to wait it still waits. Says whether it was.
    pub fn rewind(&mut self, now: Timestamp) -> bool {
        let Some(back) = set_back(self.since, now) else { return false };
        self.since = self.since - back;
        self.open_until = self.open_until - back;
        self.waits_from = self.waits_from.map(|from| from - back);
        true
    }

    /// What may be leased now.
    pub fn admission(&self, now: Timestamp) -> Admission {
        match self.state {
            BreakerState::Closed => Admission::All,
            BreakerState::Open if now < self.open_until => Admission::NotBefore(self.open_until),
            BreakerState::Open => Admission::Probes(1),
            BreakerState::HalfOpen => Admission::Probes(1 << self.probes_ok.min(10)),
        }
    }

    /// Takes in what a settled attempt said.
    pub fn record(&mut self, said: &Said, policy: &BreakerPolicy) {
        if !said.counts() {
            return;
        }
        match self.state {
            BreakerState::Closed => self.record_closed(said, policy),
            // Attempts that were under way when it opened say nothing new, except that a hold may ask for longer.
            BreakerState::Open if said.at < self.open_until => {
                if let Signal::Hold(wait) = said.signal {
                    (self.open_until, self.waits_from) = (self.open_until.max(said.at + wait), None);
                }
            }
            BreakerState::Open | BreakerState::HalfOpen if said.probe => self.record_probe(said, policy),
            BreakerState::Open | BreakerState::HalfOpen => {}
        }
        if let Some(why) = said.why.as_ref().filter(|_| said.signal.is_trouble()) {
            self.last = Some(why.clone());
        }
    }

    fn record_closed(&mut self, said: &Said, policy: &BreakerPolicy) {
        let now = said.at;
        if now >= self.since + policy.window {
            *self = Self { blocked: self.blocked, ..Self::closed(now) };
        }
        match said.signal {
            Signal::WentOn | Signal::Silent | Signal::Unasked => return,
            Signal::Answered => self.blocked = 0,
            Signal::Failed => self.failures += 1,
            Signal::Blocked => {
                self.failures += 1;
                self.blocked += 1;
            }
            Signal::Hold(wait) => return self.open(wait, said, policy),
        }
        self.attempts += 1;
        let share = f64::from(self.failures) / f64::from(self.attempts);
        let too_many = self.attempts >= policy.attempts_min && share >= policy.failure_share;
        if too_many || self.blocked >= policy.blocked_max {
            self.open(Duration::ZERO, said, policy);
        }
    }

    fn record_probe(&mut self, said: &Said, policy: &BreakerPolicy) {
        match said.signal {
            Signal::Silent | Signal::Unasked => {}
            Signal::Answered => {
                self.probes_ok += 1;
                if self.probes_ok >= policy.probes {
                    *self = Self::closed(said.at);
                } else if self.state == BreakerState::Open {
                    (self.state, self.since, self.held_by) = (BreakerState::HalfOpen, said.at, None);
                }
            }
            // Of a probe that goes on the next word comes with the next probe: without the wait all that is held would follow.
            Signal::Failed | Signal::Blocked | Signal::WentOn => self.open(Duration::ZERO, said, policy),
            Signal::Hold(wait) => self.open(wait, said, policy),
        }
    }

    fn open(&mut self, wait: Duration, said: &Said, policy: &BreakerPolicy) {
        let cool_down = policy.cool_down.saturating_mul(1 << self.openings.min(3));
        *self = Self {
            state: BreakerState::Open,
            open_until: said.at + cool_down.max(wait),
            openings: self.openings + 1,
            opened_at: self.opened_at.or(Some(said.at)),
            opened_by: self.opened_by.take().or_else(|| said.why.clone()),
            waits_from: self.waits_from_after(said),
            last: self.last.take(),
            ..Self::closed(said.at)
        };
    }

    /// Decides since when jobs wait for the target if this opens the breaker, perhaps anew: between its cool-down and the beginning
    /// of a probe nobody asked, because no worker was there or the pipeline was paused.
    fn waits_from_after(&self, said: &Said) -> Option<Timestamp> {
        match (said.signal, self.waits_from) {
            (Signal::Hold(_), _) => None,
            (_, None) => Some(said.at),
            (_, Some(from)) => Some(from + said.began().since(self.open_until.max(self.since))),
        }
    }

    /// Returns the time by which a job was accepted if it has waited for the target for longer than this, since then at the earliest;
    /// nothing if none has. Time after a cool-down counts only when a probe has failed, and none while a person or a rule holds it.
    pub fn overdue_by(&self, hold_max: Duration, since: Timestamp, now: Timestamp) -> Option<Timestamp> {
        let since = self.waits_from.filter(|_| self.state == BreakerState::Open)?.max(since);
        Some(now.min(self.open_until) - hold_max).filter(|by| *by >= since)
    }

    /// Whether its target has not been heard of for so long that nothing is lost by forgetting it.
    pub fn is_stale(&self, policy: &BreakerPolicy, now: Timestamp) -> bool {
        self.state == BreakerState::Closed && now >= self.since + policy.window.saturating_mul(10)
    }

    /// Whether nothing is lost by forgetting it: closed, and nothing failed in its window.
    pub fn is_idle(&self, policy: &BreakerPolicy, now: Timestamp) -> bool {
        let quiet = self.failures == 0 || now >= self.since + policy.window;
        self.state == BreakerState::Closed && quiet && self.blocked == 0
    }
}

/// A breaker after what was said of its target; nothing if nothing is lost by forgetting it, as of a target that gave no
/// trouble.
pub fn fold<'a>(
    known: Option<&Breaker>,
    said: impl IntoIterator<Item = &'a Said>,
    policy: &BreakerPolicy,
) -> Option<Breaker> {
    let mut breaker = known.cloned();
    for said in said.into_iter().filter(|said| said.counts()) {
        if breaker.is_none() && !matches!(said.signal, Signal::Failed | Signal::Blocked | Signal::Hold(_)) {
            continue;
        }
        let present = breaker.get_or_insert_with(|| Breaker::closed(said.at));
        present.rewind(said.at);
        present.record(said, policy);
        if present.is_idle(policy, said.at) {
            breaker = None;
        }
    }
    breaker
}

#[cfg(test)]
mod tests;
