//! What things are called: ids of jobs and workers, lease tokens, names of pipelines and rounds.
//!
//! Ids are UUIDs of version 7, made from a time and random bits that are passed in.

mod refs;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::time::Timestamp;

pub use self::refs::{IdEnding, JobRef};

fn uuid_v7(now: Timestamp, random: u128) -> Uuid {
    let millis = u64::try_from(now.as_millis()).unwrap_or(0);
    let bytes = random.to_be_bytes();
    let mut tail = [0; 10];
    tail.copy_from_slice(&bytes[6..]);
    uuid::Builder::from_unix_timestamp_millis(millis, &tail).into_uuid()
}

macro_rules! uuid_id {
    ($(#[$doc:meta])* $name:ident, $what:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(Uuid);

        impl $name {
            /// Makes an id that sorts by `now`, from random bits.
            pub fn new(now: Timestamp, random: u128) -> Self {
                Self(uuid_v7(now, random))
            }

            /// The id as 16 bytes, as stores keep it.
            pub fn as_bytes(&self) -> &[u8; 16] {
                self.0.as_bytes()
            }

            /// The id that these 16 bytes are.
            pub fn from_bytes(bytes: [u8; 16]) -> Self {
                Self(Uuid::from_bytes(bytes))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl FromStr for $name {
            type Err = InvalidName;

            fn from_str(text: &str) -> Result<Self, InvalidName> {
                Uuid::try_parse(text).map(Self).map_err(|_| InvalidName {
                    what: $what,
                    text: text.to_owned(),
                    want: "an id such as 0198f2c5-7d3e-7a10-9c51-0242ac120002",
                })
            }
        }
    };
}

uuid_id!(
    /// A job, for life: a replayed dead letter keeps it.
    JobId,
    "task id"
);
uuid_id!(
    /// One worker process.
    WorkerId,
    "worker id"
);
uuid_id!(
    /// One replay of dead letters.
    ReplayId,
    "replay id"
);
uuid_id!(
    /// One try of dead letters.
    TryId,
    "try id"
);
uuid_id!(
    /// One copy of a store to another.
    CopyId,
    "copy id"
);
uuid_id!(
    /// The secret half of a lease.
    LeaseToken,
    "lease token"
);

macro_rules! plain_name {
    ($(#[$doc:meta])* $name:ident, $what:literal) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// The name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> Self {
                name.0
            }
        }

        impl TryFrom<String> for $name {
            type Error = InvalidName;

            fn try_from(text: String) -> Result<Self, InvalidName> {
                let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
                if (1..=64).contains(&text.len()) && text.chars().all(fits) {
                    Ok(Self(text))
                } else {
                    let want = "1 to 64 letters, digits, `_`, `-` or `.`";
                    Err(InvalidName { what: $what, text, want })
                }
            }
        }

        impl FromStr for $name {
            type Err = InvalidName;

            fn from_str(text: &str) -> Result<Self, InvalidName> {
                Self::try_from(text.to_owned())
            }
        }
    };
}

plain_name!(
    /// The name of a pipeline: 1 to 64 of `a-z`, `A-Z`, `0-9`, `_`, `-` and `.`.
    PipelineName,
    "pipeline name"
);
plain_name!(
    /// The name of a round, a repetition of the same tasks: written as that of a pipeline.
    RoundName,
    "round"
);
plain_name!(
    /// The name of a token, by which people know it; not the secret.
    TokenName,
    "token name"
);

/// A name or id that cannot be one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a {what}: expected {want}")]
pub struct InvalidName {
    what: &'static str,
    text: String,
    want: &'static str,
}

impl InvalidName {
    pub(crate) fn new(what: &'static str, text: &str, want: &'static str) -> Self {
        Self { what, text: text.to_owned(), want }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_sort_by_time_and_survive_text() {
        let early = JobId::new(Timestamp::from_millis(1_000), u128::MAX);
        let late = JobId::new(Timestamp::from_millis(1_001), 0);
        assert!(early < late);
        assert_eq!(early.to_string().parse::<JobId>(), Ok(early));
        assert_eq!(JobId::from_bytes(*late.as_bytes()), late);
        assert!("nonsense".parse::<JobId>().is_err());
    }

    #[test]
    fn pipeline_names_are_plain() {
        assert!("catalog-2.eu_west".parse::<PipelineName>().is_ok());
        for bad in ["", "a b", "a/b", "ü", &"x".repeat(65)] {
            assert!(bad.parse::<PipelineName>().is_err(), "{bad:?}");
        }
    }
}
