//! Causes: groups of dead letters with one root cause, what people say about them, and the state that follows.
//!
//! - `changes`: what people do to causes, as data
//! - `prints`: what a letter is recognised by
//! - `rules`: which failures of a key belong to another, because a person split a cause
//! - `sort`: in which order they are listed

pub mod changes;
pub mod prints;
pub mod rules;
pub mod sort;

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use changes::{
    CauseChange, CauseDeed, CauseEdit, CauseFacts, CauseStep, KeyFacts, Said, SplitBy, Unchangeable, is_resolution,
};
pub use prints::Print;
pub use rules::{CauseRule, CauseRules, Likeness};
pub use sort::CauseSort;

use crate::ids::InvalidName;
use crate::time::Timestamp;

/// The hours a trend shows, the last of which is the present one.
pub const TREND_HOURS: usize = 24;

/// How long a cause is new.
const NEW_FOR: Duration = Duration::from_secs(24 * 3_600);

/// Letters in an hour below which nothing escalates.
const ESCALATING_MIN: i64 = 10;

/// How many times its usual hour an hour must have for the cause to escalate.
const ESCALATING_TIMES: i64 = 3;

/// Hours of the trend that are compared with the earlier ones: the present one, which is not over, and the one before.
const RECENT_HOURS: usize = 2;

/// Templates at least so much alike are shown together, for a person to decide whether they are one cause.
pub const ALIKE_MIN: f64 = 0.75;

/// The digits of a cause's id, unless another has them already.
pub const ID_DIGITS: usize = 8;

/// What a cause is called: the first digits of the hash of its first key.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct CauseId(String);

impl CauseId {
    /// The id of a new cause that is called after a key: as short as it can be among those that are taken.
    pub fn free<E>(key: &str, mut is_taken: impl FnMut(&Self) -> Result<bool, E>) -> Result<Self, E> {
        let mut digits = ID_DIGITS;
        loop {
            let id = Self::of_key(key, digits);
            if !is_taken(&id)? {
                return Ok(id);
            }
            digits += 1;
        }
    }

    /// The id of a cause that is called after a key, so many digits of it: at least eight, more if another has those already.
    pub fn of_key(key: &str, digits: usize) -> Self {
        let hash = blake3::hash(key.as_bytes()).to_hex();
        let own = key.split_once('-').map_or("", |(_, digits)| digits);
        let is_own = own.len() >= ID_DIGITS && own.bytes().all(|byte| byte.is_ascii_hexdigit());
        let all = if is_own { own } else { hash.as_str() };
        // When even the longest is taken, others are made of it.
        match all.get(..digits) {
            Some(id) => Self(id.to_owned()),
            None => Self(blake3::hash(format!("{key} {digits}").as_bytes()).to_hex()[..all.len().min(64)].to_owned()),
        }
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for CauseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl From<CauseId> for String {
    fn from(id: CauseId) -> Self {
        id.0
    }
}

impl TryFrom<String> for CauseId {
    type Error = InvalidName;

    fn try_from(text: String) -> Result<Self, InvalidName> {
        text.parse()
    }
}

impl FromStr for CauseId {
    type Err = InvalidName;

    fn from_str(text: &str) -> Result<Self, InvalidName> {
        let fits = (1..=64).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_hexdigit());
        let wrong = || InvalidName::new("cause", text, "its id, such as 3f9a1c2e, or the beginning of one");
        if fits { Ok(Self(text.to_ascii_lowercase())) } else { Err(wrong()) }
    }
}

/// Where a cause stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CauseState {
    /// First seen within a day.
    New,
    /// Seen before, and no more often than usual.
    Ongoing,
    /// Much more often than usual.
    Escalating,
    /// It was resolved, and came back.
    Regressed,
    /// Nobody wants to hear of it, until a time or a rate.
    Muted,
    /// Said to be over.
    Resolved,
}

impl CauseState {
    /// All states.
    pub const ALL: [Self; 6] =
        [Self::New, Self::Ongoing, Self::Escalating, Self::Regressed, Self::Muted, Self::Resolved];

    /// The states of causes that are not as usual: they come before those that are, and need somebody whoever looks after them.
    pub const UNUSUAL: [Self; 3] = [Self::New, Self::Escalating, Self::Regressed];

    /// Whether somebody should look at a cause in this state: what is usual only if nobody looks after it.
    pub const fn needs_somebody(self, is_owned: bool) -> bool {
        match self {
            Self::New | Self::Escalating | Self::Regressed => true,
            Self::Ongoing => !is_owned,
            Self::Muted | Self::Resolved => false,
        }
    }

    /// The name in JSON and on the screen.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Ongoing => "ongoing",
            Self::Escalating => "escalating",
            Self::Regressed => "regressed",
            Self::Muted => "muted",
            Self::Resolved => "resolved",
        }
    }
}

impl fmt::Display for CauseState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for CauseState {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|state| state.as_str() == text);
        found.ok_or_else(|| format!("{text:?} is not the state of a cause"))
    }
}

/// Until when nobody wants to hear of a cause. With neither bound it is muted until somebody says otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mute {
    /// Until this time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// Until it kills so many jobs in an hour.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub per_hour: Option<u32>,
}

impl Mute {
    fn holds(&self, trend: &Trend, now: Timestamp) -> bool {
        let in_time = self.until.is_none_or(|until| now < until);
        in_time && self.per_hour.is_none_or(|rate| trend.recent() < i64::from(rate))
    }
}

/// What people said about a cause, and whether it kept to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    /// When it was said to be over.
    pub resolved_at: Option<Timestamp>,
    /// When it last killed a job: after it was said to be over, it has come back.
    pub last_seen: Timestamp,
    /// Whether and until when it is muted.
    pub mute: Option<Mute>,
}

/// How many jobs a cause killed in each of the last hours, oldest first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Trend(pub [i64; TREND_HOURS]);

impl Trend {
    /// The most in an hour lately.
    fn recent(&self) -> i64 {
        self.0[TREND_HOURS - RECENT_HOURS..].iter().copied().max().unwrap_or(0)
    }

    /// Whether the cause kills far more than it used to. What was not there before is new, not escalating.
    fn escalates(&self, first_seen: Timestamp, now: Timestamp) -> bool {
        let known_hours = usize::try_from(now.hour() - first_seen.hour()).unwrap_or(0);
        let earlier_hours = known_hours.min(TREND_HOURS - 1).saturating_sub(RECENT_HOURS - 1);
        if earlier_hours == 0 {
            return false;
        }
        let earlier: i64 = self.0[..TREND_HOURS - RECENT_HOURS].iter().sum();
        let hours = i64::try_from(earlier_hours).unwrap_or(i64::MAX);
        self.recent() >= ESCALATING_MIN && self.recent() * hours >= earlier * ESCALATING_TIMES
    }
}

/// What can be said of causes in some states without knowing how often they kill: only those need be looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Narrowed {
    /// Whether they were said to be over.
    pub resolved: Option<bool>,
    /// Whether they came back since, if they were.
    pub back: Option<bool>,
    /// Whether somebody muted them, at some time.
    pub muted: bool,
    /// They were first seen after this time.
    pub seen_after: Option<Timestamp>,
}

/// Narrows a list of causes in any of some states.
pub fn narrowed(states: &[CauseState], now: Timestamp) -> Narrowed {
    use CauseState::{Escalating, Muted, New, Ongoing, Regressed, Resolved};
    let only = |some: &[CauseState]| !states.is_empty() && states.iter().all(|state| some.contains(state));
    Narrowed {
        resolved: match () {
            () if only(&[Resolved, Regressed]) => Some(true),
            () if only(&[New, Ongoing, Escalating]) => Some(false),
            () => None,
        },
        back: match () {
            () if only(&[Regressed]) => Some(true),
            () if only(&[Resolved]) => Some(false),
            () => None,
        },
        muted: only(&[Muted]),
        seen_after: only(&[New]).then(|| now - NEW_FOR),
    }
}

/// The state of a cause.
pub fn state(standing: &Standing, first_seen: Timestamp, trend: &Trend, now: Timestamp) -> CauseState {
    if standing.mute.is_some_and(|mute| mute.holds(trend, now)) {
        CauseState::Muted
    } else if let Some(resolved_at) = standing.resolved_at {
        if standing.last_seen > resolved_at { CauseState::Regressed } else { CauseState::Resolved }
    } else if trend.escalates(first_seen, now) {
        CauseState::Escalating
    } else if now.since(first_seen) < NEW_FOR {
        CauseState::New
    } else {
        CauseState::Ongoing
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3_600);

    fn trend(recent: i64, earlier: i64) -> Trend {
        let mut hours = [earlier; TREND_HOURS];
        hours[TREND_HOURS - 1] = recent;
        hours[TREND_HOURS - 2] = earlier;
        Trend(hours)
    }

    #[test]
    fn states_follow_from_what_was_said_and_what_happened() {
        let now = Timestamp::from_millis(1_700_000_000_000);
        let (old, young) = (now - 48 * HOUR, now - HOUR);
        let nothing = Standing { resolved_at: None, last_seen: young, mute: None };
        assert_eq!(state(&nothing, young, &trend(500, 0), now), CauseState::New, "it has no usual hour yet");
        assert_eq!(state(&nothing, old, &trend(5, 5), now), CauseState::Ongoing);
        assert_eq!(state(&nothing, old, &trend(30, 5), now), CauseState::Escalating);
        assert_eq!(state(&nothing, old, &trend(9, 0), now), CauseState::Ongoing, "too few to tell");
        let resolved = Standing { resolved_at: Some(young), ..nothing };
        assert_eq!(state(&resolved, old, &trend(30, 5), now), CauseState::Resolved);
        let regressed = Standing { last_seen: young + HOUR, ..resolved };
        assert_eq!(state(&regressed, old, &trend(1, 0), now), CauseState::Regressed);
    }

    #[test]
    fn what_is_usual_needs_somebody_while_nobody_looks_after_it() {
        let needy = |is_owned| CauseState::ALL.into_iter().filter(move |state| state.needs_somebody(is_owned)).count();
        assert_eq!((needy(true), needy(false)), (3, 4));
        assert!(!CauseState::Muted.needs_somebody(false) && !CauseState::Resolved.needs_somebody(false));
    }

    #[test]
    fn a_mute_ends_with_its_time_or_its_rate() {
        let now = Timestamp::from_millis(1_700_000_000_000);
        let old = now - 48 * HOUR;
        let muted = |mute| Standing { resolved_at: None, last_seen: old, mute: Some(mute) };
        let until = muted(Mute { until: Some(now + HOUR), per_hour: None });
        assert_eq!(state(&until, old, &trend(1, 1), now), CauseState::Muted);
        assert_eq!(state(&until, old, &trend(1, 1), now + 2 * HOUR), CauseState::Ongoing);
        let rate = muted(Mute { until: None, per_hour: Some(5) });
        assert_eq!(state(&rate, old, &trend(4, 4), now), CauseState::Muted);
        assert_eq!(state(&rate, old, &trend(5, 4), now), CauseState::Ongoing);
        assert_eq!(state(&muted(Mute::default()), old, &trend(900, 4), now), CauseState::Muted);
    }

    /// A list that is narrowed leaves out nothing that is in one of its states.
    #[test]
    fn narrowing_leaves_nothing_out() {
        let now = Timestamp::from_millis(1_700_000_000_000);
        let (old, young) = (now - 48 * HOUR, now - HOUR);
        let mutes = [None, Some(Mute::default()), Some(Mute { until: Some(old), per_hour: None })];
        for first_seen in [old, young] {
            for resolved_at in [None, Some(old - HOUR), Some(now)] {
                for mute in mutes {
                    for hours in [trend(1, 1), trend(30, 1)] {
                        let standing = Standing { resolved_at, last_seen: young, mute };
                        let found = state(&standing, first_seen, &hours, now);
                        let narrowed = narrowed(&[found], now);
                        let back = resolved_at.map(|at| young > at);
                        assert!(narrowed.resolved.is_none_or(|wanted| wanted == resolved_at.is_some()), "{found}");
                        assert!(narrowed.back.is_none_or(|wanted| Some(wanted) == back), "{found}");
                        assert!(!narrowed.muted || mute.is_some(), "{found}");
                        assert!(narrowed.seen_after.is_none_or(|after| first_seen > after), "{found}");
                    }
                }
            }
        }
        assert_eq!(super::narrowed(&[], now), Narrowed::default());
    }

    #[test]
    fn a_cause_is_called_after_its_key() {
        let id = |digits| String::from(CauseId::of_key("1-0123456789abcdef", digits));
        assert_eq!([id(8), id(10)], ["01234567", "0123456789"]);
        assert_eq!(id(17).len(), 16, "when all digits are taken others are made");
        assert!(CauseId::of_key("1-0123/target=x", 8).as_str().parse::<CauseId>().is_ok());
        let free = |taken: &[&str]| {
            CauseId::free("1-0123456789abcdef", |id| Ok::<_, ()>(taken.contains(&id.as_str()))).map(String::from)
        };
        assert_eq!(free(&[]), Ok("01234567".to_owned()));
        assert_eq!(free(&["01234567", "012345678"]), Ok("0123456789".to_owned()));
        assert_eq!(CauseId::free("k", |_| Err("away")), Err("away"));
    }

    #[test]
    fn ids_are_hexadecimal() {
        assert_eq!("3F9a".parse::<CauseId>().map(String::from), Ok("3f9a".to_owned()));
        for bad in ["", "xyz", "3f9a'--"] {
            assert!(bad.parse::<CauseId>().is_err(), "{bad:?}");
        }
    }
}
