//! What the store keeps: letters that will soon be too old, room on its disk.

use serde_json::json;

use super::{Looking, exactly, numbers, of_pipeline};
use crate::alerts::facts::PipelineFacts;
use crate::alerts::text::{size, span};
use crate::alerts::{AlertKey, Condition, Seen, Verdict};
use crate::ids::PipelineName;

/// More than the threshold must be free for it to be over: it would come and go otherwise.
const ROOM_AGAIN: f64 = 1.1;

/// Letters of unresolved causes will soon be discarded for their age.
pub(super) fn expiry(looking: &Looking<'_>, name: &PipelineName, pipeline: &PipelineFacts) -> Option<Seen> {
    let ahead = looking.rules.of(name).expiry?;
    let expiring = pipeline.expiring.filter(|expiring| expiring.letters > 0)?;
    let left = expiring.first.since(looking.now);
    let many = if expiring.more { "more than " } else { "" };
    let summary = format!(
        "{name}: {many}{} dead letters of unresolved causes are discarded for their age within {}, the first in {}",
        expiring.letters,
        span(ahead),
        span(left),
    );
    let numbers = numbers([
        ("letters", json!(expiring.letters)),
        ("first_at", json!(expiring.first)),
        ("threshold_secs", json!(ahead.as_secs())),
    ]);
    let look = format!("redrive cause list --pipeline {name}");
    let verdict = exactly(expiring.letters as f64, summary, look, numbers);
    Some(of_pipeline(Condition::Expiry, name, None, verdict))
}

/// A pipeline has as many dead letters as it may have. It is over when a tenth of them is gone: it would come and go otherwise.
pub(super) fn letters(name: &PipelineName, pipeline: &PipelineFacts) -> Option<Seen> {
    let (letters, max) = (pipeline.letters, pipeline.letters_max?);
    let verdict = match () {
        () if letters >= max => {
            let summary = format!(
                "{name}: {letters} dead letters, and at {max} (letters_max) nothing more is enqueued: replay or discard some"
            );
            let numbers = numbers([("letters", json!(letters)), ("threshold", json!(max))]);
            exactly(letters as f64, summary, format!("redrive cause list --pipeline {name}"), numbers)
        }
        () if letters as f64 * ROOM_AGAIN <= max as f64 => {
            Verdict::Clear(format!("{letters} dead letters, of at most {max}"))
        }
        () => Verdict::Unknown,
    };
    Some(of_pipeline(Condition::Letters, name, None, verdict))
}

/// The disk of the store is nearly full. Half as much room is twice as bad.
pub(super) fn disk(looking: &Looking<'_>) -> Option<Seen> {
    let (limit, free) = (looking.rules.all.disk?, looking.facts.free_bytes?);
    let key = AlertKey::new(Condition::Disk, None, None);
    let verdict = match () {
        () if free < limit => {
            let summary =
                format!("only {} are free on the disk of the store (alerts below {})", size(free), size(limit));
            let numbers = numbers([("free_bytes", json!(free)), ("threshold", json!(limit))]);
            exactly(1.0 / free.max(1) as f64, summary, "redrive doctor".to_owned(), numbers)
        }
        () if free as f64 >= limit as f64 * ROOM_AGAIN => {
            Verdict::Clear(format!("{} are free on the disk of the store", size(free)))
        }
        () => Verdict::Unknown,
    };
    Some(Seen { condition: Condition::Disk, pipeline: None, key, verdict, baseline: None })
}
