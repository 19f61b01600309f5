//! Times and sizes as people write them: `5m`, `14d`, `512MiB`.

use std::time::Duration;

use redrive_core::time::{Timestamp, parse_instant};
use serde::{Deserialize, Deserializer, de};

pub use redrive_core::time::parse_duration as duration;

/// How long to wait at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// So long.
    AtMost(Duration),
    /// Without a limit.
    Forever,
}

/// Reads how long to wait at most: a time, `0`, or `forever`.
pub fn wait(text: &str) -> Result<Wait, String> {
    match text.trim() {
        "forever" => Ok(Wait::Forever),
        "0" => Ok(Wait::AtMost(Duration::ZERO)),
        text => duration(text).map(Wait::AtMost).map_err(|why| format!("{why}, 0 or forever")),
    }
}

/// Reads a time that is longer than nothing.
pub fn positive(text: &str) -> Result<Duration, String> {
    duration(text).and_then(|time| if time.is_zero() { Err("it must be longer than nothing".into()) } else { Ok(time) })
}

/// Reads a size such as `512MiB`, `2GB` or `1048576`.
pub fn size(text: &str) -> Result<u64, String> {
    let wrong = || format!("{text:?} is not a size: expected one such as 512MiB or 2GB");
    let text = text.trim();
    let split = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let factor: u64 = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kib" => 1 << 10,
        "m" | "mib" => 1 << 20,
        "g" | "gib" => 1 << 30,
        "kb" => 1_000,
        "mb" => 1_000_000,
        "gb" => 1_000_000_000,
        _ => return Err(wrong()),
    };
    let number: f64 = number.parse().map_err(|_| wrong())?;
    let bytes = number * factor as f64;
    if bytes >= 1.0 && bytes < u64::MAX as f64 { Ok(bytes as u64) } else { Err(wrong()) }
}

/// Reads a rate such as `20/s`, `100/m` or `5/h`, per second.
pub fn rate(text: &str) -> Result<f64, String> {
    let wrong = || format!("{text:?} is not a rate: expected one such as 20/s, 100/m or 500/h");
    let (number, unit) = text.split_once('/').unwrap_or((text, "s"));
    let secs = match unit.trim() {
        "s" => 1.0,
        "m" => 60.0,
        "h" => 3_600.0,
        _ => return Err(wrong()),
    };
    let number: f64 = number.trim().parse().map_err(|_| wrong())?;
    if number.is_finite() && number > 0.0 { Ok(number / secs) } else { Err(wrong()) }
}

/// Writes a rate as a person would: `20/s`, or `100/m` where that is the same, and no longer than need be.
pub fn written_rate(per_second: f64) -> String {
    const LONGEST: usize = "100.5/s".len();
    let exact = format!("{per_second}/s");
    let in_unit = |(secs, unit): (f64, &str)| {
        let number = (per_second * secs).round();
        let text = format!("{number}/{unit}");
        (number >= 1.0 && rate(&text) == Ok(per_second)).then_some(text)
    };
    match exact.len() <= LONGEST {
        true => exact,
        false => [(60.0, "m"), (3_600.0, "h")].into_iter().find_map(in_unit).unwrap_or(exact),
    }
}

/// Reads a rate, or `none` for no limit.
pub fn rate_or_none(text: &str) -> Result<Option<f64>, String> {
    match text {
        "none" => Ok(None),
        text => rate(text).map(Some).map_err(|why| format!("{why}, or none")),
    }
}

/// Reads a share such as `25%` or `0.25`.
pub fn share(text: &str) -> Result<f64, String> {
    let wrong = || format!("{text:?} is not a share: expected one such as 25% or 0.25");
    let number = match text.trim().strip_suffix('%') {
        Some(percent) => percent.trim().parse::<f64>().map(|percent| percent / 100.0),
        None => text.trim().parse(),
    };
    number.ok().filter(|share| (0.0..=1.0).contains(share)).ok_or_else(wrong)
}

/// Reads an instant to come: how long from now (`7d`), a day or a time.
pub fn future(text: &str, now: Timestamp) -> Result<Timestamp, String> {
    match duration(text) {
        Ok(ahead) => Ok(now + ahead),
        Err(_) => at(text).ok_or_else(|| not_a_time(text, "from now")),
    }
}

/// Reads an instant: how long ago (`2h`), a day (`2026-11-15`) or a time (`2026-11-15T14:02:00Z`).
pub fn instant(text: &str, now: Timestamp) -> Result<Timestamp, String> {
    if let Ok(ago) = duration(text) {
        return Ok(now - ago);
    }
    at(text).ok_or_else(|| not_a_time(text, "ago"))
}

/// A day or a time.
fn at(text: &str) -> Option<Timestamp> {
    parse_instant(text, &jiff::tz::TimeZone::system())
}

fn not_a_time(text: &str, side: &str) -> String {
    format!("{text:?} is not a time: expected 2h ({side}), 2026-11-15 or 2026-11-15T14:02:00Z")
}

/// A time in the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Time(pub Duration);

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        duration(&text).map(Self).map_err(de::Error::custom)
    }
}

/// A size in the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size(pub u64);

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        size(&text).map(Self).map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_written_as_it_was_said() {
        for text in ["20/s", "100/m", "500/h", "2.5/s", "1/s", "7/h"] {
            assert_eq!(written_rate(rate(text).expect("a rate")), text);
        }
        assert_eq!(written_rate(rate("60/m").expect("a rate")), "1/s");
    }

    #[test]
    fn waits() {
        assert_eq!(wait("10m"), Ok(Wait::AtMost(Duration::from_secs(600))));
        assert_eq!(wait("0"), Ok(Wait::AtMost(Duration::ZERO)));
        assert_eq!(wait("forever"), Ok(Wait::Forever));
        assert!(wait("never").is_err_and(|why| why.contains("0 or forever")));
    }

    #[test]
    fn sizes() {
        assert_eq!(size("512MiB"), Ok(512 << 20));
        assert_eq!(size("1.5 GB"), Ok(1_500_000_000));
        assert_eq!(size("4096"), Ok(4_096));
        for bad in ["", "lots", "-1", "0", "5 parsecs", "1e400GB"] {
            assert!(size(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn rates_and_shares() {
        assert_eq!((rate("20/s"), rate("90/m"), rate("5")), (Ok(20.0), Ok(1.5), Ok(5.0)));
        assert_eq!((rate_or_none("5/s"), rate_or_none("none")), (Ok(Some(5.0)), Ok(None)));
        assert!(rate_or_none("fast").is_err_and(|said| said.ends_with("500/h, or none")));
        assert_eq!((share("25%"), share("0.1"), share("0")), (Ok(0.25), Ok(0.1), Ok(0.0)));
        for bad in ["", "0/s", "x/s", "5/y", "-1/s"] {
            assert!(rate(bad).is_err(), "{bad:?}");
        }
        for bad in ["", "101%", "-1", "x"] {
            assert!(share(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn instants() {
        let now = Timestamp::from_millis(10_000_000_000);
        assert_eq!(instant("1h", now), Ok(now - Duration::from_secs(3_600)));
        assert_eq!(instant("1970-01-01T00:00:01Z", now), Ok(Timestamp::from_millis(1_000)));
        assert!(instant("soon", now).is_err_and(|said| said.contains("2h (ago)")));
        assert!(future("soon", now).is_err_and(|said| said.contains("2h (from now)")));
        assert!(instant("2026-11-15", now).is_ok());
        assert!(instant("yesterday", now).is_err());
    }
}
