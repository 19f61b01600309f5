//! What a pipeline effectively is, value by value, each with where it came from: a line of the file, a definition that the store
//! kept, or nobody, so that it is the default. Secrets are not shown, whoever asks.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use redrive_core::definitions::{DefinitionVersion, shown};
use redrive_core::ids::PipelineName;
use redrive_core::policy::Policy;
use redrive_core::time::Timestamp;
use redrive_store::contract::DefinitionView;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use toml::de::{DeTable, DeValue};

use super::definition::section;
use super::{Config, HandlerKind, PipelineConfig, Setting};
use crate::engine::Redrive;
use crate::error::Error;
use crate::pipeline::PAYLOAD_BYTES_MAX;

/// A value of a pipeline.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Explained {
    /// Its key, with those of the tables around it.
    pub key: String,
    /// The value, secrets masked.
    pub value: Value,
    /// Where it came from.
    pub from: From,
}

/// Where a value came from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum From {
    /// The configuration.
    File {
        /// The file.
        file: PathBuf,
        /// The line, from 1.
        line: usize,
    },
    /// What somebody ran: the store kept it.
    Store {
        /// The version of the definition.
        version: DefinitionVersion,
        /// When it was last run.
        last_seen: Timestamp,
    },
    /// Nobody said anything else.
    Default,
}

impl Redrive {
    /// What a pipeline effectively is, as far as the configuration or the store knows. Nothing if neither does: how it is run is then
    /// decided by the programs that report it, and the defaults of Redrive say nothing about it.
    pub async fn explain_pipeline(&self, setting: &Setting, name: &PipelineName) -> Result<Vec<Explained>, Error> {
        if let Some(pipeline) = setting.config.pipeline.get(name) {
            return Ok(of_file(&setting.config, name, pipeline));
        }
        let kept = self.store.list_definitions(Some(name.clone())).await?;
        let newest = kept.iter().max_by_key(|definition| definition.last_seen);
        let Some(newest) = newest else { return Ok(Vec::new()) };
        let mut values = of_store(newest);
        add_defaults(&mut values, &PipelineConfig::default());
        Ok(values)
    }
}

fn of_file(config: &Config, name: &PipelineName, pipeline: &PipelineConfig) -> Vec<Explained> {
    let section = shown(&Value::Object(section(config, name)), &pipeline.secrets());
    let file = DeTable::parse(&config.text).ok();
    let place = |path: &[String]| {
        let within = ["pipeline", name.as_str()].into_iter().chain(path.iter().map(String::as_str));
        let at = file.as_ref().and_then(|file| offset(file.get_ref(), within)).unwrap_or_default();
        let line = config.text.get(..at).unwrap_or_default().matches('\n').count() + 1;
        From::File { file: config.path.clone().unwrap_or_default(), line }
    };
    let mut values = Vec::new();
    flatten(&mut Vec::new(), &section, &mut |path, value| {
        values.push(Explained { key: key(path), value: value.clone(), from: place(path) });
    });
    add_defaults(&mut values, pipeline);
    values
}

fn of_store(definition: &DefinitionView) -> Vec<Explained> {
    let text: Value = serde_json::from_str(&definition.text).unwrap_or_default();
    let from = From::Store { version: definition.version.clone(), last_seen: definition.last_seen };
    let mut values = Vec::new();
    flatten(&mut Vec::new(), &text["pipeline"], &mut |path, value| {
        values.push(Explained { key: key(path), value: value.clone(), from: from.clone() });
    });
    values
}

/// A key as it would be written: `retry.attempts`, `rule[0].status`.
fn key(path: &[String]) -> String {
    let mut key = String::new();
    for name in path {
        match name.parse::<usize>() {
            Ok(place) => key += &format!("[{place}]"),
            Err(_) if key.is_empty() => key += name,
            Err(_) => key += &format!(".{name}"),
        }
    }
    key
}

/// Hands over each value that is not a table, nor a list of tables.
fn flatten(path: &mut Vec<String>, value: &Value, take: &mut impl FnMut(&[String], &Value)) {
    let mut into = |name: String, inside: &Value| {
        path.push(name);
        flatten(path, inside, take);
        path.pop();
    };
    match value {
        Value::Object(fields) => fields.iter().for_each(|(name, inside)| into(name.clone(), inside)),
        Value::Array(items) if items.iter().any(Value::is_object) => {
            items.iter().enumerate().for_each(|(place, inside)| into(place.to_string(), inside));
        }
        value => take(path, value),
    }
}

/// Where in the text a key is.
fn offset<'p>(table: &DeTable<'_>, mut path: impl Iterator<Item = &'p str>) -> Option<usize> {
    let name = path.next()?;
    let (key, value) = table.iter().find(|(key, _)| key.get_ref() == name)?;
    let (mut at, mut value) = (key.span().start, value.get_ref());
    for name in path {
        value = match value {
            DeValue::Table(table) => {
                let (key, inside) = table.iter().find(|(key, _)| key.get_ref() == name)?;
                at = key.span().start;
                inside.get_ref()
            }
            DeValue::Array(items) => {
                let inside = items.get(name.parse::<usize>().ok()?)?;
                at = inside.span().start;
                inside.get_ref()
            }
            _ => return Some(at),
        };
    }
    Some(at)
}

/// Adds what nobody said, as far as it has a value all the same.
fn add_defaults(values: &mut Vec<Explained>, pipeline: &PipelineConfig) {
    let said: BTreeSet<_> = values.iter().map(|value| value.key.clone()).collect();
    let missing = defaults(pipeline).into_iter().filter(|(key, _)| !said.contains(*key));
    values.extend(missing.map(|(key, value)| Explained { key: key.to_owned(), value, from: From::Default }));
}

fn defaults(pipeline: &PipelineConfig) -> Vec<(&'static str, Value)> {
    let Policy { retry, breaker, retention, history, results, crashes_max, lease, deadline, .. } = pipeline.policy();
    let handler = match pipeline.handler {
        HandlerKind::Exec => "exec",
        HandlerKind::Http => "http",
        HandlerKind::SubmitPoll => "submit-poll",
        HandlerKind::Remote => "remote",
    };
    let kept = |time: Option<Duration>| time.map_or_else(|| json!("forever"), written);
    let mut values = vec![
        ("handler", json!(handler)),
        ("concurrency", json!(pipeline.at_once())),
        ("timeout", written(deadline)),
        ("lease", written(lease)),
        ("crashes", json!(crashes_max)),
        ("retention", kept(retention)),
        ("history", kept(history)),
        ("keep_results", if pipeline.out.is_some() { json!("off") } else { kept(results.kept_for) }),
        ("kept_results_max", json!(results.bytes_max)),
        ("input_max", json!(pipeline.input_bytes_max())),
        ("payload", json!("failed")),
        ("payload_max", json!(PAYLOAD_BYTES_MAX)),
        ("good_pages", json!(true)),
        ("retry.attempts", json!(retry.attempts_max)),
        ("retry.attempts_total", json!(retry.attempts_total_max)),
        ("retry.base", written(retry.base)),
        ("retry.cap", written(retry.cap)),
        ("breaker.window", written(breaker.window)),
        ("breaker.attempts_min", json!(breaker.attempts_min)),
        ("breaker.failure_share", json!(breaker.failure_share)),
        ("breaker.blocked", json!(breaker.blocked_max)),
        ("breaker.cool_down", written(breaker.cool_down)),
        ("breaker.probes", json!(breaker.probes)),
        ("breaker.hold_max", kept(breaker.hold_max)),
        ("breaker.on_recovery", json!(if breaker.replays_on_recovery { "replay" } else { "none" })),
    ];
    if pipeline.handler == HandlerKind::Exec {
        values.push(("mode", json!("process")));
    }
    values.extend(pipeline.per_target().map(|requests| ("http.per_target", json!(requests))));
    values
}

/// A time as it would be written, in its largest whole unit.
fn written(time: Duration) -> Value {
    let millis = time.as_millis();
    let units = [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000)];
    let whole = units.into_iter().find(|(_, unit)| millis > 0 && millis.is_multiple_of(*unit));
    json!(whole.map_or_else(|| format!("{millis}ms"), |(name, unit)| format!("{}{name}", millis / unit)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn pipelines_that_send_requests_run_sixteen_jobs_and_four_requests_to_a_target() {
        let default = |text: &str, key: &str| {
            let config = Config::parse(&format!("[pipeline.p]\n{text}"), Path::new("redrive.toml")).expect("valid");
            let name = "p".parse().expect("a name");
            let values = of_file(&config, &name, &config.pipeline[&name]);
            values.into_iter().find(|value| value.key == key).map(|value| value.value)
        };
        let request = "[pipeline.p.request]\nurl = \"{url}\"\n";
        let http = format!("handler = \"http\"\n{request}");
        assert_eq!(default(&http, "concurrency"), Some(json!(16)));
        assert_eq!(default(&http, "http.per_target"), Some(json!(4)));
        let said = format!("handler = \"http\"\nconcurrency = 3\nhttp.per_target = 9\n{request}");
        assert_eq!(default(&said, "concurrency"), Some(json!(3)));
        assert_eq!(default(&said, "http.per_target"), Some(json!(9)));
        let exec = "command = [\"true\"]\n";
        assert_eq!(default(exec, "concurrency"), Some(json!(crate::pipeline::cores())));
        assert_eq!(default(exec, "http.per_target"), None);
    }

    #[test]
    fn every_value_says_where_it_came_from_and_secrets_are_not_shown() {
        let text = "store = \"sqlite:x.db\"\n\n[pipeline.p]\ncommand = [\"sh\", \"x.sh\"]\nenv = { API_KEY = \"s3cret-of-mine\", KEY = \"${KEY}\" }\n\n[pipeline.p.retry]\nattempts = 2\n[[pipeline.p.rule]]\nstatus = [403]\nreason = \"blocked\"\n";
        let config = Config::parse(text, Path::new("redrive.toml")).expect("valid");
        let name = "p".parse().expect("a name");
        let values = of_file(&config, &name, &config.pipeline[&name]);
        let of =
            |key: &str| values.iter().find(|value| value.key == key).unwrap_or_else(|| panic!("{key} in {values:?}"));
        let line = |key: &str| match &of(key).from {
            From::File { line, .. } => *line,
            _ => 0,
        };
        assert_eq!((line("command"), line("retry.attempts"), line("rule[0].status")), (4, 8, 10));
        assert_eq!((&of("retry.attempts").value, &of("retry.base").from), (&json!(2), &From::Default));
        assert_eq!((of("timeout").value.as_str(), of("retention").value.as_str()), (Some("5m"), Some("14d")));
        assert!(!format!("{values:?}").contains("s3cret-of-mine"), "{values:?}");
        let keys: BTreeSet<_> = values.iter().map(|value| &value.key).collect();
        assert_eq!(keys.len(), values.len(), "each once");
    }
}
