//! What somebody saw before they changed it: a change that was meant for something else is not made.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Characters of a version.
const CHARS: usize = 12;

/// A mark of what people change of a thing: another one as soon as somebody changed it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Version(String);

crate::text_schema!(Version, { "type": "string" });

impl Version {
    /// The version of what is to be seen.
    pub fn of(seen: &impl Serialize) -> Self {
        // What cannot be written has one version: it is never changed.
        let text = serde_json::to_string(seen).unwrap_or_default();
        Self(blake3::hash(text.as_bytes()).to_hex()[..CHARS].to_owned())
    }

    /// Whether what is there is what was seen; if nobody says what they saw, it is.
    pub fn is_seen(seen: Option<&Self>, there: &impl Serialize) -> bool {
        seen.is_none_or(|seen| *seen == Self::of(there))
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for Version {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Ok(Self(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_that_of_what_was_seen() {
        let (one, other) = (Version::of(&Some(1)), Version::of(&None::<u8>));
        assert!(one != other && one == Version::of(&Some(1)) && one.to_string().len() == CHARS);
        assert!(Version::is_seen(None, &2) && Version::is_seen(Some(&one), &Some(1)));
        assert!(!Version::is_seen(Some(&one), &Some(2)));
    }
}
