//! Who did something, and by which way.

use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Who asked for an operation: a person, or Redrive by itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Actor {
    /// Who.
    pub name: String,
    /// By which way.
    pub via: Via,
}

/// The way by which an operation was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Via {
    /// The command line.
    Cli,
    /// A program that embeds the engine, or calls the API.
    Api,
    /// A page of the dashboard.
    Web,
    /// Nobody asked: a policy did.
    Automatic,
}

impl Via {
    /// As it is kept and shown.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Cli => "cli",
            Self::Api => "api",
            Self::Web => "web",
            Self::Automatic => "automatic",
        }
    }
}

impl FromStr for Via {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let all = [Self::Cli, Self::Api, Self::Web, Self::Automatic];
        all.into_iter().find(|via| via.as_str() == text).ok_or_else(|| format!("{text:?} is no way to ask"))
    }
}

impl Actor {
    /// Somebody, by a way.
    pub fn new(name: impl Into<String>, via: Via) -> Self {
        Self { name: name.into(), via }
    }

    /// Whether the record has it: everything that people do, and of what Redrive does by itself what somebody asks about who was not
    /// there. What programs do all the time is not written down.
    pub fn is_recorded(&self, verb: &str, object: &str) -> bool {
        let kind = object.split(' ').next().unwrap_or_default();
        let is_asked_about =
            matches!((verb, kind), ("start" | "pause", "replay") | ("resolve", "cause") | ("resume", "pipeline"));
        self.via != Via::Automatic || is_asked_about
    }

    /// Redrive itself.
    pub fn redrive() -> Self {
        Self::new("redrive", Via::Automatic)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_what_redrive_does_by_itself_the_record_has_what_somebody_asks_about() {
        let (ada, itself) = (Actor::new("ada", Via::Web), Actor::redrive());
        for (verb, object, is) in [
            ("start", "replay 0190", true),
            ("pause", "replay 0190", true),
            ("resolve", "cause ab", true),
            ("resume", "pipeline shop", true),
            ("pin", "replay 0190", false),
            ("import", "letters", false),
            ("discard", "letters", false),
            ("sweep", "payloads", false),
        ] {
            assert!(ada.is_recorded(verb, object));
            assert_eq!(itself.is_recorded(verb, object), is, "{verb} {object}");
        }
    }
}
