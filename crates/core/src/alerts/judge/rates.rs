//! The share of jobs that die: above a threshold, and far above what is usual.

use std::time::Duration;

use serde_json::json;

use super::{Looking, numbers, of_pipeline};
use crate::alerts::facts::PipelineFacts;
use crate::alerts::rules::Rules;
use crate::alerts::text::{percent, span};
use crate::alerts::{AlertKey, Condition, Finding, Seen, Share, Verdict};
use crate::ids::PipelineName;
use crate::time::Timestamp;

/// Jobs that must have come to their end in the window for it to show that all is well, if some of them died.
const ENDED_MIN: u64 = 20;

/// Jobs that must have come to their end before for anything to be usual.
const USUAL_MIN: u64 = 100;

/// How long back it is looked for what is usual.
const USUAL_FOR: Duration = Duration::from_secs(24 * 3_600);

const HOUR: Duration = Duration::from_secs(3_600);

/// The share of jobs that died in the window.
fn in_window(pipeline: &PipelineFacts, rules: &Rules, now: Timestamp) -> Share {
    let first = (now - rules.window).minute();
    // A minute counts as a whole, also that of a clock that is ahead.
    pipeline.minutes.iter().filter(|(at, _)| at.minute() > first).map(|(_, share)| *share).sum()
}

/// The share of jobs that died in the day before the window, of whole hours.
fn usual(pipeline: &PipelineFacts, rules: &Rules, now: Timestamp) -> Share {
    let end = now - rules.window;
    let is_before = |at: Timestamp| at + HOUR <= end && at >= end - USUAL_FOR - HOUR;
    pipeline.hours.iter().filter(|(at, _)| is_before(*at)).map(|(_, share)| *share).sum()
}

/// Too large a share dies. It fires when what the share is at least exceeds the threshold, and is over when the share itself does
/// not; while no job ends it stays as it is.
pub(super) fn rate(looking: &Looking<'_>, name: &PipelineName, pipeline: &PipelineFacts) -> Option<Seen> {
    let rules = looking.rules.of(name);
    let limit = rules.rate?;
    let died = in_window(pipeline, rules, looking.now);
    let verdict = match () {
        () if died.part >= rules.died_min && died.at_least() > limit => {
            Verdict::Fires(dying(name, rules, died, limit, &format!("alerts above {}", percent(limit))))
        }
        () if is_well(died, limit) => Verdict::Clear(well(rules, died)),
        () => Verdict::Unknown,
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
    let died = in_window(pipeline, rules, looking.now);
    let limit = usual.at_most() * times;
    let verdict = match () {
        () if usual.whole < USUAL_MIN => Verdict::Unknown,
        () if died.part >= rules.died_min && died.at_least() > limit => {
            let why = format!("usually {}, alerts above {times} times that", percent(usual.value()));
            Verdict::Fires(dying(name, rules, died, limit, &why))
        }
        () if is_well(died, limit) => Verdict::Clear(well(rules, died)),
        () => Verdict::Unknown,
    };
    Some(Seen { baseline: Some(usual), ..of_pipeline(Condition::Jump, name, None, verdict) })
}

fn dying(name: &PipelineName, rules: &Rules, died: Share, limit: f64, why: &str) -> Finding {
    let window = span(rules.window);
    let summary = format!(
        "{name}: {} of the tasks died in the last {window} ({} of {}; surely more than {}; {why})",
        percent(died.value()),
        died.part,
        died.whole,
        percent(died.at_least()),
    );
    let numbers = numbers([
        ("died", json!(died.part)),
        ("ended", json!(died.whole)),
        ("share", json!(died.value())),
        ("share_at_least", json!(died.at_least())),
        ("threshold", json!(limit)),
        ("died_min", json!(rules.died_min)),
        ("window_secs", json!(rules.window.as_secs())),
    ]);
    let look = format!("redrive cause list --pipeline {name}");
    Finding { level: died.value(), surely: died.at_least(), summary, look, numbers }
}

/// Whether the jobs of the window show that all is well: enough of them, or any if none died. A pipeline with few jobs would
/// otherwise have one incident for ever.
fn is_well(died: Share, limit: f64) -> bool {
    match died.part {
        0 => died.whole > 0,
        _ => died.whole >= ENDED_MIN && died.value() <= limit,
    }
}

fn well(rules: &Rules, died: Share) -> String {
    format!("{} of {} tasks died in the last {}", died.part, died.whole, span(rules.window))
}
