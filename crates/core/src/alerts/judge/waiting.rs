//! Work that waits: for a target, for a person, for a worker.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::json;

use super::{FOREIGN_MAX, Looking, exactly, numbers, of_pipeline};
use crate::alerts::facts::{BreakerFacts, PipelineFacts, ReplayFacts, UntakenReplay};
use crate::alerts::text::{plain, span};
use crate::alerts::{AlertKey, Condition, Seen, Verdict};
use crate::ids::PipelineName;

/// Time that letters of a replay wait for a worker before an alert fires, unless that of queued jobs is shorter.
const UNTAKEN_FOR: Duration = Duration::from_secs(5 * 60);

/// Targets that are named.
const NAMED: usize = 3;

/// Targets have been failing for long, and jobs wait for them. It is one alert however many they are: it is told again when twice as
/// many fail, or for twice as long.
pub(super) fn breakers(looking: &Looking<'_>, name: &PipelineName, breakers: &[&BreakerFacts]) -> Option<Seen> {
    let limit = looking.rules.of(name).breaker?;
    let mut waited_for: Vec<_> = breakers
        .iter()
        .map(|breaker| (*breaker, looking.now.since(breaker.since)))
        .filter(|(breaker, open)| breaker.held > 0 && *open >= limit)
        .collect();
    waited_for.sort_by(|(a, _), (b, _)| b.held.cmp(&a.held).then_with(|| a.target.cmp(&b.target)));
    let fired_at = looking.firing(&AlertKey::new(Condition::Breaker, Some(name), None)).map(|alert| alert.since);
    let are_others = |fired_at| waited_for.iter().all(|(breaker, _)| breaker.since > fired_at);
    let verdict = match waited_for.as_slice() {
        [] => Verdict::Clear("no task has been waiting for a failing target for so long".to_owned()),
        // What fails now is told by itself: else nobody would hear of it before it took twice as long.
        _ if fired_at.is_some_and(are_others) => Verdict::Clear("the targets that it was about work again".to_owned()),
        waited_for => failing(name, waited_for, limit),
    };
    Some(of_pipeline(Condition::Breaker, name, None, verdict))
}

fn failing(name: &PipelineName, waited_for: &[(&BreakerFacts, Duration)], limit: Duration) -> Verdict {
    let longest = waited_for.iter().map(|(_, open)| *open).max().unwrap_or_default();
    let held: u64 = waited_for.iter().map(|(breaker, _)| breaker.held).sum();
    let target = |breaker: &BreakerFacts| {
        let why = breaker.why.as_deref().map(|why| format!(" ({})", plain(why, FOREIGN_MAX))).unwrap_or_default();
        (plain(&breaker.target, FOREIGN_MAX), why)
    };
    let first = || waited_for.iter().take(NAMED).map(|(breaker, _)| target(breaker));
    let (since, limit_text) = (span(longest), span(limit));
    let summary = match waited_for {
        [(breaker, _)] => {
            let (target, why) = target(breaker);
            format!(
                "{name}: {target} has been failing for {since}{why}, {held} tasks wait for it (alerts after {limit_text})"
            )
        }
        all => {
            // What is the same of all is said once.
            let whys: BTreeSet<_> = all.iter().map(|(breaker, _)| target(breaker).1).collect();
            let (of_each, of_all) = match whys.first() {
                Some(why) if whys.len() == 1 => (false, why.as_str()),
                _ => (true, ""),
            };
            let named = first().map(|(target, why)| if of_each { target + &why } else { target });
            let named = named.collect::<Vec<_>>().join(", ");
            let more = match all.len().saturating_sub(NAMED) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            format!(
                "{name}: {} targets have been failing for up to {since}, {held} tasks wait for them (alerts after {limit_text}): {named}{more}{of_all}",
                all.len(),
            )
        }
    };
    let numbers = numbers([
        ("targets", json!(waited_for.len())),
        ("first_targets", first().map(|(target, _)| target).collect()),
        ("open_secs", json!(longest.as_secs())),
        ("held", json!(held)),
        ("threshold_secs", json!(limit.as_secs())),
    ]);
    let level = longest.as_secs_f64() * waited_for.len() as f64;
    exactly(level, summary, format!("redrive breaker list --pipeline {name}"), numbers)
}

/// A replay paused itself, and nobody has said how to go on.
pub(super) fn replay(looking: &Looking<'_>, replay: &ReplayFacts) -> Option<Seen> {
    if !looking.rules.all.replay {
        return None;
    }
    let id = replay.id.to_string();
    let (name, why) = (plain(&replay.name, FOREIGN_MAX), plain(&replay.why, FOREIGN_MAX));
    let summary = format!("replay {id} ({name}) paused itself: {why}");
    let numbers = numbers([("replay", json!(id)), ("failed", json!(replay.failed))]);
    let verdict = exactly(1.0, summary, format!("redrive replay show {id}"), numbers);
    let key = AlertKey::new(Condition::Replay, None, Some(&id));
    Some(Seen { condition: Condition::Replay, pipeline: None, key, verdict, baseline: None })
}

/// Jobs are due and none comes to its end: nobody works, or nobody gets anywhere. A pipeline whose attempts take long has at least
/// twice the time that one may take.
pub(super) fn stalled(looking: &Looking<'_>, name: &PipelineName, pipeline: &PipelineFacts) -> Option<Seen> {
    let limit = looking.rules.of(name).stalled?.max(pipeline.deadline * 2);
    let since = pipeline.due_since.map(|due| pipeline.ended_at.map_or(due, |ended| ended.max(due)));
    let verdict = match since.map(|since| looking.now.since(since)) {
        None => Verdict::Clear("no task is due".to_owned()),
        Some(stands) if stands < limit => Verdict::Clear("tasks come to their end again".to_owned()),
        Some(stands) => {
            let summary = format!(
                "{name}: {} tasks are queued and none has come to its end for {} (alerts after {})",
                pipeline.queued,
                span(stands),
                span(limit),
            );
            let numbers = numbers([
                ("queued", json!(pipeline.queued)),
                ("standing_secs", json!(stands.as_secs())),
                ("threshold_secs", json!(limit.as_secs())),
            ]);
            exactly(stands.as_secs_f64(), summary, "redrive status".to_owned(), numbers)
        }
    };
    Some(of_pipeline(Condition::Stalled, name, None, verdict))
}

/// No worker takes letters of a replay.
pub(super) fn untaken(looking: &Looking<'_>, replay: &UntakenReplay) -> Option<Seen> {
    let mut names = replay.pipelines.iter();
    let pipeline = names.next().filter(|_| names.next().is_none());
    let rules = pipeline.map_or(&looking.rules.all, |name| looking.rules.of(name));
    let limit = rules.stalled?.min(UNTAKEN_FOR);
    let stands = looking.now.since(replay.since);
    let id = replay.id.to_string();
    let verdict = if stands < limit {
        Verdict::Clear("letters of the replay were taken again".to_owned())
    } else {
        let names = replay.pipelines.iter().take(NAMED).map(PipelineName::as_str).collect::<Vec<_>>().join(", ");
        let summary = format!(
            "replay {id} ({}): no worker takes letters of {names}, {} letters have waited for {} (alerts after {})",
            plain(&replay.name, FOREIGN_MAX),
            replay.left,
            span(stands),
            span(limit),
        );
        let numbers = numbers([
            ("replay", json!(id)),
            ("letters", json!(replay.left)),
            ("standing_secs", json!(stands.as_secs())),
            ("threshold_secs", json!(limit.as_secs())),
        ]);
        exactly(stands.as_secs_f64(), summary, format!("redrive replay show {id}"), numbers)
    };
    let key = AlertKey::new(Condition::Stalled, None, Some(&id));
    Some(Seen { condition: Condition::Stalled, pipeline: pipeline.cloned(), key, verdict, baseline: None })
}
