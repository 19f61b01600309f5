//! In which order causes are listed.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Which causes come first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CauseSort {
    /// Those with the most dead letters.
    #[default]
    Dead,
    /// Those of which somebody died last.
    Last,
    /// Those that were seen for the first time last.
    First,
}

impl CauseSort {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Dead, Self::Last, Self::First];

    /// The name in addresses, requests and commands.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Dead => "dead",
            Self::Last => "last",
            Self::First => "first",
        }
    }
}

impl fmt::Display for CauseSort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for CauseSort {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.into_iter().find(|sort| sort.as_str() == text);
        found.ok_or_else(|| "expected dead, last or first".to_owned())
    }
}
