//! Values with one text form. A flag, a JSON field, a query and a form accept the same text and fail with the same message.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use jiff::tz::TimeZone;
use redrive_core::text_schema;
use redrive_core::time::{Timestamp, parse_duration, parse_instant};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// Derives the JSON form and the schema from `Display` and `FromStr`.
macro_rules! text_type {
    ($name:ident, $schema:tt) => {
        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
            }
        }

        text_schema!($name, $schema);
    };
}

/// Declares a text with a limit in bytes.
macro_rules! limited_text {
    ($(#[$doc:meta])* $name:ident, $max:literal) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct $name(String);

        impl $name {
            /// Returns the text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl From<$name> for String {
            fn from(text: $name) -> Self {
                text.0
            }
        }

        impl FromStr for $name {
            type Err = String;

            fn from_str(text: &str) -> Result<Self, String> {
                match text.len() {
                    1..=$max => Ok(Self(text.to_owned())),
                    bytes => Err(format!("it has {bytes} bytes: expected 1 to {}", $max)),
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }

        text_type!($name, { "type": "string", "minLength": 1, "maxLength": $max });
    };
}

limited_text!(
    /// Target of jobs: a host, a provider, or what their `target` says.
    Target,
    255
);
limited_text!(
    /// Reason or remark that a person writes.
    Note,
    4_000
);

/// End of a hold: a duration from now, or a time.
///
/// A duration is sent as it is and counted by the engine's clock, so the clock of the client does not matter. A day without a time
/// zone becomes a time where it is parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deadline {
    /// So long from now.
    In(Duration),
    /// At this time.
    At(Timestamp),
}

impl Deadline {
    /// Returns the time that it means.
    pub fn resolve(self, now: Timestamp) -> Timestamp {
        match self {
            Self::In(duration) => now + duration,
            Self::At(at) => at,
        }
    }
}

impl FromStr for Deadline {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is not a time: expected 2h (from now), 2026-11-15 or 2026-11-15T14:02:00Z");
        match parse_duration(text) {
            Ok(duration) => Ok(Self::In(duration)),
            Err(_) => parse_instant(text, &TimeZone::system()).map(Self::At).ok_or_else(wrong),
        }
    }
}

impl fmt::Display for Deadline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::In(duration) => write!(f, "{}ms", duration.as_millis()),
            Self::At(at) => at.fmt(f),
        }
    }
}

text_type!(Deadline, { "type": "string", "examples": ["2h", "2026-11-20", "2026-11-20T08:00:00Z"] });

/// Most items of a page. The default is written once: serde and the schema read `Default`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "u16")]
#[schemars(inline, extend("minimum" = Limit::MIN, "maximum" = Limit::MAX))]
pub struct Limit(u32);

impl Limit {
    const MIN: u16 = 1;
    const MAX: u16 = 1_000;

    /// The longest page that may be requested.
    pub const LONGEST: Self = Self(Self::MAX as u32);

    /// No limit, within a process.
    pub(crate) const NONE: Self = Self(u32::MAX);

    /// Returns the number of items.
    pub fn get(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }
}

impl Default for Limit {
    fn default() -> Self {
        Self(50)
    }
}

impl TryFrom<u16> for Limit {
    type Error = String;

    fn try_from(n: u16) -> Result<Self, String> {
        match (Self::MIN..=Self::MAX).contains(&n) {
            true => Ok(Self(n.into())),
            false => Err(format!("{n} is not between {} and {}", Self::MIN, Self::MAX)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deadline_survives_its_text() {
        for text in ["2h", "1h 30m", "250ms", "2026-11-20T08:00:00Z", "2026-11-20"] {
            let deadline: Deadline = text.parse().expect("a deadline");
            assert_eq!(deadline.to_string().parse(), Ok(deadline), "{text}");
        }
        let error = "soon".parse::<Deadline>().expect_err("no time");
        assert!(error.contains("expected 2h (from now)"), "{error}");
    }

    #[test]
    fn duration_is_counted_by_the_clock_that_resolves_it() {
        let now = Timestamp::from_millis(5_000);
        assert_eq!("2s".parse::<Deadline>().map(|deadline| deadline.resolve(now)), Ok(Timestamp::from_millis(7_000)));
    }

    #[test]
    fn text_has_between_one_byte_and_its_limit() {
        assert!("x".repeat(255).parse::<Target>().is_ok());
        for wrong in ["", &"x".repeat(256)] {
            assert!(wrong.parse::<Target>().is_err(), "{wrong:?}");
        }
    }
}
