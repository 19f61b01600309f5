//! Work that waits: for a target, for a person, for a worker.

use serde_json::json;

use super::{FOREIGN_MAX, Looking, exactly, numbers, of_pipeline};
use crate::alerts::facts::{BreakerFacts, PipelineFacts, ReplayFacts};
use crate::alerts::text::{plain, span};
use crate::alerts::{AlertKey, Condition, Seen, Verdict};
use crate::ids::PipelineName;

/// A target has been failing for long, and jobs wait for it.
pub(super) fn breaker(looking: &Looking<'_>, breaker: &BreakerFacts) -> Option<Seen> {
    let name = &breaker.pipeline;
    let limit = looking.rules.of(name).breaker?;
    let open = looking.now.since(breaker.since);
    let verdict = match () {
        () if breaker.held == 0 => Verdict::Clear("no task waits for the target any more".to_owned()),
        () if open < limit => Verdict::Clear("the target worked again meanwhile".to_owned()),
        () => {
            let why = breaker.why.as_deref().map(|why| format!(" ({})", plain(why, FOREIGN_MAX))).unwrap_or_default();
            let summary = format!(
                "{name}: {} has been failing for {}{why}, {} tasks wait for it (alerts after {})",
                plain(&breaker.target, FOREIGN_MAX),
                span(open),
                breaker.held,
                span(limit),
            );
            let numbers = numbers([
                ("target", json!(plain(&breaker.target, FOREIGN_MAX))),
                ("open_secs", json!(open.as_secs())),
                ("held", json!(breaker.held)),
                ("threshold_secs", json!(limit.as_secs())),
            ]);
            exactly(open.as_secs_f64(), summary, format!("redrive breaker list --pipeline {name}"), numbers)
        }
    };
    Some(of_pipeline(Condition::Breaker, name, Some(&breaker.target), verdict))
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
