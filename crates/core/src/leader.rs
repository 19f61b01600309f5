//! The leader: of all workers one at a time does the chores of a store, of a pipeline or of a vault.

use std::time::Duration;

use crate::clock::set_back;
use crate::ids::WorkerId;
use crate::time::Timestamp;

/// How long somebody leads without asking again. It is trusted from when it was asked for, not from when that was answered.
pub const LEADS_FOR: Duration = Duration::from_secs(15);

/// How often a leader asks again, and the others ask whether there is one.
pub const RENEW_EVERY: Duration = Duration::from_secs(5);

/// A lead that ends later than this was taken by a clock that was wrong: it holds nobody up.
const AHEAD_MAX: Duration = Duration::from_secs(600);

/// Who leads something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leading {
    /// Who.
    pub holder: WorkerId,
    /// By which term.
    pub term: u64,
    /// Until when, unless it asks again.
    pub until: Timestamp,
    /// Whether it is on the list of workers: one that is not is known to be gone.
    pub is_listed: bool,
}

/// The term by which somebody leads who asks to; nothing while another leads. Whoever leads already keeps its term.
pub fn term(now_leads: Option<&Leading>, asks: WorkerId, now: Timestamp) -> Option<u64> {
    let Some(Leading { holder, term, until, is_listed }) = now_leads else { return Some(1) };
    if *holder == asks {
        return Some(*term);
    }
    let is_free = *until <= now || *until > now + AHEAD_MAX || !is_listed;
    is_free.then_some(*term + 1)
}

/// Whether a chore is due: when it was last begun so long ago, or at a time that is still to come. One that was never begun is
/// due if it is a frequent one; else its time begins now.
pub fn is_due(last_run: Option<Timestamp>, every: Duration, now: Timestamp) -> bool {
    match last_run {
        Some(last) => now.since(last) >= every || set_back(last, now).is_some(),
        None => every < Duration::from_secs(3_600),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(secs: i64) -> Timestamp {
        Timestamp::from_millis(secs * 1_000)
    }

    #[test]
    fn one_leads_until_its_time_is_over() {
        let [one, other] = [1, 2].map(|n| WorkerId::new(at(0), n));
        let leads = Leading { holder: one, term: 3, until: at(15), is_listed: true };
        assert_eq!(term(None, one, at(0)), Some(1));
        assert_eq!(term(Some(&leads), one, at(99)), Some(3), "it asks again, late");
        assert_eq!(term(Some(&leads), other, at(14)), None);
        assert_eq!(term(Some(&leads), other, at(15)), Some(4));
        assert_eq!(term(Some(&Leading { is_listed: false, ..leads }), other, at(1)), Some(4), "it is gone");
        let ahead = Leading { until: at(86_400), ..leads };
        assert_eq!(term(Some(&ahead), other, at(1)), Some(4), "it was taken by a clock that was wrong");
        assert_eq!(term(Some(&Leading { until: at(601), ..leads }), other, at(1)), None, "clocks may differ");
    }

    #[test]
    fn a_chore_is_due_once_in_its_time() {
        let (minute, hour) = (Duration::from_secs(60), Duration::from_secs(3_600));
        assert!(!is_due(Some(at(100)), minute, at(159)));
        assert!(is_due(Some(at(100)), minute, at(160)));
        assert!(is_due(Some(at(90_000)), minute, at(100)), "the clock was set back");
        assert!(is_due(None, minute, at(0)), "it costs little");
        assert!(!is_due(None, hour, at(0)), "a new store has nothing to clear");
    }
}
