//! How counts, shares and times are written, the same on the page and in the terminal. A share is always a number
//! between 0 and 1, whatever it was made from.

use std::time::Duration;

use redrive_core::time::Timestamp;

/// A part of a whole, from 0 to 1; 0 of nothing is 0.
pub fn share(part: i64, whole: i64) -> f64 {
    if whole <= 0 { 0.0 } else { (part as f64 / whole as f64).clamp(0.0, 1.0) }
}

/// A number with thousands separators: `1,204`.
pub fn count(n: i64) -> String {
    let digits = n.unsigned_abs().to_string();
    let mut text = String::from(if n < 0 { "-" } else { "" });
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A number in at most four characters, for where there is little room: `1.2k`.
pub fn short(n: i64) -> String {
    let units = [(1_000_000_000, 'G'), (1_000_000, 'M'), (1_000, 'k')];
    match units.into_iter().find(|(size, _)| n >= *size) {
        Some((size, unit)) if n < size * 10 && n / (size / 10) % 10 > 0 => {
            format!("{}.{}{unit}", n / size, n / (size / 10) % 10)
        }
        Some((size, unit)) => format!("{}{unit}", n / size),
        None => n.to_string(),
    }
}

/// A number and what it counts: `1 job`, `1,204 jobs`.
pub fn counted(n: i64, one: &str, many: &str) -> String {
    format!("{} {}", count(n), if n == 1 { one } else { many })
}

/// A share in percent: `14.2 %`. Only nothing is 0 %, and only all is 100 %.
pub fn percent(share: f64) -> String {
    match share {
        share if share.is_nan() || share <= 0.0 => "0 %".to_owned(),
        share if share >= 1.0 => "100 %".to_owned(),
        share if share < 0.0005 => "< 0.1 %".to_owned(),
        share if share >= 0.9995 => "> 99.9 %".to_owned(),
        share => format!("{:.1} %", share * 100.0),
    }
}

/// A part and its whole: `312 of 1,204`.
pub fn part_of(part: i64, whole: i64) -> String {
    format!("{} of {}", count(part), count(whole))
}

/// A date: `2026-11-15`.
pub fn date(time: Timestamp) -> String {
    let text = time.to_string();
    text.get(..10).unwrap_or(&text).to_owned()
}

/// A time of day in UTC: `14:02`.
pub fn clock(time: Timestamp) -> String {
    let minutes = time.as_millis().div_euclid(60_000).rem_euclid(24 * 60);
    format!("{:02}:{:02}", minutes / 60, minutes % 60)
}

/// A date and a time: `2026-11-15 14:02`.
pub fn moment(time: Timestamp) -> String {
    format!("{} {}", date(time), clock(time))
}

/// The same, without the date if it is the day of `near`.
pub fn moment_near(time: Timestamp, near: Timestamp) -> String {
    if date(time) == date(near) { clock(time) } else { moment(time) }
}

/// A stretch of time in its two largest units: `3 d 4 h`.
pub fn span(duration: Duration) -> String {
    let minutes = duration.as_secs() / 60;
    let (days, hours, minutes) = (minutes / (24 * 60), minutes / 60 % 24, minutes % 60);
    match (days, hours, minutes) {
        (0, 0, 0) => "under a minute".to_owned(),
        (0, 0, minutes) => format!("{minutes} min"),
        (0, hours, 0) => format!("{hours} h"),
        (0, hours, minutes) => format!("{hours} h {minutes} min"),
        (days, 0, _) => format!("{days} d"),
        (days, hours, _) => format!("{days} d {hours} h"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_have_separators() {
        let written = [0, 7, 999, 1_000, 1_204_017, -12_345, i64::MIN].map(count);
        let wanted = ["0", "7", "999", "1,000", "1,204,017", "-12,345", "-9,223,372,036,854,775,808"];
        assert_eq!(written, wanted);
        assert_eq!(counted(1, "job", "jobs"), "1 job");
        assert_eq!([7, 999, 1_000, 1_299, 12_900, 3_000_000].map(short), ["7", "999", "1k", "1.2k", "12k", "3M"]);
    }

    #[test]
    fn shares_are_between_nothing_and_all() {
        assert_eq!([share(0, 0), share(5, 0), share(-1, 4), share(9, 4), share(1, 4)], [0.0, 0.0, 0.0, 1.0, 0.25]);
    }

    #[test]
    fn percents_do_not_round_to_nothing_or_all() {
        let written = [0.0, 1e-9, 0.001, 0.142, 0.9999, 1.0, f64::NAN].map(percent);
        assert_eq!(written, ["0 %", "< 0.1 %", "0.1 %", "14.2 %", "> 99.9 %", "100 %", "0 %"]);
    }

    #[test]
    fn times_are_as_short_as_they_can_be() {
        let time = Timestamp::from_millis(1_763_215_320_042);
        assert_eq!(moment(time), "2025-11-15 14:02");
        assert_eq!(moment_near(time, time + Duration::from_secs(3_600)), "14:02");
        assert_eq!(moment_near(time, time + Duration::from_secs(86_400)), "2025-11-15 14:02");
        let spans = [30, 300, 7_200, 7_260, 86_400, 273_600].map(|secs| span(Duration::from_secs(secs)));
        assert_eq!(spans, ["under a minute", "5 min", "2 h", "2 h 1 min", "1 d", "3 d 4 h"]);
    }
}
