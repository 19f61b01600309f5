//! In which order dead letters are listed.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Which dead letters come first, by when they died.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LetterSort {
    /// Those that died last.
    #[default]
    Newest,
    /// Those that died first.
    Oldest,
}

impl LetterSort {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Newest, Self::Oldest];

    /// The name in addresses, requests and commands.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Newest => "newest",
            Self::Oldest => "oldest",
        }
    }
}

impl fmt::Display for LetterSort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for LetterSort {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.into_iter().find(|sort| sort.as_str() == text);
        found.ok_or_else(|| "expected newest or oldest".to_owned())
    }
}
