//! The share of jobs that die: above a threshold, and far above what is usual.

use std::time::Duration;

use serde_json::{Value, json};

use super::{Looking, numbers, of_pipeline};
use crate::alerts::facts::PipelineFacts;
use crate::alerts::rules::Rules;
use crate::alerts::text::{percent, span};
use crate::alerts::{Alert, AlertKey, Condition, Finding, Seen, Share, Verdict};
use crate::ids::PipelineName;
use crate::time::Timestamp;

/// Jobs that must have come to their end in the window for it to show that all is well, if some of them died.
const ENDED_MIN: u64 = 20;

/// Jobs that must have come to their end before for anything to be usual.
const USUAL_MIN: u64 = 100;

/// How long back it is looked for what is usual.
const USUAL_FOR: Duration = Duration::from_secs(24 * 3_600);

const HOUR: Duration = Duration::from_secs(3_600);

/// A share that is exactly the threshold is not above it, however the threshold was written.
const ROUNDING: f64 = 1e-9;

/// What died in a window, and how much of it is told.
struct Window {
    length: Duration,
    died_min: u64,
    died: Share,
}

impl Window {
    /// The window that shares are measured over. Jobs are counted by the minute, so that it reaches back to the beginning of one.
    fn short(pipeline: &PipelineFacts, rules: &Rules, now: Timestamp) -> Self {
        let first = (now - rules.window).minute();
        // The minute of a clock that is ahead counts, too.
        let died = pipeline.minutes.iter().filter(|(at, _)| at.minute() >= first).map(|(_, share)| *share).sum();
        Self { length: rules.window, died_min: rules.died_min, died }
    }

    /// The long window, by the hour. It begins after the last incident: what was told is not told again for a day.
    fn long(pipeline: &PipelineFacts, rules: &Rules, told: Option<&Alert>, now: Timestamp) -> Option<Self> {
        let length = rules.long_window?;
        let over_at = told.and_then(|alert| alert.over_at);
        let is_in = |at: Timestamp| at + HOUR > now - length && over_at.is_none_or(|over_at| at >= over_at);
        let died = pipeline.hours.iter().filter(|(at, _)| is_in(*at)).map(|(_, share)| *share).sum();
        Some(Self { length, died_min: rules.long_died_min, died })
    }

    fn is_above(&self, limit: f64) -> bool {
        self.died.part >= self.died_min && self.died.value() > limit + ROUNDING
    }

    /// Whether an alert was last seen by this window.
    fn saw(&self, alert: &Alert) -> bool {
        alert.finding.numbers.get("window_secs").and_then(Value::as_u64) == Some(self.length.as_secs())
    }

    /// Says that all is well if the jobs of the window show it: enough of them, or any if none died. A pipeline with few jobs would
    /// otherwise have one incident for ever.
    fn is_over(&self, limit: f64, silent: Option<Timestamp>) -> Verdict {
        let Self { length, died, .. } = self;
        let is_well = match died.part {
            0 => died.whole > 0,
            _ => died.whole >= ENDED_MIN && died.value() <= limit + ROUNDING,
        };
        let well = || format!("{} of {} tasks died in the last {}", died.part, died.whole, span(*length));
        if is_well { Verdict::Clear(well()) } else { Verdict::unknown(silent) }
    }

    /// Since when nothing has come to its end, if nothing did in the window.
    fn silent_since(&self, pipeline: &PipelineFacts) -> Option<Timestamp> {
        let ended_at = pipeline.ended_at.filter(|_| self.died.whole == 0)?;
        let is_minute = pipeline.minutes.iter().any(|(at, share)| *at == ended_at && share.whole > 0);
        // Of an hour it is only known that nothing came after it.
        Some(if is_minute { ended_at } else { ended_at + HOUR })
    }
}

/// The share of jobs that died in the day before the window, of whole hours.
fn usual(pipeline: &PipelineFacts, rules: &Rules, now: Timestamp) -> Share {
    let end = now - rules.window;
    let is_before = |at: Timestamp| at + HOUR <= end && at >= end - USUAL_FOR - HOUR;
    pipeline.hours.iter().filter(|(at, _)| is_before(*at)).map(|(_, share)| *share).sum()
}

/// Too large a share dies, in the window or in the long one. What the window saw is over when the window is well; what only the long
/// one saw, when that is. While no job ends it stays as it is.
pub(super) fn rate(looking: &Looking<'_>, name: &PipelineName, pipeline: &PipelineFacts) -> Option<Seen> {
    let rules = looking.rules.of(name);
    let limit = rules.rate?;
    let key = AlertKey::new(Condition::Rate, Some(name), None);
    let (told, firing) = (looking.before.get(&key), looking.firing(&key));
    let short = Window::short(pipeline, rules, looking.now);
    let long =
        Window::long(pipeline, rules, told, looking.now).filter(|long| firing.is_none_or(|fires| long.saw(fires)));
    let above = [Some(&short), long.as_ref()].into_iter().flatten().find(|window| window.is_above(limit));
    let silent = short.silent_since(pipeline);
    let verdict = match above {
        Some(window) => {
            let found = dying(name, window, limit, &format!("alerts above {}", percent(limit)));
            Verdict::Fires(found.silent_since(silent, looking.now))
        }
        None => long.as_ref().unwrap_or(&short).is_over(limit, silent),
    };
    Some(of_pipeline(Condition::Rate, name, None, verdict))
}

/// A far larger share dies than usual. While it fires it is compared with what was usual before it did.
pub(super) fn jump(looking: &Looking<'_>, name: &PipelineName, pipeline: &PipelineFacts) -> Option<Seen> {
    let rules = looking.rules.of(name);
    let times = rules.jump?;
    let key = AlertKey::new(Condition::Jump, Some(name), None);
    let before = looking.firing(&key).and_then(|alert| alert.baseline);
    let usual = before.unwrap_or_else(|| usual(pipeline, rules, looking.now));
    let window = Window::short(pipeline, rules, looking.now);
    let (limit, surely) = (usual.at_most() * times, window.died.at_least());
    let verdict = match () {
        () if usual.whole < USUAL_MIN => Verdict::unknown(window.silent_since(pipeline)),
        () if window.died.part >= rules.died_min && surely > limit => {
            let (surely, usual) = (percent(surely), percent(usual.value()));
            let why = format!("surely more than {surely}; usually {usual}, alerts above {times} times that");
            Verdict::Fires(dying(name, &window, limit, &why))
        }
        () => window.is_over(limit, window.silent_since(pipeline)),
    };
    Some(Seen { baseline: Some(usual), ..of_pipeline(Condition::Jump, name, None, verdict) })
}

fn dying(name: &PipelineName, window: &Window, limit: f64, why: &str) -> Finding {
    let Window { length, died_min, died } = window;
    let summary = format!(
        "{name}: {} of the tasks died in the last {} ({} of {}; {why})",
        percent(died.value()),
        span(*length),
        died.part,
        died.whole,
    );
    let numbers = numbers([
        ("died", json!(died.part)),
        ("ended", json!(died.whole)),
        ("share", json!(died.value())),
        ("share_at_least", json!(died.at_least())),
        ("threshold", json!(limit)),
        ("died_min", json!(died_min)),
        ("window_secs", json!(length.as_secs())),
    ]);
    let look = format!("redrive cause list --pipeline {name}");
    Finding { level: died.value(), surely: died.at_least(), summary, look, numbers }
}
