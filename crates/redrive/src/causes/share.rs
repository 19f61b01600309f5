//! How many of the tasks that came to their end died of a cause, since it was first seen.

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
}

impl Redrive {
    /// How many tasks died of a cause, of all that came to their end since it was first seen, or in the last seven days.
    pub async fn cause_share(&self, cause: &CauseView) -> Result<CauseShare, Error> {
        let (since, by) = counted(cause.first_seen, self.now());
        let hours = self.store.cause_hours(vec![cause.id.clone()], since).await?;
        let died: i64 = hours.iter().map(|hour| hour.count - hour.imported).sum();
        let counts = self.store.counts(CountEvents::since(since, by).of(cause.pipeline.clone())).await?;
        let ended: i64 = counts.iter().map(|count| EventCount::died_once(count) + count.done_once()).sum();
        let [died, ended] = [died, ended.max(died)].map(|n| u64::try_from(n).unwrap_or(0));
        Ok(CauseShare { died: Share::new(died, ended), since })
    }
}

/// From when on, and by what, is counted: the beginning of the minute or of the hour in which a cause was first seen.
fn counted(first_seen: Timestamp, now: Timestamp) -> (Timestamp, Span) {
    if now.since(first_seen) <= BY_THE_MINUTE {
        return (Timestamp::from_millis(first_seen.minute() * 60_000), Span::Minute);
    }
    let since = first_seen.max(now - COUNTED);
    (Timestamp::from_millis(since.hour() * HOUR_MS), Span::Hour)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_is_counted_since_it_was_first_seen_for_a_week_at_most() {
        let at = |minutes: i64| Timestamp::from_millis(minutes * 60_000 + 7);
        let now = at(30 * 24 * 60);
        let of = |minutes_ago: i64| counted(at(30 * 24 * 60 - minutes_ago), now);
        assert_eq!(of(50), (Timestamp::from_millis((30 * 24 * 60 - 50) * 60_000), Span::Minute));
        assert_eq!(of(150), (Timestamp::from_millis((30 * 24 - 3) * HOUR_MS), Span::Hour));
        assert_eq!(of(20 * 24 * 60), (Timestamp::from_millis(23 * 24 * HOUR_MS), Span::Hour));
    }
}
