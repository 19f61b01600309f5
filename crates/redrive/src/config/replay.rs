//! The keys of when dead letters are replayed by themselves: `auto_replay = "1h"` for all that may be, or a line per reason.

use std::collections::BTreeMap;

use redrive_core::failures::Reason;
use redrive_core::replays::AutoReplay;
use serde::Deserialize;
use serde::de::{self, Deserializer};

use super::units::{Time, duration};

/// `auto_replay`.
#[derive(Clone, Debug, Default)]
pub struct AutoReplayConfig(Vec<AutoReplay>);

impl AutoReplayConfig {
    /// The policies they make.
    pub fn policies(&self) -> Vec<AutoReplay> {
        self.0.clone()
    }
}

/// How often, or in full.
#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "expected a time such as \"1h\", or { every = \"1h\", delay = \"10m\", times = 2, letters = 1000 }"
)]
enum Schedule {
    Every(String),
    Full(Full),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Full {
    /// How often.
    every: Time,
    /// How long a letter must have been dead.
    delay: Option<Time>,
    /// How often a letter may be replayed so.
    times: Option<u32>,
    /// How many letters at once.
    letters: Option<u32>,
}

impl Schedule {
    fn policy(self, reason: Option<Reason>) -> Result<AutoReplay, String> {
        let policy = match self {
            Self::Every(text) => AutoReplay { reason, ..AutoReplay::every(duration(&text)?) },
            Self::Full(full) => {
                let defaults = AutoReplay::every(full.every.0);
                AutoReplay {
                    reason,
                    delay: full.delay.map_or(defaults.delay, |time| time.0),
                    times_max: full.times.unwrap_or(defaults.times_max),
                    letters_max: full.letters.unwrap_or(defaults.letters_max),
                    ..defaults
                }
            }
        };
        if policy.every < std::time::Duration::from_secs(1) {
            return Err("auto_replay: `every` must be at least 1s".to_owned());
        }
        Ok(policy)
    }
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a time such as \"1h\", or a table of reasons such as { timeout = \"10m\" }")]
enum Written {
    All(String),
    ByReason(BTreeMap<String, Schedule>),
}

impl<'de> Deserialize<'de> for AutoReplayConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let policies = match Written::deserialize(deserializer)? {
            Written::All(text) => Schedule::Every(text).policy(None).map(|policy| vec![policy]),
            Written::ByReason(reasons) => reasons
                .into_iter()
                .map(|(reason, schedule)| {
                    let reason = reason.parse::<Reason>().map_err(|error| error.to_string())?;
                    schedule.policy(Some(reason))
                })
                .collect(),
        };
        policies.map(Self).map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn read(text: &str) -> Result<Vec<AutoReplay>, String> {
        #[derive(Deserialize)]
        struct File {
            auto_replay: AutoReplayConfig,
        }
        toml::from_str::<File>(text).map(|file| file.auto_replay.0).map_err(|error| error.to_string())
    }

    #[test]
    fn one_line_or_one_per_reason() {
        let hour = Duration::from_secs(3_600);
        assert_eq!(read("auto_replay = \"1h\""), Ok(vec![AutoReplay::every(hour)]));
        let by_reason = read(
            "[auto_replay]\ntimeout = \"1h\"\nno_capacity = { every = \"30m\", delay = \"5m\", times = 1, letters = 10 }",
        )
        .expect("valid");
        assert_eq!(by_reason[1], AutoReplay { reason: Some(Reason::Timeout), ..AutoReplay::every(hour) });
        assert_eq!((by_reason[0].reason, by_reason[0].times_max), (Some(Reason::NoCapacity), 1));
        assert_eq!(by_reason[0].delay, Duration::from_secs(300));
    }

    #[test]
    fn mistakes_are_named() {
        for (text, expected) in [
            ("auto_replay = \"soon\"", "not a time"),
            ("auto_replay = \"1ms\"", "at least 1s"),
            ("[auto_replay]\ncross = \"1h\"", "not a reason"),
            ("auto_replay = 5", "expected a time"),
        ] {
            let error = read(text).expect_err(text);
            assert!(error.contains(expected), "{text}\n{error}");
        }
    }
}
