//! Versions of Redrive that talk to each other over a network: which of them understand each other.
//!
//! Those of one minor version, and those of the one before and the one after it, do: what is new is added, never taken away, so
//! that a server and those who use it need not be brought forward at the same moment.

use std::fmt;
use std::str::FromStr;

/// A version of Redrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    major: u64,
    minor: u64,
    patch: u64,
}

impl Version {
    /// Whether two that have these versions understand each other.
    pub const fn understands(self, other: Self) -> bool {
        self.major == other.major && self.minor.abs_diff(other.minor) <= 1
    }
}

/// A text that is no version.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a version: expected three numbers, as in 1.4.0")]
pub struct InvalidVersion(String);

impl FromStr for Version {
    type Err = InvalidVersion;

    fn from_str(text: &str) -> Result<Self, InvalidVersion> {
        let invalid = || InvalidVersion(text.to_owned());
        // What was built on the way to a version is taken for that version.
        let numbers = text.split(['-', '+']).next().unwrap_or_default();
        let mut parts = numbers.split('.').map(|part| part.parse::<u64>().map_err(|_| invalid()));
        let mut next = || parts.next().unwrap_or_else(|| Err(invalid()));
        let version = Self { major: next()?, minor: next()?, patch: next()? };
        if parts.next().is_some() { Err(invalid()) } else { Ok(version) }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(text: &str) -> Version {
        text.parse().expect("a version")
    }

    #[test]
    fn neighbouring_minor_versions_understand_each_other_and_no_others() {
        let own = version("1.4.2");
        for other in ["1.3.0", "1.4.9", "1.5.0"] {
            assert!(own.understands(version(other)) && version(other).understands(own), "{other}");
        }
        for other in ["1.2.9", "1.6.0", "0.4.2", "2.4.2", "2.0.0"] {
            assert!(!own.understands(version(other)) && !version(other).understands(own), "{other}");
        }
    }

    #[test]
    fn versions_are_three_numbers() {
        assert_eq!(version("0.1.0").to_string(), "0.1.0");
        assert_eq!(version("1.2.3-rc.1+git"), version("1.2.3"));
        for text in ["", "1", "1.2", "1.2.x", "1.2.3.4", "one"] {
            assert!(text.parse::<Version>().is_err(), "{text:?}");
        }
    }
}
