//! Where leasing begins to look in a lane.
//!
//! Jobs that were leased leave entries behind in the index of their lane, which stay as long as any transaction of the database may
//! still see them. Who looks from the beginning each time passes all of them. While a lane gives all that is asked of it, it is looked
//! at from where the last lease began; once a second from the beginning, for jobs that came to be due before.

use std::collections::HashMap;
use std::time::{Duration, Instant};

/// For how long a lane is not looked at from its beginning.
const KEPT: Duration = Duration::from_secs(1);

/// Leases of fewer jobs are not worth it.
const LIMIT_MIN: u32 = 10;

/// A place in a lane: when a job is due, and its number.
type Place = (i64, i64);

/// Before all jobs.
const BOTTOM: Place = (i64::MIN, i64::MIN);

/// The floors of lanes.
#[derive(Default)]
pub(super) struct Floors(HashMap<i64, Floor>);

struct Floor {
    place: Place,
    since: Instant,
}

impl Floors {
    /// Where a lease of so many jobs begins.
    pub(super) fn of(&mut self, lane: i64, limit: u32) -> Place {
        if self.0.get(&lane).is_some_and(|floor| floor.since.elapsed() >= KEPT) {
            self.0.remove(&lane);
        }
        self.0.get(&lane).filter(|_| limit >= LIMIT_MIN).map_or(BOTTOM, |floor| floor.place)
    }

    /// Notes where a lease of so many jobs began that got them all; nothing if it did not.
    pub(super) fn note(&mut self, lane: i64, limit: u32, began: Option<Place>) {
        match began.filter(|_| limit >= LIMIT_MIN) {
            Some(place) => self.0.entry(lane).or_insert_with(|| Floor { place, since: Instant::now() }).place = place,
            None => _ = self.0.remove(&lane),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lane_that_gives_all_is_looked_at_from_where_the_last_lease_began() {
        let mut floors = Floors::default();
        assert_eq!(floors.of(1, 100), BOTTOM);
        floors.note(1, 100, Some((5, 7)));
        assert_eq!((floors.of(1, 100), floors.of(2, 100)), ((5, 7), BOTTOM));
        assert_eq!(floors.of(1, 1), BOTTOM, "a small lease sees all");
        floors.note(1, 100, None);
        assert_eq!(floors.of(1, 100), BOTTOM, "a lease that came back short begins anew");
    }

    #[test]
    fn a_lane_is_looked_at_from_its_beginning_now_and_then() {
        let mut floors = Floors::default();
        floors.note(1, 100, Some((5, 7)));
        let long_ago = Instant::now().checked_sub(KEPT).expect("the machine runs for longer");
        floors.0.get_mut(&1).expect("noted").since = long_ago;
        floors.note(1, 100, Some((6, 8)));
        assert_eq!(floors.of(1, 100), BOTTOM);
    }
}
