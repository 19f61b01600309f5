//! What a sink is told of an alert, and when a sink that fails is tried again.
//!
//! What is due follows from the alert and from what the sink was told of this incident before: a sink that is new is told of what
//! fires, one that was never told that something fired is not told that it is over.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::text::span;
use super::{Alert, AlertKey, Condition};
use crate::ids::PipelineName;
use crate::time::Timestamp;

/// The first wait after a sink failed; it doubles.
const WAIT_FIRST: Duration = Duration::from_secs(5);

/// The longest wait after a sink failed, unless it asks for a longer one.
const WAIT_MAX: Duration = Duration::from_secs(300);

/// The longest that a sink may ask to be left alone.
pub const ASKED_MAX: Duration = Duration::from_secs(3_600);

/// How long it is tried to deliver a notice.
const TRIED_FOR: Duration = Duration::from_secs(24 * 3_600);

/// Digits of the key by which others recognise an incident.
const DEDUP_DIGITS: usize = 24;

/// What a notice says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoticeKind {
    /// It fires.
    Fired,
    /// It has doubled since it was last told.
    Grown,
    /// It is over.
    Over,
    /// Nothing is wrong: somebody wants to see whether notices arrive.
    Test,
}

impl NoticeKind {
    /// The name in JSON and text.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Fired => "fired",
            Self::Grown => "grown",
            Self::Over => "over",
            Self::Test => "test",
        }
    }
}

/// What a sink is told.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Notice {
    /// What it says.
    pub kind: NoticeKind,
    /// Which alert.
    pub key: AlertKey,
    /// What the alert is about; nothing in a test.
    pub condition: Option<Condition>,
    /// The pipeline, where it is about one.
    pub pipeline: Option<PipelineName>,
    /// By which others recognise the incident: the same from when it fires until it is over.
    pub dedup_key: String,
    /// The how manyth of its incident it is, from 1: a notice that arrives twice has the same.
    pub number: u32,
    /// When it fired.
    pub since: Timestamp,
    /// When there was this to tell.
    pub at: Timestamp,
    /// It in one line.
    pub summary: String,
    /// A command to look at it.
    pub look: String,
    /// The numbers.
    pub numbers: Map<String, Value>,
}

impl Notice {
    /// One that says that nothing is wrong.
    pub fn test(now: Timestamp) -> Self {
        let key = AlertKey::from("test".to_owned());
        Self {
            kind: NoticeKind::Test,
            dedup_key: dedup_key(&key, now),
            key,
            condition: None,
            pipeline: None,
            number: 1,
            since: now,
            at: now,
            summary: "this is a test: nothing is wrong".to_owned(),
            look: "redrive alert list".to_owned(),
            numbers: Map::new(),
        }
    }

    /// It in one line, with what it says.
    pub fn title(&self) -> String {
        format!("redrive alert {}: {}", self.kind.as_str(), self.summary)
    }

    /// It as a person reads it, without anything that a chat or a terminal would obey, and with the address of its page if there is one.
    pub fn text(&self, link: Option<&str>) -> String {
        let open = link.map(|link| format!("open: {link}\n")).unwrap_or_default();
        format!("{}\nsince {}\nlook: {}\n{open}", self.title(), self.since, self.look)
    }
}

fn dedup_key(key: &AlertKey, since: Timestamp) -> String {
    let hash = blake3::hash(format!("{}\n{}", since.as_millis(), key.as_str()).as_bytes());
    format!("redrive-{}", &hash.to_hex()[..DEDUP_DIGITS])
}

/// What a sink is to be told of an alert now. `told` is the highest number that it was told, or is to be told, of this incident.
pub fn due_notice(alert: &Alert, told: Option<u32>) -> Option<Notice> {
    let (kind, number) = match (alert.is_firing(), told) {
        (true, Some(told)) if told >= alert.tellings => return None,
        (true, _) if alert.tellings == 1 || alert.woken == Some(alert.tellings) => (NoticeKind::Fired, alert.tellings),
        (true, _) => (NoticeKind::Grown, alert.tellings),
        (false, Some(told)) if told <= alert.tellings => (NoticeKind::Over, alert.tellings + 1),
        (false, _) => return None,
    };
    let (at, summary) = match (alert.over_at, &alert.why_over) {
        (Some(over_at), why) => {
            let (lasted, why) = (span(over_at.since(alert.since)), why.as_deref().unwrap_or_default());
            (over_at, format!("over after {lasted}: {why} (it was: {})", alert.finding.summary))
        }
        (None, _) => (alert.seen_at, alert.finding.summary.clone()),
    };
    Some(Notice {
        kind,
        key: alert.key.clone(),
        condition: Some(alert.condition),
        pipeline: alert.pipeline.clone(),
        dedup_key: dedup_key(&alert.key, alert.since),
        number,
        since: alert.since,
        at,
        summary,
        look: alert.finding.look.clone(),
        numbers: alert.finding.numbers.clone(),
    })
}

/// How long to wait after a sink failed so many times in a row, at least as long as it asked for.
pub fn wait_after(failures: u32, asked: Option<Duration>) -> Duration {
    let doubled = WAIT_FIRST.saturating_mul(1 << failures.saturating_sub(1).min(16));
    doubled.min(WAIT_MAX).max(asked.unwrap_or_default().min(ASKED_MAX))
}

/// Whether a notice that could not be delivered is given up.
pub fn is_given_up(posted_at: Timestamp, now: Timestamp) -> bool {
    now.since(posted_at) >= TRIED_FOR
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alerts::{Finding, Seen, Verdict, next};

    const fn at(secs: i64) -> Timestamp {
        Timestamp::from_millis(secs * 1_000)
    }

    fn seen(verdict: Verdict) -> Seen {
        let condition = Condition::Stalled;
        let pipeline: PipelineName = "p".parse().expect("a name");
        let key = AlertKey::new(condition, Some(&pipeline), None);
        Seen { condition, pipeline: Some(pipeline), key, verdict, baseline: None }
    }

    fn fires(level: f64) -> Seen {
        let (summary, look) = ("p stands".to_owned(), "redrive status".to_owned());
        seen(Verdict::Fires(Finding { level, surely: level, summary, look, numbers: Map::new() }))
    }

    fn told(alert: &Alert, told: Option<u32>) -> Option<(NoticeKind, u32)> {
        due_notice(alert, told).map(|notice| (notice.kind, notice.number))
    }

    #[test]
    fn each_sink_is_told_each_thing_once() {
        let fired = next(None, &fires(1.0), "", at(0)).expect("fired");
        assert_eq!(told(&fired, None), Some((NoticeKind::Fired, 1)));
        assert_eq!(told(&fired, Some(1)), None);
        let grown = next(Some(&fired), &fires(2.0), "", at(60)).expect("grown");
        assert_eq!(told(&grown, Some(1)), Some((NoticeKind::Grown, 2)));
        assert_eq!(told(&grown, Some(2)), None);
        assert_eq!(told(&grown, None), Some((NoticeKind::Grown, 2)), "a sink that is new is told of what fires");
        let over = next(Some(&grown), &seen(Verdict::Clear("it goes on".into())), "", at(120)).expect("over");
        assert_eq!(told(&over, Some(2)), Some((NoticeKind::Over, 3)));
        assert_eq!(told(&over, Some(1)), Some((NoticeKind::Over, 3)), "though it missed that it had grown");
        assert_eq!(told(&over, Some(3)), None);
        assert_eq!(told(&over, None), None, "who did not hear of it need not hear that it is over");
        let notices = [due_notice(&fired, None), due_notice(&grown, None), due_notice(&over, Some(2))];
        let keys: std::collections::BTreeSet<_> =
            notices.into_iter().flatten().map(|notice| notice.dedup_key).collect();
        assert_eq!(keys.len(), 1, "one incident has one key");
        let again = next(Some(&over), &fires(1.0), "", at(180)).expect("fired");
        assert_ne!(due_notice(&again, None).expect("due").dedup_key, *keys.first().expect("one"));
    }

    #[test]
    fn a_sink_that_fails_is_tried_ever_less_often_for_a_day() {
        let waits: Vec<u64> = (1..=8).map(|failures| wait_after(failures, None).as_secs()).collect();
        assert_eq!(waits, [5, 10, 20, 40, 80, 160, 300, 300]);
        assert_eq!(wait_after(u32::MAX, None), WAIT_MAX);
        let asked = |secs| wait_after(2, Some(Duration::from_secs(secs))).as_secs();
        assert_eq!((asked(1), asked(90), asked(u64::MAX)), (10, 90, 3_600), "a sink may ask for more, not for ever");
        assert!(!is_given_up(at(0), at(86_399)) && is_given_up(at(0), at(86_400)));
    }
}
