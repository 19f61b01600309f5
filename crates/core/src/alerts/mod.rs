//! Alerts: which conditions hold, when that is told, and when it is over. All of it is judged over numbers that are handed in.
//!
//! An alert fires once, is told again when it has doubled, and says when it is over. What is told to which sink is derived from the
//! alert and from what that sink was told before, so that a kill between judging and telling loses nothing.
//!
//! Several files may have rules for one pipeline, with other thresholds. An alert belongs to those whose rules see it: it fires when
//! the first does, and is over when the last says so, so that two files that disagree do not end each other's alerts.
//!
//! - [`rules`]: the thresholds
//! - [`facts`]: what is judged; [`judge`](mod@judge): the conditions, one file for each kind
//! - [`bounds`]: what a share is at least, and at most
//! - [`notices`]: what a sink is told, and when it is tried again
//! - [`care`]: what people do about alerts; [`standing`]: where one stands by that
//! - [`page`]: the page of the dashboard that one is about
//! - [`past`]: how often rules would have fired
//! - [`text`]: numbers and text of strangers on one line

pub mod bounds;
pub mod care;
pub mod facts;
pub mod judge;
pub mod notices;
pub mod page;
pub mod past;
pub mod rules;
pub mod standing;
pub mod text;

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

pub use self::bounds::Share;
pub use self::care::{AlertCare, CareChange, CareRefusal};
pub use self::facts::Facts;
pub use self::judge::judge;
pub use self::notices::{Notice, NoticeKind, due_notice};
pub use self::page::AlertPage;
pub use self::rules::{RuleBook, Rules};
pub use self::standing::AlertStanding;
use crate::ids::PipelineName;
use crate::time::Timestamp;

/// How many times what was told last an alert must be to be told again.
const GROWN_TIMES: f64 = 2.0;

/// How long an alert goes on of which nothing is heard any more: no job ends, no record is made.
const SILENT_FOR: Duration = Duration::from_secs(24 * 3_600);

/// How long an alert goes on for the sake of a file whose rules saw it and that has not been heard of since: it may be gone.
const VOUCHED_FOR: Duration = Duration::from_secs(2 * 3_600);

/// What an alert can be about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Condition {
    /// Too large a share of jobs dies.
    Rate,
    /// A far larger share of jobs dies than usual.
    Jump,
    /// A cause that is new, came back or escalates kills many jobs.
    Cause,
    /// A target has been failing for long, and jobs wait for it.
    Breaker,
    /// A replay paused itself.
    Replay,
    /// Jobs are due and none comes to its end.
    Stalled,
    /// A field is found less often than before.
    Coverage,
    /// Letters of unresolved causes are about to be discarded for their age.
    Expiry,
    /// A pipeline has as many dead letters as it may have, so that nothing is enqueued.
    Letters,
    /// The disk of the store is nearly full.
    Disk,
}

impl Condition {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::Rate,
        Self::Jump,
        Self::Cause,
        Self::Breaker,
        Self::Replay,
        Self::Stalled,
        Self::Coverage,
        Self::Expiry,
        Self::Letters,
        Self::Disk,
    ];

    /// The name in JSON, keys and on the screen.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Rate => "rate",
            Self::Jump => "jump",
            Self::Cause => "cause",
            Self::Breaker => "breaker",
            Self::Replay => "replay",
            Self::Stalled => "stalled",
            Self::Coverage => "coverage",
            Self::Expiry => "expiry",
            Self::Letters => "letters",
            Self::Disk => "disk",
        }
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Condition {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|condition| condition.as_str() == text);
        found.ok_or_else(|| format!("{text:?} is nothing that an alert is about"))
    }
}

/// Which alert: its condition and what it is about. Parts of it may be text of strangers.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct AlertKey(String);

impl AlertKey {
    /// The key of a condition, of a pipeline if it is about one, and of a part of that.
    pub fn new(condition: Condition, pipeline: Option<&PipelineName>, part: Option<&str>) -> Self {
        let parts = [Some(condition.as_str()), pipeline.map(PipelineName::as_str), part];
        Self(parts.into_iter().flatten().collect::<Vec<_>>().join("/"))
    }

    /// The key as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<String> for AlertKey {
    fn from(text: String) -> Self {
        Self(text)
    }
}

/// What was found of a condition that holds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// How bad it is; told again when that has doubled.
    pub level: f64,
    /// How bad it is at least, where the level is an estimate.
    pub surely: f64,
    /// It in one line, with its numbers and the threshold.
    pub summary: String,
    /// A command to look at it.
    pub look: String,
    /// The numbers.
    pub numbers: Map<String, Value>,
}

/// Whether a condition holds.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// It does.
    Fires(Finding),
    /// It does not, and this shows it.
    Clear(String),
    /// Too little is known to say either.
    Unknown,
    /// Too little is known, because no job has come to its end since then.
    Silent(Timestamp),
}

impl Verdict {
    /// `Silent` if it is known since when no job has come to its end, else `Unknown`.
    fn unknown(silent: Option<Timestamp>) -> Self {
        silent.map_or(Self::Unknown, Self::Silent)
    }
}

/// Precedes, in a summary, the time since which no job has come to its end.
const NOTHING_SINCE: &str = "; nothing has finished since ";

impl Finding {
    /// When the last job came to its end, if none did in the window.
    pub fn nothing_since(&self) -> Option<Timestamp> {
        Timestamp::deserialize(self.numbers.get("nothing_since")?).ok()
    }

    /// Adds to the summary since when no job has come to its end, or removes it.
    fn silent_since(mut self, at: Option<Timestamp>, now: Timestamp) -> Self {
        if self.numbers.remove("nothing_since").is_some() {
            self.summary.truncate(self.summary.rfind(NOTHING_SINCE).unwrap_or(self.summary.len()));
        }
        if let Some(at) = at {
            let text = at.to_string();
            let from = if at.day() == now.day() { 11 } else { 0 };
            let minute = text.get(from..16).unwrap_or(&text).replace('T', " ");
            self.summary.push_str(&format!("{NOTHING_SINCE}{minute} UTC"));
            self.numbers.insert("nothing_since".to_owned(), json!(at));
        }
        self
    }
}

/// A condition that was looked at.
#[derive(Clone, Debug, PartialEq)]
pub struct Seen {
    /// What it is about.
    pub condition: Condition,
    /// The pipeline, where it is about one.
    pub pipeline: Option<PipelineName>,
    /// Which alert it is.
    pub key: AlertKey,
    /// Whether it holds.
    pub verdict: Verdict,
    /// What is usual, where it was compared with that.
    pub baseline: Option<Share>,
}

/// An alert that fires, or did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Alert {
    /// Which.
    pub key: AlertKey,
    /// What it is about.
    pub condition: Condition,
    /// The pipeline, where it is about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pipeline: Option<PipelineName>,
    /// When it fired.
    pub since: Timestamp,
    /// When it was last found to hold.
    pub seen_at: Timestamp,
    /// The files by whose rules it holds, and when each last saw it.
    #[serde(default)]
    pub seen_by: BTreeMap<String, Timestamp>,
    /// How often there was something to tell: once when it fired, each time it had doubled, and when a snooze of it was over.
    pub tellings: u32,
    /// The telling that is because a snooze was over, if one is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub woken: Option<u32>,
    /// How bad it was at the last telling.
    pub told_level: f64,
    /// What was found last.
    pub finding: Finding,
    /// What was usual before it fired.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline: Option<Share>,
    /// When it was over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over_at: Option<Timestamp>,
    /// By what that was seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why_over: Option<String>,
}

impl Alert {
    /// Whether it fires.
    pub const fn is_firing(&self) -> bool {
        self.over_at.is_none()
    }

    /// Whether it holds by the rules of a file.
    pub fn is_seen_by(&self, file: &str) -> bool {
        self.seen_by.contains_key(file)
    }

    fn fired(seen: &Seen, finding: &Finding, file: &str, now: Timestamp) -> Self {
        Self {
            key: seen.key.clone(),
            condition: seen.condition,
            pipeline: seen.pipeline.clone(),
            since: now,
            seen_at: now,
            seen_by: [(file.to_owned(), now)].into(),
            tellings: 1,
            woken: None,
            told_level: finding.level,
            finding: finding.clone(),
            baseline: seen.baseline,
            over_at: None,
            why_over: None,
        }
    }

    fn over(&self, why: &str, now: Timestamp) -> Self {
        Self { over_at: Some(now), why_over: Some(why.to_owned()), ..self.clone() }
    }

    /// The same once it no longer holds by the rules of a file: over, unless it holds by those of another that was heard of lately.
    fn cleared(&self, why: &str, file: &str, now: Timestamp) -> Option<Self> {
        // What a clock wrote that was ahead counts for no longer than anything else.
        let is_fresh = |seen_at: Timestamp| now.since(seen_at) < VOUCHED_FOR && seen_at.since(now) < VOUCHED_FOR;
        if !self.seen_by.iter().any(|(other, seen_at)| other != file && is_fresh(*seen_at)) {
            return Some(self.over(why, now));
        }
        let mut rest = self.clone();
        rest.seen_by.remove(file).map(|_| rest)
    }
}

/// What becomes of an alert by what was seen by the rules of a file; nothing if it stays as it is.
pub fn next(before: Option<&Alert>, seen: &Seen, file: &str, now: Timestamp) -> Option<Alert> {
    match (before.filter(|alert| alert.is_firing()), &seen.verdict) {
        (None, Verdict::Fires(finding)) => {
            // An incident is told apart from the one before by when it fired.
            let after = before.map_or(now, |alert| now.max(alert.since + Duration::from_millis(1)));
            Some(Alert::fired(seen, finding, file, after))
        }
        (None, _) => None,
        (Some(alert), Verdict::Fires(finding)) => {
            let grown = finding.surely >= alert.told_level * GROWN_TIMES;
            let mut alert = alert.clone();
            alert.seen_by.insert(file.to_owned(), now);
            Some(Alert {
                seen_at: now,
                finding: finding.clone(),
                tellings: alert.tellings + u32::from(grown),
                told_level: if grown { finding.level } else { alert.told_level },
                ..alert
            })
        }
        (Some(alert), Verdict::Clear(why)) => alert.cleared(why, file, now),
        (Some(alert), verdict @ (Verdict::Unknown | Verdict::Silent(_))) => {
            if now.since(alert.seen_at) >= SILENT_FOR {
                return Some(alert.over("nothing was heard of it for a day", now));
            }
            let since = if let Verdict::Silent(at) = verdict { Some(*at) } else { None };
            let finding = alert.finding.clone().silent_since(since, now);
            (finding != alert.finding).then(|| Alert { finding, ..alert.clone() })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(secs: i64) -> Timestamp {
        Timestamp::from_millis(secs * 1_000)
    }

    fn finding(level: f64, surely: f64) -> Verdict {
        let (summary, look) = ("it is bad".to_owned(), "redrive status".to_owned());
        Verdict::Fires(Finding { level, surely, summary, look, numbers: Map::new() })
    }

    fn seen(verdict: Verdict) -> Seen {
        let key = AlertKey::new(Condition::Disk, None, None);
        Seen { condition: Condition::Disk, pipeline: None, key, verdict, baseline: None }
    }

    #[test]
    fn it_fires_once_again_when_doubled_and_says_when_it_is_over() {
        let mut alert: Option<Alert> = None;
        let mut told = Vec::new();
        let steps = [
            (0, finding(0.1, 0.05)),
            (60, finding(0.1, 0.08)),
            (120, finding(0.25, 0.19)),
            (180, finding(0.25, 0.2)),
            (240, finding(0.3, 0.25)),
            (300, Verdict::Unknown),
            (360, Verdict::Clear("better".into())),
            (420, Verdict::Clear("better".into())),
            (480, finding(0.1, 0.05)),
        ];
        for (secs, verdict) in steps {
            if let Some(changed) = next(alert.as_ref(), &seen(verdict), "a", at(secs)) {
                let before = alert.as_ref().filter(|alert| alert.is_firing()).map_or(0, |alert| alert.tellings);
                match (changed.is_firing(), changed.tellings > before) {
                    (true, true) => told.push((secs, "told")),
                    (true, false) => {}
                    (false, _) => told.push((secs, "over")),
                }
                alert = Some(changed);
            }
        }
        assert_eq!(told, [(0, "told"), (180, "told"), (360, "over"), (480, "told")]);
    }

    #[test]
    fn silence_ends_it_after_a_day_and_not_before() {
        let fired = next(None, &seen(finding(1.0, 1.0)), "a", at(0));
        let day = 24 * 3_600;
        assert_eq!(next(fired.as_ref(), &seen(Verdict::Unknown), "a", at(day - 1)), None);
        let over = next(fired.as_ref(), &seen(Verdict::Unknown), "a", at(day)).expect("changed");
        assert!(!over.is_firing());
    }

    #[test]
    fn an_incident_is_told_apart_from_the_one_before_though_the_clock_was_set_back() {
        let first = next(None, &seen(finding(1.0, 1.0)), "a", at(100)).expect("fired");
        let over = next(Some(&first), &seen(Verdict::Clear(String::new())), "a", at(101)).expect("over");
        let again = next(Some(&over), &seen(finding(1.0, 1.0)), "a", at(50)).expect("fired");
        assert!(again.since > first.since);
    }

    /// By the rules of `strict` it holds all the time, by those of `lax` never.
    #[test]
    fn a_file_does_not_end_what_the_rules_of_another_see() {
        let clear = || seen(Verdict::Clear("well".into()));
        let mut alert = next(None, &seen(finding(1.0, 1.0)), "strict", at(0)).expect("fired");
        for minute in 1..600 {
            let verdict = seen(finding(1.0, 1.0));
            assert_eq!(next(Some(&alert), &clear(), "lax", at(minute * 60)), None, "it is not theirs");
            alert = next(Some(&alert), &verdict, "strict", at(minute * 60 + 30)).expect("seen");
            assert_eq!((alert.tellings, alert.since), (1, at(0)));
        }
        assert!(alert.is_seen_by("strict") && !alert.is_seen_by("lax"));
        assert!(!next(Some(&alert), &clear(), "strict", at(36_000)).expect("over").is_firing());
    }

    #[test]
    fn it_is_over_when_the_last_file_that_saw_it_says_so_or_is_gone() {
        let (clear, fires) = (|| seen(Verdict::Clear("well".into())), || seen(finding(1.0, 1.0)));
        let one = next(None, &fires(), "a", at(0)).expect("fired");
        let both = next(Some(&one), &fires(), "b", at(60)).expect("seen");
        let left = next(Some(&both), &clear(), "a", at(120)).expect("no longer seen by a");
        assert!(left.is_firing() && left.is_seen_by("b") && !left.is_seen_by("a"));
        assert!(!next(Some(&left), &clear(), "b", at(180)).expect("over").is_firing());
        assert_eq!(next(Some(&left), &clear(), "c", at(60 + 7_199)), None, "b may be back");
        assert!(!next(Some(&left), &clear(), "c", at(60 + 7_200)).expect("over").is_firing(), "b is gone");
        let ahead = next(Some(&one), &fires(), "b", at(900_000)).expect("seen by a clock that is ahead");
        assert!(!next(Some(&ahead), &clear(), "a", at(180)).expect("over").is_firing());
    }

    #[test]
    fn conditions_survive_text() {
        for condition in Condition::ALL {
            assert_eq!(condition.as_str().parse(), Ok(condition));
        }
    }
}
