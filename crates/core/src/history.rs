//! When what is known of a job that came to its end is forgotten: its receipt, and with it its key.

use std::time::Duration;

use crate::time::Timestamp;

/// How long it is known, unless a pipeline says otherwise.
pub const KEPT: Duration = Duration::from_secs(90 * 86_400);

/// Whether a job that ended then is forgotten by now. Its age starts anew on each day on which a run meets its key, so that what is
/// handed in again and again is never done again.
pub fn is_over(ended_at: Timestamp, met_on: Option<i64>, before: Timestamp) -> bool {
    ended_at < before && met_on.is_none_or(|day| day < before.day())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_was_met_is_kept() {
        let day = |day: i64| Timestamp::from_millis(day * 86_400_000);
        assert!(is_over(day(1), None, day(2)));
        assert!(!is_over(day(2), None, day(2)));
        assert!(is_over(day(1), Some(1), day(2)));
        assert!(!is_over(day(1), Some(2), day(2)), "it was met later on that day");
        assert!(!is_over(day(3), Some(1), day(2)), "it came to its end later");
    }
}
