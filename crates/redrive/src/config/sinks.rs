//! The keys of sinks, who is told of alerts. They come from this file and from nowhere else, and their addresses are secrets:
//! nothing here prints them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use redrive_core::alerts::{RuleBook, Rules};
use redrive_core::secrets::Secrets;
use serde::Deserialize;

use super::units::Time;
use super::{PipelineConfig, Setting, expand};
use crate::alerts::Watching;
use crate::alerts::sinks::{PAGERDUTY, Sink, SinkDefinition, TIMEOUT};

/// The longest that a sink may take.
const TIMEOUT_MAX: Duration = Duration::from_secs(60);

/// Who is told, and how.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SinkConfig {
    /// What it is.
    pub kind: SinkKind,
    /// The address of a webhook.
    pub url: Option<Hidden>,
    /// Headers that are sent with it.
    pub headers: BTreeMap<String, Hidden>,
    /// The key of a service of PagerDuty.
    pub routing_key: Option<Hidden>,
    /// A command that reads the text.
    pub command: Vec<String>,
    /// Where it runs.
    pub folder: Option<PathBuf>,
    /// How long it may take.
    pub timeout: Option<Time>,
}

/// The kinds of sinks there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SinkKind {
    /// JSON to any address.
    #[default]
    Webhook,
    /// An incoming webhook of Slack.
    Slack,
    /// PagerDuty's Events API, version 2.
    PagerDuty,
    /// Any command.
    Command,
    /// The log.
    Log,
}

/// A text that is not printed.
#[derive(Clone, Deserialize)]
#[serde(transparent)]
pub struct Hidden(pub String);

impl fmt::Debug for Hidden {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

impl SinkConfig {
    /// Says what is wrong with values that each are valid.
    pub fn check(&self) -> Result<(), String> {
        use SinkKind::{Command, PagerDuty, Slack, Webhook};
        let needed = match self.kind {
            Webhook | Slack if self.url.is_none() => Some("url"),
            PagerDuty if self.routing_key.is_none() => Some("routing_key"),
            Command if self.command.first().is_none_or(String::is_empty) => Some("command"),
            _ => None,
        };
        if let Some(key) = needed {
            return Err(format!("it needs a {key}"));
        }
        let is_web = matches!(self.kind, Webhook | Slack | PagerDuty);
        let idle = [
            ("url", self.url.is_some() && !is_web),
            ("headers", !self.headers.is_empty() && !is_web),
            ("routing_key", self.routing_key.is_some() && self.kind != PagerDuty),
            ("command", !self.command.is_empty() && self.kind != Command),
            ("folder", self.folder.is_some() && self.kind != Command),
        ];
        if let Some((key, _)) = idle.iter().find(|(_, idle)| *idle) {
            return Err(format!("a sink of this kind has no {key}"));
        }
        match self.timeout {
            Some(Time(timeout)) if timeout > TIMEOUT_MAX || timeout < Duration::from_millis(100) => {
                Err(format!("timeout must be between 100ms and {TIMEOUT_MAX:?}"))
            }
            _ => Ok(()),
        }
    }

    /// The sink they make. Where a value from outside is missing, it is one that fails and says so.
    fn sink(&self, name: &str) -> Sink {
        let mut secrets = Secrets::default();
        match self.definition(&mut secrets) {
            Ok(definition) => Sink::hiding(name, definition, self.timeout.map_or(TIMEOUT, |time| time.0), secrets),
            Err(why) => Sink::unusable(name, self.kind.as_str(), why),
        }
    }

    /// What it is made of. `secrets` gets the values that come from outside the file.
    fn definition(&self, secrets: &mut Secrets) -> Result<SinkDefinition, String> {
        let url = self.url.as_ref().map_or(PAGERDUTY, |url| &url.0);
        let url = expand(url, secrets)?;
        let header = |(name, value): (&String, &Hidden)| Ok((name.clone(), expand(&value.0, secrets)?));
        let headers = self.headers.iter().map(header).collect::<Result<_, String>>()?;
        Ok(match self.kind {
            SinkKind::Webhook => SinkDefinition::Webhook { url, headers },
            SinkKind::Slack => SinkDefinition::Slack { url, headers },
            SinkKind::PagerDuty => {
                let routing_key = self.routing_key.as_ref().map_or("", |key| &key.0);
                SinkDefinition::PagerDuty { url, routing_key: expand(routing_key, secrets)?, headers }
            }
            SinkKind::Command => SinkDefinition::Command { command: self.command.clone(), folder: self.folder.clone() },
            SinkKind::Log => SinkDefinition::Log,
        })
    }
}

impl SinkKind {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Webhook => "webhook",
            Self::Slack => "slack",
            Self::PagerDuty => "pagerduty",
            Self::Command => "command",
            Self::Log => "log",
        }
    }
}

impl Setting {
    /// What is watched, and who is told; the defaults, and nobody, if the file says nothing about alerts.
    pub fn watching(&self) -> Watching {
        let config = self.config.alerts.clone().unwrap_or_default();
        // A file with an address that is none was refused.
        let dashboard = config.dashboard().ok().flatten();
        let sinks = config.sink.iter().map(|(name, sink)| sink.sink(name).linking_to(dashboard.clone())).collect();
        let policies =
            self.config.pipeline.iter().map(|(name, pipeline)| (name.clone(), PipelineConfig::policy(pipeline)));
        let watching = Watching::new(config.rule_book(), sinks).with_policies(policies.collect());
        let watching = match &self.config.path {
            Some(path) => watching.of_file(path),
            None => watching,
        };
        // Where there is no file, or one that says nothing, it is not known what other files say.
        let says_nothing = self.config.alerts.is_none() && self.config.pipeline.is_empty();
        if says_nothing { watching.looking_on() } else { watching }
    }

    /// What workers watch: nothing, if the file says nothing about alerts.
    pub fn watched_by_workers(&self) -> Option<Watching> {
        self.config.alerts.is_some().then(|| self.watching())
    }

    /// What a server watches: if the file says nothing about alerts, only pipelines that programs report and no file defines, by the
    /// defaults.
    pub fn watched_by_server(&self) -> Watching {
        self.watched_by_workers().unwrap_or_else(|| {
            let all = Rules { replay: false, disk: None, ..Rules::default() };
            // Files are known by digits: none is known by this.
            let (judged, file) = (Some(BTreeSet::new()), "server".to_owned());
            self.watching().with_rules(RuleBook { all, judged, file, ..RuleBook::default() })
        })
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::config::Config;

    #[test]
    fn addresses_are_not_printed() {
        let text = "[alerts.sink.a]\nkind = \"slack\"\nurl = \"https://hooks.example/s3cr3t\"\n";
        let config = Config::parse(text, Path::new("redrive.toml")).expect("valid");
        assert!(!format!("{:?}", config.alerts).contains("s3cr3t"));
        let setting = Setting::of(config, Some("memory:")).expect("valid");
        assert!(!format!("{:?}", setting.watching()).contains("s3cr3t"));
    }

    #[test]
    fn a_sink_whose_variable_is_missing_is_one_that_fails() {
        let text = "[alerts.sink.a]\nkind = \"slack\"\nurl = \"${env:REDRIVE_NO_SUCH_VARIABLE}\"\n\
                    [alerts.sink.b]\nkind = \"command\"\ncommand = [\"/no/such/command\"]\n\
                    [alerts.sink.c]\nkind = \"webhook\"\nurl = \"ftp://x/s3cr3t-path\"\n\
                    [alerts.sink.d]\nkind = \"log\"\n";
        let config = Config::parse(text, Path::new("redrive.toml")).expect("valid");
        let watching = Setting::of(config, Some("memory:")).expect("valid").watching();
        let broken: Vec<_> = watching.sinks().iter().map(|sink| sink.broken().unwrap_or("well").to_owned()).collect();
        assert!(broken[0].contains("REDRIVE_NO_SUCH_VARIABLE") && broken[1].contains("/no/such/command"), "{broken:?}");
        assert!(broken[2].contains("http or https") && !broken[2].contains("s3cr3t"), "{broken:?}");
        assert_eq!(broken[3], "well");
    }
}
