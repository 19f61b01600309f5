//! What is counted about attempts besides how they ended, so that every rate has its denominator.

use serde::{Deserialize, Serialize};

/// What a handler noted about an attempt.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Facts {
    /// The label of the proxy that was used.
    pub proxy: Option<String>,
    /// Which fields of the record were found.
    pub coverage: Option<Coverage>,
    /// Fields of the input that the pipeline keeps count of, with their values.
    pub tracked: Vec<(String, String)>,
}

/// Which fields of a record were found by which version of the rules.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Coverage {
    /// The version of the rules: the beginning of their hash.
    pub version: String,
    /// The fields that were looked for, and whether they were found.
    pub fields: Vec<(String, bool)>,
}

/// Under which values of the tracked fields a job is counted as failed already, when it comes to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Counted {
    /// Under none: it has not died before, or not here.
    Nowhere,
    /// Under these.
    Under(Vec<(String, String)>),
    /// It has died before that was kept: under those that it has now.
    AsNow,
}

/// The change that a job's end makes to the counts of one value of a tracked field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrackedChange<'a> {
    /// The field.
    pub field: &'a str,
    /// Its value.
    pub value: &'a str,
    /// To the jobs that succeeded.
    pub ok: i64,
    /// To the jobs that died.
    pub failed: i64,
}

/// What a job's end changes: it is taken out where it was counted as failed and counted where it belongs now. A replay may have
/// changed the values in between.
pub fn track<'a>(now: &'a [(String, String)], before: &'a Counted, done: bool) -> Vec<TrackedChange<'a>> {
    let counted = match before {
        Counted::Nowhere => &[][..],
        Counted::Under(values) => values,
        Counted::AsNow => now,
    };
    let change =
        |ok: i64, failed: i64| move |(field, value): &'a (String, String)| TrackedChange { field, value, ok, failed };
    let taken_out = counted.iter().map(change(0, -1));
    let counted_now = now.iter().map(change(i64::from(done), i64::from(!done)));
    taken_out.chain(counted_now).collect()
}

/// The longest value of a tracked field that is counted by itself, in bytes.
pub const TRACKED_BYTES_MAX: usize = 200;

/// The value of a tracked field as it is counted.
pub fn tracked_value(value: &serde_json::Value) -> String {
    let mut text = match value {
        serde_json::Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    while text.len() > TRACKED_BYTES_MAX {
        text.pop();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sums(changes: &[TrackedChange<'_>], value: &str) -> (i64, i64) {
        let of = changes.iter().filter(|change| change.value == value);
        of.fold((0, 0), |(ok, failed), change| (ok + change.ok, failed + change.failed))
    }

    #[test]
    fn a_job_is_taken_out_where_it_was_counted() {
        let values = |value: &str| vec![("sitekey".to_owned(), value.to_owned())];
        let (old, new) = (values("old"), values("new"));
        assert_eq!(sums(&track(&new, &Counted::Nowhere, true), "new"), (1, 0));
        let moved = Counted::Under(old);
        assert_eq!(sums(&track(&new, &moved, true), "old"), (0, -1));
        assert_eq!(sums(&track(&new, &moved, true), "new"), (1, 0));
        assert_eq!(sums(&track(&new, &moved, false), "old"), (0, -1));
        assert_eq!(sums(&track(&new, &moved, false), "new"), (0, 1));
        assert_eq!(sums(&track(&new, &Counted::AsNow, true), "new"), (1, -1));
        assert_eq!(sums(&track(&new, &Counted::AsNow, false), "new"), (0, 0));
    }
}
