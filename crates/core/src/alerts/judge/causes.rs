//! A cause that is new, came back or escalates.

use serde_json::json;

use super::{FOREIGN_MAX, Looking, exactly, numbers};
use crate::alerts::facts::CauseFacts;
use crate::alerts::text::{percent, plain};
use crate::alerts::{AlertKey, Condition, Seen, Share, Verdict};
use crate::causes::CauseState;

/// Many die of it, and many of those that die. Once it fires it goes on until nobody dies of it, or somebody says that it is over.
pub(super) fn cause(looking: &Looking<'_>, cause: &CauseFacts) -> Option<Seen> {
    let rules = looking.rules.of(&cause.pipeline);
    let limit = rules.cause_letters?;
    let key = AlertKey::new(Condition::Cause, None, Some(cause.id.as_str()));
    let share = Share::new(cause.letters, cause.died.max(cause.letters)).value();
    let is_many = cause.letters >= limit.max(1) && share >= rules.cause_share;
    let is_news = matches!(cause.state, CauseState::New | CauseState::Regressed | CauseState::Escalating);
    let verdict = match cause.state {
        CauseState::Muted => Verdict::Clear("it was muted".to_owned()),
        CauseState::Resolved => Verdict::Clear("it was resolved".to_owned()),
        _ if cause.letters == 0 => Verdict::Clear("no task died of it in this hour and the one before".to_owned()),
        _ if is_many && (is_news || looking.firing(&key).is_some()) => fires(cause, share, limit, rules.cause_share),
        _ => Verdict::Unknown,
    };
    Some(Seen { condition: Condition::Cause, pipeline: Some(cause.pipeline.clone()), key, verdict, baseline: None })
}

fn fires(cause: &CauseFacts, share: f64, limit: u64, share_min: f64) -> Verdict {
    let (name, id, letters) = (&cause.pipeline, &cause.id, cause.letters);
    let summary = format!(
        "{name}: {letters} tasks, {} of those that died in this hour and the one before, died of cause {id} ({}): {} \
         (alerts from {limit} and {})",
        percent(share),
        cause.state,
        plain(&cause.title, FOREIGN_MAX),
        percent(share_min),
    );
    let numbers = numbers([
        ("cause", json!(id)),
        ("state", json!(cause.state)),
        ("letters", json!(letters)),
        ("share", json!(share)),
        ("threshold", json!(limit)),
        ("share_threshold", json!(share_min)),
    ]);
    exactly(letters as f64, summary, format!("redrive cause show {id}"), numbers)
}
