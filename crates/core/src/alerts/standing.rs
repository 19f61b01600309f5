//! Where an alert stands, as people see it: it fires, nobody is told of it for a while, or it is over.

use std::fmt;
use std::str::FromStr;

use super::{Alert, AlertCare};
use crate::time::Timestamp;

/// Where an alert stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AlertStanding {
    /// It fires, and people are told.
    Firing,
    /// Nobody is told of it for a while, whether it fires or not.
    Snoozed,
    /// It is over.
    Ended,
}

impl AlertStanding {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Firing, Self::Snoozed, Self::Ended];

    /// Where an alert stands, by what people said about it.
    pub fn of(alert: &Alert, care: &AlertCare, now: Timestamp) -> Self {
        match (care.snoozed_at(now).is_some(), alert.is_firing()) {
            (true, _) => Self::Snoozed,
            (false, true) => Self::Firing,
            (false, false) => Self::Ended,
        }
    }

    /// The name in addresses, requests and commands.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Firing => "firing",
            Self::Snoozed => "snoozed",
            Self::Ended => "ended",
        }
    }
}

impl fmt::Display for AlertStanding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for AlertStanding {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|standing| standing.as_str() == text);
        found.ok_or_else(|| "expected firing, snoozed or ended".to_owned())
    }
}
