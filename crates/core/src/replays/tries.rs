//! Tries: what was found out about letters without settling anything, and for how long that is to be believed.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::definitions::DefinitionVersion;
use crate::failures::Reason;
use crate::ids::PipelineName;
use crate::secrets::Secrets;
use crate::time::Timestamp;

/// How long a try is kept.
pub const TRY_KEPT: Duration = Duration::from_secs(24 * 3_600);

/// How often who runs a try says that they still do.
pub const TRY_BEAT: Duration = Duration::from_secs(5);

/// After how much silence nobody is taken to run it any more.
const TRY_SILENCE: Duration = Duration::from_secs(30);

/// Whether nobody runs a try any more, by when they last said that they do; of who says nothing it is not known.
pub fn is_abandoned(seen_at: Option<Timestamp>, now: Timestamp) -> bool {
    seen_at.is_some_and(|seen_at| now.since(seen_at) > TRY_SILENCE)
}

/// The versions of definitions that letters were tried with; nothing for a pipeline whose definition has none.
pub type TriedWith = BTreeMap<PipelineName, Option<DefinitionVersion>>;

/// Jobs that a letter would hand on, of which an example is kept: at most so many.
pub const SAMPLES_MAX: usize = 5;

/// What is known of a letter that was tried, besides whether it would recover.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TriedDetails {
    /// Whether it could not be found out: it needs the network, for example.
    #[serde(skip_serializing_if = "is_false")]
    pub unknown: bool,
    /// Why it would fail.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
    /// The code it would fail with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// What it would say, without what varies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// How many jobs it would hand on.
    #[serde(skip_serializing_if = "is_none")]
    pub follow: u64,
    /// Some of those, as they would be: at most [`SAMPLES_MAX`].
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub enqueue: Vec<Value>,
    /// Its record, as an example of what comes of those that would recover; see [`record_of`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub record: Option<Value>,
}

const fn is_false(flag: &bool) -> bool {
    !*flag
}

const fn is_none(count: &u64) -> bool {
    *count == 0
}

impl TriedDetails {
    /// Of a letter that would hand on jobs: how many are said to be more than are told of, and some of them.
    pub fn following(follow: Option<u64>, mut enqueue: Vec<Value>) -> Self {
        let told = enqueue.len() as u64;
        enqueue.truncate(SAMPLES_MAX);
        Self { follow: follow.unwrap_or(told).max(told), enqueue, ..Self::default() }
    }

    /// Whether there is nothing to be kept.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Fields of a record that are kept as an example, values of a list, and characters of a text.
const RECORD_FIELDS_MAX: usize = 40;
const RECORD_LIST_MAX: usize = 10;
const RECORD_CHARS_MAX: usize = 300;

/// How deep a record is kept.
const RECORD_DEPTH_MAX: usize = 3;

/// What is kept of a result as an example: what a person looks at, without secrets, and no more than a few kilobytes of it. Nothing of
/// one that says nothing.
pub fn record_of(mut result: Value, secrets: &Secrets) -> Option<Value> {
    if result.is_null() || result.as_object().is_some_and(serde_json::Map::is_empty) {
        return None;
    }
    // Before it is cut: half a secret would not be known as one.
    secrets.mask_json(&mut result);
    Some(shortened(&result, RECORD_DEPTH_MAX))
}

fn shortened(value: &Value, depth: usize) -> Value {
    match value {
        Value::String(text) => {
            let mut kept: String = text.chars().take(RECORD_CHARS_MAX).collect();
            if kept.len() < text.len() {
                kept.push('…');
            }
            kept.into()
        }
        Value::Array(_) | Value::Object(_) if depth == 0 => "…".into(),
        Value::Array(all) => all.iter().take(RECORD_LIST_MAX).map(|one| shortened(one, depth - 1)).collect(),
        Value::Object(all) => {
            let fields = all.iter().take(RECORD_FIELDS_MAX);
            fields.map(|(name, one)| (cut_name(name), shortened(one, depth - 1))).collect()
        }
        plain => plain.clone(),
    }
}

fn cut_name(name: &str) -> String {
    name.chars().take(RECORD_CHARS_MAX).collect()
}

/// Why a try is no longer to be believed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TryOutdated {
    /// It is too old.
    TooOld,
    /// This pipeline is defined otherwise by now.
    Redefined(PipelineName),
}

/// Says why a try is no longer to be believed, if it is not: its age, or a pipeline that is defined otherwise now.
pub fn outdated(
    tried_at: Timestamp,
    tried_with: &TriedWith,
    defined: &TriedWith,
    now: Timestamp,
) -> Option<TryOutdated> {
    if now.since(tried_at) > TRY_KEPT {
        return Some(TryOutdated::TooOld);
    }
    let differs =
        |(name, version): &(&PipelineName, &Option<DefinitionVersion>)| tried_with.get(*name) != Some(*version);
    defined.iter().find(differs).map(|(name, _)| TryOutdated::Redefined(name.clone()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(version: &str) -> TriedWith {
        let name: PipelineName = "shop".parse().expect("a name");
        BTreeMap::from([(name, Some(DefinitionVersion::new(version)))])
    }

    #[test]
    fn who_is_silent_for_long_runs_a_try_no_more() {
        let at = |secs: i64| Timestamp::from_millis(secs * 1_000);
        assert!(!is_abandoned(Some(at(100)), at(110)) && !is_abandoned(None, at(1_000)));
        assert!(is_abandoned(Some(at(100)), at(131)));
        assert!(!is_abandoned(Some(at(100)), at(50)), "a clock that was ahead says nothing");
    }

    #[test]
    fn of_what_would_be_handed_on_there_is_a_count_and_some_examples() {
        let jobs = |count: u64| (0..count).map(|n| serde_json::json!({ "n": n })).collect::<Vec<_>>();
        let many = TriedDetails::following(None, jobs(7));
        assert_eq!((many.follow, many.enqueue.len()), (7, SAMPLES_MAX));
        let told = TriedDetails::following(Some(40), jobs(2));
        assert_eq!((told.follow, told.enqueue.len()), (40, 2));
        assert!(TriedDetails::following(Some(0), Vec::new()).is_empty() && !told.is_empty());
        let text = serde_json::to_string(&told).expect("written");
        assert_eq!(serde_json::from_str::<TriedDetails>(&text).ok(), Some(told));
    }

    #[test]
    fn of_a_record_no_more_is_kept_than_a_person_looks_at() {
        use serde_json::json;
        let record_of = |result: &Value| record_of(result.clone(), &Secrets::default());
        assert_eq!((record_of(&Value::Null), record_of(&json!({}))), (None, None));
        let plain = json!({"title": "Cork board", "price": 89.95, "tags": ["a", "b"]});
        assert_eq!(record_of(&plain), Some(plain));
        let long =
            json!({ "text": "é".repeat(9_000), "list": vec![1; 5_000], "deep": { "a": { "b": { "c": [[1]] } } } });
        let kept = record_of(&long).expect("a record");
        assert_eq!(kept["text"].as_str().map(|text| text.chars().count()), Some(RECORD_CHARS_MAX + 1));
        assert_eq!(kept["list"].as_array().map(Vec::len), Some(RECORD_LIST_MAX));
        assert_eq!(kept["deep"]["a"]["b"], "…");
        let wide: Value = (0..1_000).map(|n| (n.to_string(), json!(n))).collect();
        assert_eq!(
            record_of(&wide).and_then(|kept| kept.as_object().map(serde_json::Map::len)),
            Some(RECORD_FIELDS_MAX)
        );
        let mut secrets = Secrets::default();
        secrets.add_value("hunter2-hunter2");
        let told = super::record_of(json!({ "text": format!("{}hunter2-hunter2", "x".repeat(290)) }), &secrets);
        assert!(!told.expect("a record").to_string().contains("hunter2"), "nor a half of it");
    }

    #[test]
    fn a_try_is_believed_for_a_day_and_for_what_it_was_tried_with() {
        let then = Timestamp::from_millis(1_700_000_000_000);
        let day = Duration::from_secs(86_400);
        assert_eq!(outdated(then, &with("a"), &with("a"), then + day), None);
        let late = then + day + Duration::from_millis(1);
        assert_eq!(outdated(then, &with("a"), &with("a"), late), Some(TryOutdated::TooOld));
        let shop: PipelineName = "shop".parse().expect("a name");
        let redefined = Some(TryOutdated::Redefined(shop));
        assert_eq!(outdated(then, &with("a"), &with("b"), then), redefined);
        assert_eq!(outdated(then, &TriedWith::new(), &with("b"), then), redefined, "it was not tried at all");
        assert_eq!(outdated(then, &with("a"), &TriedWith::new(), then), None, "none of its letters is asked for");
    }
}
