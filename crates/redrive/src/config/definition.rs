//! What a pipeline effectively is: its section of the file, what the caller said in its place, and the files it names.

use std::collections::BTreeMap;
use std::path::PathBuf;

use redrive_core::definitions::{Definition, define};
use redrive_core::ids::PipelineName;
use serde_json::{Map, Value, json};

use super::outside::Values;
use super::{Config, Overrides, PipelineConfig};
use crate::handler::submit_poll::codes::Codes;

impl PipelineConfig {
    /// The files whose contents decide outcomes: the schema, and a code table that is not a built-in one.
    pub(super) fn files(&self) -> Vec<PathBuf> {
        let codes = self.polling.codes.as_ref().filter(|name| Codes::built_in(name).is_none());
        self.schema.iter().cloned().chain(codes.map(PathBuf::from)).collect()
    }
}

/// The definition of a pipeline. `outside` is what its handler read.
pub(super) fn of(config: &Config, name: &PipelineName, said: &Overrides, outside: &Values) -> Definition {
    let pipeline = config.pipeline.get(name).cloned().unwrap_or_default();
    let mut section = section(config, name);
    let words: Vec<_> = said.command.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let replaced = [
        ("command", (!words.is_empty()).then(|| json!(words))),
        ("pure", (!words.is_empty()).then(|| json!(said.pure))),
        ("result", said.require_result.then(|| json!("required"))),
        ("mode", said.persistent.then(|| json!("persistent"))),
        ("timeout", said.timeout.map(|time| json!(time.as_millis().to_string()))),
        ("memory_max", said.memory_bytes_max.map(|bytes| json!(bytes))),
    ];
    section.extend(replaced.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))));
    let contents = pipeline.files().into_iter().filter_map(|path| {
        let path = path.display().to_string();
        let text = outside.get(&format!("file:{path}"))?.clone();
        Some((path, text))
    });
    define(&Value::Object(section), &contents.collect::<BTreeMap<_, _>>(), &pipeline.secrets())
}

/// A pipeline's section as it is written; empty for one that is not in the file.
pub(super) fn section(config: &Config, name: &PipelineName) -> Map<String, Value> {
    let file: toml::Table = toml::from_str(&config.text).unwrap_or_default();
    let section = file.get("pipeline").and_then(|pipelines| pipelines.get(name.as_str()));
    match section.and_then(|section| serde_json::to_value(section).ok()) {
        Some(Value::Object(section)) => section,
        _ => Map::new(),
    }
}
