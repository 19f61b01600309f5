//! A field that is found less often than before.

use serde_json::json;

use super::{FOREIGN_MAX, Looking, numbers, of_pipeline};
use crate::alerts::facts::FieldFacts;
use crate::alerts::text::{percent, plain};
use crate::alerts::{AlertKey, Condition, Finding, Seen, Share, Verdict};

/// Records that must have been made lately for anything to be said.
const RECENT_MIN: u64 = 20;

/// Records that must have been made before for anything to be usual.
const EARLIER_MIN: u64 = 50;

/// The share of records with a field fell. While it fires it is compared with what was usual before it did.
pub(super) fn coverage(looking: &Looking<'_>, field: &FieldFacts) -> Option<Seen> {
    let drop = looking.rules.of(&field.pipeline).coverage?;
    let key = AlertKey::new(Condition::Coverage, Some(&field.pipeline), Some(&field.field));
    let before = looking.firing(&key).and_then(|alert| alert.baseline);
    let earlier = before.unwrap_or(field.earlier);
    let limit = earlier.value() - drop;
    let recent = field.recent;
    let verdict = match () {
        () if earlier.whole < EARLIER_MIN || recent.whole < RECENT_MIN => Verdict::Unknown,
        () if recent.at_most() < limit => Verdict::Fires(missing(field, earlier, drop)),
        () if recent.value() >= limit => {
            let (found, all) = (recent.part, recent.whole);
            Verdict::Clear(format!("{found} of {all} records of this hour and the one before have it"))
        }
        () => Verdict::Unknown,
    };
    Some(Seen {
        baseline: Some(earlier),
        ..of_pipeline(Condition::Coverage, &field.pipeline, Some(&field.field), verdict)
    })
}

fn missing(field: &FieldFacts, earlier: Share, drop: f64) -> Finding {
    let (name, recent) = (&field.pipeline, field.recent);
    let lacking = Share::new(recent.whole.saturating_sub(recent.part), recent.whole);
    let summary = format!(
        "{name}: field {} is in {} of the records of this hour and the one before ({} of {}), usually in {} (alerts \
         when it falls by {})",
        plain(&field.field, FOREIGN_MAX),
        percent(recent.value()),
        recent.part,
        recent.whole,
        percent(earlier.value()),
        percent(drop),
    );
    let numbers = numbers([
        ("field", json!(plain(&field.field, FOREIGN_MAX))),
        ("found", json!(recent.part)),
        ("records", json!(recent.whole)),
        ("share", json!(recent.value())),
        ("usual_share", json!(earlier.value())),
        ("threshold", json!(drop)),
    ]);
    let look = format!("redrive report --pipeline {name}");
    Finding { level: lacking.value(), surely: lacking.at_least(), summary, look, numbers }
}
