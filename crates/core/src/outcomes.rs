//! Outcomes: what programs that run their jobs themselves count of them, so that the rates of the letters they report have their
//! denominators. These are counts, not jobs: no ledger has them.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::ids::PipelineName;
use crate::time::Timestamp;
use crate::traffic::TRACKED_BYTES_MAX;

/// The longest target, proxy or name of a field, in bytes.
const TEXT_BYTES_MAX: usize = 255;

/// The most fields of one count.
const FIELDS_MAX: usize = 100;

/// The most that is believed of one count.
const COUNT_MAX: u64 = 1_000_000_000;

const HOUR: Duration = Duration::from_secs(3_600);

/// How far the clock of another machine may be ahead.
const AHEAD_MAX: Duration = Duration::from_secs(2 * 3_600);

/// How old what is counted may be: it waits in the spools of clients for days at most.
const AGE_MAX: Duration = Duration::from_secs(30 * 86_400);

/// Attempts of one pipeline, target and proxy in one hour.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OutcomeCount {
    /// The pipeline.
    pub pipeline: PipelineName,
    /// What was asked.
    #[serde(default)]
    pub target: Option<String>,
    /// The label of the proxy.
    #[serde(default)]
    pub proxy: Option<String>,
    /// A time within the hour; now if it is left out. The beginning of an hour stands for all of it.
    #[serde(default)]
    pub hour: Option<Timestamp>,
    /// Jobs that are done.
    #[serde(default)]
    pub done: u64,
    /// Attempts that failed and were made again. What died is reported as a letter, which counts by itself.
    #[serde(default)]
    pub failed: u64,
    /// Fields of the records that were made, and how often each was found.
    #[serde(default)]
    pub fields: BTreeMap<String, FieldCount>,
    /// By which version of the rules they were looked for.
    #[serde(default)]
    pub version: Option<String>,
    /// Fields of the input that all jobs of this count have in common, with their values.
    #[serde(default)]
    pub tracked: BTreeMap<String, String>,
}

/// How often a field was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FieldCount {
    /// In so many records.
    #[serde(default)]
    pub found: u64,
    /// And not in so many.
    #[serde(default)]
    pub missing: u64,
}

/// What is wrong with a count.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field} {why}")]
pub struct WrongCount {
    /// The field.
    pub field: &'static str,
    /// What is wrong with it.
    pub why: String,
}

impl OutcomeCount {
    /// The time at which it is counted: that it says, or the end of its hour if it says only that, and never a later one than now.
    pub fn at(&self, now: Timestamp) -> Timestamp {
        let all_of = |hour: Timestamp| match hour.as_millis().rem_euclid(HOUR.as_millis() as i64) {
            0 => hour + HOUR - Duration::from_millis(1),
            _ => hour,
        };
        self.hour.map_or(now, all_of).min(now)
    }

    /// Checks it at the door.
    pub fn check(&self, now: Timestamp) -> Result<(), WrongCount> {
        let wrong = |field, why: String| Err(WrongCount { field, why });
        let names = self.fields.keys().map(|name| ("fields", name)).chain(self.tracked.keys().map(|n| ("tracked", n)));
        let texts = [("target", &self.target), ("proxy", &self.proxy), ("version", &self.version)];
        let texts = texts.into_iter().filter_map(|(field, text)| Some((field, text.as_ref()?)));
        if let Some((field, _)) = texts.chain(names).find(|(_, text)| text.len() > TEXT_BYTES_MAX) {
            return wrong(field, format!("has a text of more than {TEXT_BYTES_MAX} bytes"));
        }
        if self.tracked.values().any(|value| value.len() > TRACKED_BYTES_MAX) {
            return wrong("tracked", format!("has a value of more than {TRACKED_BYTES_MAX} bytes"));
        }
        for (field, count) in [("fields", self.fields.len()), ("tracked", self.tracked.len())] {
            if count > FIELDS_MAX {
                return wrong(field, format!("has {count} fields: at most {FIELDS_MAX}"));
            }
        }
        let fields = self.fields.values().flat_map(|count| [("fields", count.found), ("fields", count.missing)]);
        let counts = [("done", self.done), ("failed", self.failed)].into_iter().chain(fields);
        if let Some((field, count)) = counts.into_iter().find(|(_, count)| *count > COUNT_MAX) {
            return wrong(field, format!("is {count}: at most {COUNT_MAX} is believed"));
        }
        match self.hour.unwrap_or(now) {
            at if at.since(now) > AHEAD_MAX => wrong("hour", format!("is {at}, which is in the future")),
            at if now.since(at) > AGE_MAX => wrong("hour", format!("is {at}, which is too long ago")),
            _ => Ok(()),
        }
    }
}

/// What was counted before this time is no longer known to be: it would be too old to be counted again.
pub fn forget_before(now: Timestamp) -> Timestamp {
    now - AGE_MAX - AHEAD_MAX
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn count(fields: Value) -> OutcomeCount {
        let mut value = json!({"pipeline": "shop", "done": 3});
        value.as_object_mut().expect("an object").extend(fields.as_object().expect("an object").clone());
        serde_json::from_value(value).expect("a count")
    }

    #[test]
    fn what_comes_late_is_counted_at_its_own_time() {
        let now = "2026-11-16T05:20:00Z";
        for (hour, expected) in [
            (json!(null), now),
            (json!("2026-11-16T05:00:00Z"), now),
            (json!("2026-11-16T06:00:00Z"), now),
            (json!("2026-11-16T04:00:00Z"), "2026-11-16T04:59:59.999Z"),
            (json!("2026-11-15T23:07:11Z"), "2026-11-15T23:07:11Z"),
        ] {
            let [now, expected] = [now, expected].map(|text| text.parse::<Timestamp>().expect("a time"));
            assert_eq!(count(json!({"hour": hour})).at(now), expected, "{hour}");
        }
    }

    #[test]
    fn what_cannot_be_believed_is_refused_with_its_field() {
        let now: Timestamp = "2026-11-16T05:00:00Z".parse().expect("a time");
        assert_eq!(count(json!({"hour": "2026-11-15T23:00:00Z", "target": "a.example"})).check(now), Ok(()));
        let long = "x".repeat(TEXT_BYTES_MAX + 1);
        let many: BTreeMap<_, _> = (0..=FIELDS_MAX).map(|n| (n.to_string(), json!({"found": 1}))).collect();
        for (field, value) in [
            ("target", json!(long)),
            ("proxy", json!(long)),
            ("version", json!(long)),
            ("done", json!(COUNT_MAX + 1)),
            ("failed", json!(u64::MAX)),
            ("fields", json!({&long: {"found": 1}})),
            ("fields", json!({"price": {"missing": u64::MAX}})),
            ("fields", json!(many)),
            ("tracked", json!({"sitekey": "x".repeat(TRACKED_BYTES_MAX + 1)})),
            ("hour", json!("2026-11-16T08:00:00Z")),
            ("hour", json!("2026-09-01T00:00:00Z")),
        ] {
            let found = count(json!({field: value})).check(now).expect_err(field);
            assert_eq!(found.field, field, "{found}");
        }
    }
}
