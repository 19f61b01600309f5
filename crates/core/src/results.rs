//! Results: what is written of each, when one is empty, and how long the store keeps them.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::dead::foreign::mask_task;
use crate::hidden::escape_json;
use crate::ids::{JobId, PipelineName, RoundName};
use crate::jobs::Input;
use crate::secrets::Secrets;

/// The result of a job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JobResult {
    /// The job.
    pub id: JobId,
    /// Its pipeline.
    pub pipeline: PipelineName,
    /// The round it belongs to, if there are rounds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub round: Option<RoundName>,
    /// Its key, if it has one.
    pub key: Option<String>,
    /// What it was about.
    pub input: Input,
    /// What its handler gave.
    pub result: Value,
    /// Lines that it printed before its result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log: Option<String>,
}

/// The most that is kept of what a job printed before its result, in bytes: the end of it.
const LOG_BYTES_MAX: usize = 16 * 1024;

/// Returns the end of what a job printed before its result, as much as is kept.
pub fn log_end(mut log: String) -> String {
    let mut begin = log.len().saturating_sub(LOG_BYTES_MAX);
    while !log.is_char_boundary(begin) {
        begin += 1;
    }
    log.split_off(begin)
}

/// What is written of a result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ResultForm {
    /// All of it: whose it is, what that was about, and what came of it.
    #[default]
    Whole,
    /// Only what came of it; nothing if nothing did.
    Bare,
}

impl JobResult {
    /// Returns whether nothing came of the job.
    pub fn is_empty(&self) -> bool {
        is_empty(&self.result)
    }

    /// Returns what is written of it, as JSON on one line without its end. Returns nothing for one that is bare and empty.
    pub fn line(&self, form: ResultForm) -> serde_json::Result<Option<String>> {
        let text = match form {
            ResultForm::Whole => serde_json::to_string(self)?,
            ResultForm::Bare if self.is_empty() => return Ok(None),
            ResultForm::Bare => serde_json::to_string(&self.result)?,
        };
        Ok(Some(escape_json(&text).into_owned()))
    }

    /// Makes what is nested too deep to be read again the text of its JSON.
    pub fn shallow(mut self) -> Self {
        if depth(&self.result) > DEPTH_MAX {
            self.result = Value::String(self.result.to_string());
        }
        for (_, value) in self.input.iter_mut().filter(|(_, value)| depth(value) > DEPTH_MAX) {
            *value = Value::String(value.to_string());
        }
        self
    }

    /// Masks secrets in the input and in the result. What the job is known by stays.
    pub fn masked(mut self, secrets: &Secrets) -> Self {
        mask_task(&mut self.input, secrets, &[]);
        match &mut self.result {
            Value::Object(fields) => drop(mask_task(fields, secrets, &[])),
            result => secrets.mask_json(result),
        }
        self.log = self.log.map(|log| secrets.mask(&log));
        self
    }
}

/// The deepest nesting that is kept as it is. JSON is read to a depth of 127, and a kept result is a part of a line.
const DEPTH_MAX: usize = 100;

fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or_default(),
        Value::Object(fields) => 1 + fields.values().map(depth).max().unwrap_or_default(),
        _ => 0,
    }
}

/// How the store keeps the results of a pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResultPolicy {
    /// Keeps them or not. `None` keeps what goes to no file.
    pub is_kept: Option<bool>,
    /// How long. `None` means for ever.
    pub kept_for: Option<Duration>,
    /// The most that it keeps, in bytes as stored. The oldest are removed first.
    pub bytes_max: u64,
}

impl ResultPolicy {
    /// Decides whether the store keeps a result. `file` is the form in which it is appended to a file, if it is. Unless it is said
    /// otherwise, the store keeps what no file has: the whole of a result without a file, and what was printed before a bare one.
    pub fn keeps(&self, result: &JobResult, file: Option<ResultForm>) -> bool {
        let is_in_file = match file {
            None => false,
            Some(ResultForm::Whole) => true,
            Some(ResultForm::Bare) => result.log.is_none(),
        };
        (!result.is_empty() || result.log.is_some()) && self.is_kept.unwrap_or(!is_in_file)
    }
}

impl Default for ResultPolicy {
    fn default() -> Self {
        Self { is_kept: None, kept_for: Some(Duration::from_secs(7 * 86_400)), bytes_max: 1 << 30 }
    }
}

/// Whether a result says nothing: null, or text, a list or an object with nothing in it.
pub fn is_empty(result: &Value) -> bool {
    match result {
        Value::Null => true,
        Value::String(text) => text.trim().is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn results_of_any_depth_can_be_read_again() {
        for depth in [1, 100, 101, 126, 127] {
            let text = "[".repeat(depth) + &"]".repeat(depth);
            let result = JobResult {
                id: JobId::from_bytes([7; 16]),
                pipeline: "p".parse().expect("a name"),
                round: None,
                key: None,
                input: Input::from_iter([("n".to_owned(), serde_json::from_str(&text).expect("JSON"))]),
                result: serde_json::from_str(&text).expect("JSON"),
                log: None,
            };
            let line = result.shallow().line(ResultForm::Whole).expect("JSON").expect("a line");
            let read: JobResult = serde_json::from_str(&line).expect("it can be read");
            let json = serde_json::to_string(&read.result).expect("JSON");
            assert!(read.result == text || json == text, "{depth}");
        }
    }

    #[test]
    fn what_no_file_has_is_kept_unless_it_is_said_otherwise() {
        let result = |result: Value, log: Option<&str>| JobResult {
            id: JobId::from_bytes([7; 16]),
            pipeline: "p".parse().expect("a name"),
            round: None,
            key: None,
            input: Input::default(),
            result,
            log: log.map(str::to_owned),
        };
        let keeps =
            |is_kept, result: &JobResult, file| ResultPolicy { is_kept, ..Default::default() }.keeps(result, file);
        let (plain, logged) = (result(json!(1), None), result(json!(1), Some("loading")));
        let (whole, bare) = (Some(ResultForm::Whole), Some(ResultForm::Bare));
        assert!(keeps(None, &plain, None) && !keeps(None, &plain, whole) && !keeps(None, &plain, bare));
        assert!(keeps(None, &logged, None) && !keeps(None, &logged, whole) && keeps(None, &logged, bare));
        assert!(keeps(Some(true), &plain, whole) && !keeps(Some(false), &logged, bare));
        assert!(!keeps(Some(true), &result(json!(null), None), None), "there is nothing to keep");
        assert!(keeps(None, &result(json!(null), Some("loading")), bare));
    }

    #[test]
    fn nothing_is_told_from_something() {
        for nothing in [json!(null), json!(""), json!(" \n"), json!([]), json!({})] {
            assert!(is_empty(&nothing), "{nothing}");
        }
        for something in [json!(0), json!(false), json!("x"), json!([null]), json!({"a": null})] {
            assert!(!is_empty(&something), "{something}");
        }
    }
}
