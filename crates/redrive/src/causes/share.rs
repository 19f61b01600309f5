//! How many of the tasks that came to their end died of a cause, from its first death to its last.

use std::time::Duration;

use redrive_core::alerts::Share;
use redrive_core::time::Timestamp;
use redrive_store::contract::{CauseView, CountEvents, EventCount, Span};

use crate::engine::Redrive;
use crate::error::Error;

const HOUR_MS: i64 = 3_600_000;

/// A cause that was first seen so lately is counted by the minute: that long minutes are surely kept.
const BY_THE_MINUTE: Duration = Duration::from_secs(2 * 3_600);

/// The longest that is counted.
const COUNTED: Duration = Duration::from_secs(7 * 86_400);

/// Of the tasks of a cause's pipeline that came to their end in a while, those that died of it; each counts once, replays apart.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CauseShare {
    /// How many of how many.
    pub died: Share,
    /// Since when.
    pub since: Timestamp,
    /// Until when: tasks that ended after the last death say nothing about the cause.
    pub until: Timestamp,
}

impl Redrive {
    /// How many tasks died of a cause, of all that came to their end from its first death to its last, or in the seven days before that.
    pub async fn cause_share(&self, cause: &CauseView) -> Result<CauseShare, Error> {
        let now = self.now();
        let (since, until, by) = counted((cause.first_seen, cause.last_seen), now);
        let hours = self.store.cause_hours(vec![cause.id.clone()], since).await?;
        let died: i64 = hours.iter().map(|hour| hour.count - hour.imported).sum();
        let counts = CountEvents { until: Some(until), ..CountEvents::since(since, by).of(cause.pipeline.clone()) };
        let counts = self.store.counts(counts).await?;
        let ended: i64 = counts.iter().map(|count| EventCount::died_once(count) + count.done_once()).sum();
        let [died, ended] = [died, ended.max(died)].map(|n| u64::try_from(n).unwrap_or(0));
        Ok(CauseShare { died: Share::new(died, ended), since, until: until.min(now) })
    }
}

/// From when on, until when and by what is counted: whole minutes or hours, those of the first and the last death included.
fn counted((first, last): (Timestamp, Timestamp), now: Timestamp) -> (Timestamp, Timestamp, Span) {
    if now.since(first) <= BY_THE_MINUTE {
        let minute = |minute: i64| Timestamp::from_millis(minute * 60_000);
        return (minute(first.minute()), minute(last.minute() + 1), Span::Minute);
    }
    let hour = |hour: i64| Timestamp::from_millis(hour * HOUR_MS);
    (hour(first.max(last - COUNTED).hour()), hour(last.hour() + 1), Span::Hour)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_is_counted_from_its_first_death_to_its_last_for_a_week_at_most() {
        const MINUTE: i64 = 60_000;
        let day = 24 * 60;
        let at = |minutes: i64| Timestamp::from_millis(minutes * MINUTE + 7);
        let now = 30 * day;
        for (ago, expected) in [
            ((50, 50), ((now - 50) * MINUTE, (now - 49) * MINUTE, Span::Minute)),
            ((150, 70), ((now - 180) * MINUTE, (now - 60) * MINUTE, Span::Hour)),
            ((20 * day, 9 * day), ((now - 16 * day) * MINUTE, (now - 9 * day + 60) * MINUTE, Span::Hour)),
        ] {
            let (since, until, by) = counted((at(now - ago.0), at(now - ago.1)), at(now));
            assert_eq!((since.as_millis(), until.as_millis(), by), expected, "{ago:?}");
        }
    }
}
