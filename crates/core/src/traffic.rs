//! What is counted about attempts besides how they ended, so that every rate has its denominator.

use serde::{Deserialize, Serialize};

/// What a handler noted about an attempt.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Facts {
    /// The label of the proxy that was used.
    pub proxy: Option<String>,
    /// Which fields of the record were found.
    pub coverage: Option<Coverage>,
    /// Fields of the input that the pipeline keeps count of, with their values. A job is counted by them once, when it first comes to
    /// its end.
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
