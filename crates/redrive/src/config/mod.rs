//! `redrive.toml`: pipelines, their handlers and their policies.
//!
//! - `setting`: the configuration with what the caller said: which store, which vault, which pipelines
//! - `pipeline`: one pipeline's keys; `http` and `request`: those of one that fetches; `replay`: when letters are replayed by
//!   themselves; `secrets`: values from outside; `units`: times and sizes
//! - `follow`: reading it again when it changed; `definition`: what a pipeline effectively is, and its version
//! - `outside`: what it takes from the environment and from files; `isolation`: handlers in another process
//! - `kept` and `ran`: commands that were given on a command line, and who may run them again
//! - `vault`: where payloads are kept, and how that is reached
//! - `elsewhere`: pipelines whose jobs others lease, and how their letters are read
//! - `alerts`: thresholds; `sinks`: who is told
//! - `explain`: what a pipeline effectively is, with where each value came from
//! - `token_file`: what is sent to a server whose store has no tokens
//! - `template`: a commented file to begin with; `error`: mistakes, with their place and the nearest right key; `values`: which values
//!   of a broken file may be shown

mod alerts;
mod definition;
mod elsewhere;
mod error;
mod explain;
mod follow;
mod http;
pub mod isolation;
mod kept;
mod outside;
mod pipeline;
mod places;
mod ran;
mod replay;
mod request;
mod secrets;
mod setting;
mod sinks;
mod template;
mod token_file;
pub mod units;
mod values;
mod vault;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use redrive_core::ids::PipelineName;
use redrive_core::secrets::Secrets;
use serde::Deserialize;

pub use self::alerts::{AlertsConfig, RulesConfig};
pub use self::error::{ConfigError, Mistake, meant, nearest};
pub use self::explain::{Explained, From};
pub use self::follow::Followed;
pub use self::http::{CHALLENGES, read_codes};
pub use self::kept::KeptFor;
pub use self::pipeline::{HandlerKind, ModeKind, PipelineConfig, ResultKind};
pub use self::ran::RanCommands;
use self::secrets::expand;
pub use self::setting::{DEFAULT_STORE, Overrides, Setting, with_vault};
pub use self::sinks::{SinkConfig, SinkKind};
pub use self::template::TEMPLATE;
pub use self::token_file::{TokenFile, TokenFileError};
pub use self::vault::VaultSection;

/// The name of the file that is looked for.
pub const FILE_NAME: &str = "redrive.toml";

/// The whole file.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Where the jobs are kept.
    pub store: Option<String>,
    /// Where payloads are kept.
    pub vault: Option<VaultSection>,
    /// The most that waits in the spool while the vault is away.
    pub spool_max: Option<units::Size>,
    /// What is watched, and who is told.
    pub alerts: Option<AlertsConfig>,
    /// The pipelines, by name.
    #[serde(default)]
    pub pipeline: BTreeMap<PipelineName, PipelineConfig>,
    /// Where the file was found.
    #[serde(skip)]
    pub path: Option<PathBuf>,
    /// What was in it.
    #[serde(skip)]
    pub text: String,
}

impl Config {
    /// Reads the file that was named, or the one in the current folder; without either, everything has its default.
    pub fn load(named: Option<&Path>) -> Result<Self, ConfigError> {
        let path = match named {
            Some(path) => path,
            None if Path::new(FILE_NAME).exists() => Path::new(FILE_NAME),
            None => return Ok(Self::default()),
        };
        let unreadable = |source| ConfigError::Unreadable { file: path.to_owned(), source };
        Self::parse(&std::fs::read_to_string(path).map_err(unreadable)?, path)
    }

    /// Returns a path that the file names: one that is relative begins in the file's folder.
    pub fn beside(&self, path: PathBuf) -> PathBuf {
        match self.path.as_ref().and_then(|file| file.parent()) {
            Some(folder) => folder.join(path),
            None => path,
        }
    }

    /// Reads a text; the path is what errors name.
    pub fn parse(text: &str, path: &Path) -> Result<Self, ConfigError> {
        let config: Self = toml::from_str(text).map_err(|error| Mistake::find(&error, text, path))?;
        for (name, pipeline) in &config.pipeline {
            let wrong =
                |why: String| ConfigError::Section { file: path.to_owned(), pipeline: name.clone(), why: masked(&why) };
            pipeline.check().map_err(wrong)?;
            if let Some(unknown) = pipeline.hand_on.iter().find(|other| !config.pipeline.contains_key(*other)) {
                return Err(wrong(format!("hand_on names pipeline {unknown}, which is not in this file")));
            }
        }
        if let Some(Err(why)) = config.alerts.as_ref().map(AlertsConfig::check) {
            return Err(ConfigError::Alerts { file: path.to_owned(), why: masked(&why) });
        }
        Ok(Self { path: Some(path.to_owned()), text: text.to_owned(), ..config })
    }
}

/// What is wrong with values that do not go together, without what looks secret in them.
fn masked(why: &str) -> String {
    Secrets::default().mask(why)
}

#[cfg(test)]
mod tests {
    use super::*;
    use redrive_core::failures::{Disposition, FailureReport, Reason};
    use redrive_core::rules::classify;

    fn mistake(text: &str) -> String {
        Config::parse(text, Path::new("redrive.toml")).expect_err("a mistake").to_string()
    }

    #[test]
    fn the_template_is_valid_and_what_it_shows_are_the_defaults() {
        Config::parse(template::TEMPLATE, Path::new("redrive.toml")).expect("valid");
        let uncommented: String =
            template::TEMPLATE.lines().map(|line| line.strip_prefix("#: ").unwrap_or(line).to_owned() + "\n").collect();
        assert_ne!(uncommented, template::TEMPLATE);
        let config = Config::parse(&uncommented, Path::new("redrive.toml")).expect("valid");
        let policy = config.pipeline.values().next().expect("a pipeline").policy();
        let defaults = redrive_core::policy::Policy::default();
        assert_eq!(policy.retry, defaults.retry);
        assert_eq!(policy.breaker, defaults.breaker);
        assert_eq!((policy.lease, policy.deadline), (defaults.lease, defaults.deadline));
        assert_eq!((policy.retention, policy.crashes_max), (defaults.retention, defaults.crashes_max));
    }

    #[test]
    fn a_wrong_key_is_named_with_its_line_and_the_nearest_right_one() {
        let error = mistake("[pipeline.catalog]\nhandler = \"exec\"\ncommand = [\"x\"]\nconcurency = 3\n");
        assert!(error.contains("redrive.toml:4"), "{error}");
        assert!(error.contains("`concurency`") && error.contains("did you mean `concurrency`?"), "{error}");
        let error = mistake("[pipeline.a.retry]\natempts = 3\n");
        assert!(error.contains("redrive.toml:2") && error.contains("did you mean `attempts`?"), "{error}");
        let error = mistake("[pipelines.a]\n");
        assert!(error.contains("did you mean `pipeline`?"), "{error}");
    }

    #[test]
    fn a_mistake_has_its_place_apart_from_its_words() {
        let error = Config::parse("[pipeline.a]\ncommand = [\"x\"]\n  tmeout = \"5s\"\n", Path::new("a.toml"));
        let Err(ConfigError::Mistake(mistake)) = error else { panic!("a mistake") };
        assert_eq!((mistake.file.as_path(), mistake.line, mistake.column), (Path::new("a.toml"), 3, 3));
        assert_eq!(mistake.meant.as_deref(), Some("timeout"));
    }

    #[test]
    fn a_rule_that_takes_a_failure_for_a_result_needs_no_reason() {
        let text = "[pipeline.a]\ncommand = [\"x\"]\n[[pipeline.a.rule]]\nstatus = [404]\ndisposition = \"done\"\n";
        let config = Config::parse(text, Path::new("redrive.toml")).expect("read");
        let policy = config.pipeline.values().next().expect("a pipeline").policy();
        let report = FailureReport { http_status: Some(404), ..FailureReport::default() };
        let verdict = classify(&policy.rules, &report);
        assert_eq!((verdict.reason, verdict.disposition), (Reason::NotFound, Disposition::Done));
    }

    #[test]
    fn wrong_values_are_named() {
        let cases = [
            ("[pipeline.a]\ncommand = [\"x\"]\ntimeout = \"soon\"\n", "redrive.toml:3"),
            ("[pipeline.a]\ncommand = [\"x\"]\ntimeout = 5\n", "redrive.toml:3"),
            ("[pipeline.a]\ncommand = [\"x\"]\nmemory_max = \"lots\"\n", "redrive.toml:3"),
            ("[pipeline.\"a b\"]\ncommand = [\"x\"]\n", "pipeline name"),
            ("[pipeline.a]\nhandler = \"magic\"\n", "magic"),
            ("[pipeline.a]\n", "pipeline a: it has no command"),
            ("[pipeline.a]\ncommand = []\n", "pipeline a: it has no command"),
            ("[pipeline.a]\ncommand = [\"x\"]\n[[pipeline.a.rule]]\nreason = \"blocked\"\n", "matches nothing"),
            ("[pipeline.a]\ncommand = [\"x\"]\n[[pipeline.a.rule]]\nstatus = [403]\nreason = \"cross\"\n", "cross"),
            (
                "[pipeline.a]\ncommand = [\"x\"]\n[[pipeline.a.rule]]\nstatus = [404]\nreason = \"not_found\"\nresult = 1\n",
                "a result, but its disposition is not done",
            ),
            (
                "[pipeline.a]\ncommand = [\"x\"]\n[[pipeline.a.rule]]\nstatus = [404]\ndisposition = \"discard\"\n",
                "one of its rules has no reason",
            ),
            ("[pipeline.a]\ncommand = [\"x\"]\nconcurrency = 0\n", "concurrency"),
            ("[pipeline.a]\ncommand = [\"x\"]\nhttp.per_target = 0\n", "http.per_target must be at least 1"),
            ("[pipeline.a]\ncommand = [\"x\"]\nlease = \"0s\"\n", "lease must be at least"),
            ("nonsense", "redrive.toml:1"),
        ];
        for (text, expected) in cases {
            let error = mistake(text);
            assert!(error.contains(expected), "{text}\n{error}");
        }
    }
}
