//! Hours put together until they fit: a chart has room for so many columns, and below them for so many labels.

use redrive_core::time::Timestamp;

use crate::output::report::figures::{clock, date};
use redrive::report::HourReport;

const HOUR_MILLIS: i64 = 3_600_000;

/// The shortest handy number of hours that goes into `hours` at most `most` times: a part of a day, or days.
pub fn step(hours: usize, most: usize) -> i64 {
    let days = (0..20).map(|doublings| 24 << doublings);
    let fits = |step: &i64| (hours as i64) <= step.saturating_mul(most.max(1) as i64);
    [1, 2, 3, 6, 12].into_iter().chain(days).find(fits).unwrap_or(i64::MAX / HOUR_MILLIS)
}

/// The hours, oldest first, put together in steps of so many. Steps begin at round times: a day begins at midnight.
pub fn grouped(hours: &[HourReport], step: i64) -> Vec<HourReport> {
    let begin = |hour: &HourReport| hour.hour.hour().div_euclid(step.max(1)) * step.max(1);
    hours.chunk_by(|a, b| begin(a) == begin(b)).map(sum).collect()
}

fn sum(hours: &[HourReport]) -> HourReport {
    let total = |of: fn(&HourReport) -> i64| hours.iter().map(of).sum();
    HourReport {
        hour: hours.first().map_or(Timestamp::default(), |first| first.hour),
        done: total(|hour| hour.done),
        buried: total(|hour| hour.buried),
        recovered: total(|hour| hour.recovered),
    }
}

/// The label of a time on an axis that has one every `step` hours; none if it is not its turn.
pub fn label(time: Timestamp, step: i64) -> Option<String> {
    match time.hour() {
        hour if hour.rem_euclid(step.max(1)) != 0 => None,
        hour if hour.rem_euclid(24) == 0 => Some(date(time).get(5..).unwrap_or_default().to_owned()),
        _ => Some(clock(time)),
    }
}

/// A step in words.
pub fn step_name(step: i64) -> String {
    match step {
        1 => "hour".to_owned(),
        24 => "day".to_owned(),
        step if step % 24 == 0 => format!("{} days", step / 24),
        step => format!("{step} hours"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hours(count: i64) -> Vec<HourReport> {
        let at = |hour: i64| Timestamp::from_millis((490_000 + hour) * HOUR_MILLIS);
        (0..count).map(|hour| HourReport { hour: at(hour), done: 10, buried: 1, recovered: 0 }).collect()
    }

    #[test]
    fn they_fit_and_none_is_lost() {
        for count in [0, 1, 23, 24, 25, 168, 720, 9_000] {
            let hours = hours(count);
            let grouped = grouped(&hours, step(hours.len(), 96));
            assert!(grouped.len() <= 97, "{count} hours make {}", grouped.len());
            assert_eq!(grouped.iter().map(|hour| hour.done).sum::<i64>(), count * 10);
        }
    }

    #[test]
    fn steps_are_handy() {
        assert_eq!([24, 168, 200, 720, 2_160].map(|hours| step(hours, 96)), [1, 2, 3, 12, 24]);
        assert_eq!([1, 6, 24, 96].map(step_name), ["hour", "6 hours", "day", "4 days"]);
        assert!(step(usize::MAX, 0) > 0);
    }

    #[test]
    fn labels_are_at_round_times() {
        let at = |hour: i64| Timestamp::from_millis(hour * HOUR_MILLIS);
        let labels = [490_008, 490_009, 490_011].map(|hour| label(at(hour), 3));
        assert_eq!(labels, [Some("11-25".to_owned()), None, Some("03:00".to_owned())]);
    }
}
