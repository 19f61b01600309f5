//! Instants, to the millisecond, and durations. This module formats and parses them; it never asks what time it is.

use std::fmt;
use std::ops::{Add, Sub};
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// Milliseconds since the Unix epoch; RFC 3339 in JSON and on the screen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Timestamp(i64);

const HOUR_MILLIS: i64 = 3_600_000;

impl Timestamp {
    /// The instant so many milliseconds after the Unix epoch.
    pub const fn from_millis(millis: i64) -> Self {
        Self(millis)
    }

    /// Milliseconds since the Unix epoch.
    pub const fn as_millis(self) -> i64 {
        self.0
    }

    /// Hours since the Unix epoch: the bucket of the hourly roll-ups.
    pub const fn hour(self) -> i64 {
        self.0.div_euclid(HOUR_MILLIS)
    }

    /// Whether an hour begins at it.
    pub const fn is_hour(self) -> bool {
        self.0.rem_euclid(HOUR_MILLIS) == 0
    }

    /// Minutes since the Unix epoch: the bucket of the newest roll-ups.
    pub const fn minute(self) -> i64 {
        self.0.div_euclid(HOUR_MILLIS / 60)
    }

    /// Days since the Unix epoch.
    pub const fn day(self) -> i64 {
        self.0.div_euclid(24 * HOUR_MILLIS)
    }

    /// How long after `earlier` this is; zero if it is not.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}

fn millis_of(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

impl Add<Duration> for Timestamp {
    type Output = Self;

    fn add(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(millis_of(duration)))
    }
}

impl Sub<Duration> for Timestamp {
    type Output = Self;

    fn sub(self, duration: Duration) -> Self {
        Self(self.0.saturating_sub(millis_of(duration)))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_millisecond(self.0) {
            Ok(instant) => write!(f, "{instant:.3}"),
            Err(_) => write!(f, "{}ms", self.0),
        }
    }
}

impl FromStr for Timestamp {
    type Err = InvalidTime;

    fn from_str(text: &str) -> Result<Self, InvalidTime> {
        let instant: jiff::Timestamp = text.parse().map_err(|_| InvalidTime(text.to_owned()))?;
        Ok(Self(instant.as_millisecond()))
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(de::Error::custom)
    }
}

crate::text_schema!(Timestamp, { "type": "string", "format": "date-time" });

/// Reads a duration such as `250ms`, `5m`, `1h 30m` or `14d`.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("{text:?} is not a time: expected one such as 250ms, 30s, 5m, 2h or 14d");
    let span: jiff::Span = text.trim().parse().map_err(|_| wrong())?;
    let relative = jiff::SpanRelativeTo::days_are_24_hours();
    let duration = span.to_duration(relative).map_err(|_| wrong())?;
    Duration::try_from(duration).map_err(|_| wrong())
}

/// Reads an instant, or a day or time of day in a time zone.
pub fn parse_instant(text: &str, zone: &jiff::tz::TimeZone) -> Option<Timestamp> {
    let civil = || {
        let civil: jiff::civil::DateTime = text.parse().ok()?;
        let zoned = civil.to_zoned(zone.clone()).ok()?;
        Some(Timestamp::from_millis(zoned.timestamp().as_millisecond()))
    };
    text.parse().ok().or_else(civil)
}

/// A text that is not an instant.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a time: expected one such as 2026-11-15T14:02:00Z")]
pub struct InvalidTime(String);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_back() {
        let instant = Timestamp::from_millis(1_763_215_320_042);
        assert_eq!(instant.to_string(), "2025-11-15T14:02:00.042Z");
        assert_eq!(instant.to_string().parse(), Ok(instant));
    }

    #[test]
    fn durations() {
        assert_eq!(parse_duration("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(parse_duration("1h 30m"), Ok(Duration::from_secs(5_400)));
        assert_eq!(parse_duration("14d"), Ok(Duration::from_secs(14 * 86_400)));
        for bad in ["", "5", "soon", "-3s", "1 parsec"] {
            assert!(parse_duration(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn arithmetic_saturates() {
        let end = Timestamp::from_millis(i64::MAX);
        assert_eq!(end + Duration::from_secs(1), end);
        assert_eq!(Timestamp::from_millis(5).since(Timestamp::from_millis(9)), Duration::ZERO);
    }
}
