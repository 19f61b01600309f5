//! What is different from a plan that somebody looked at: nothing is to be sent but what they agreed to.

use std::collections::BTreeMap;

use super::{Exclusion, ReplayPlan};

/// How a plan differs from the one that somebody saw.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlanDrift {
    /// Letters that were to be sent then.
    pub seen: u64,
    /// Letters that are found no longer.
    pub gone: u64,
    /// Letters that are found and were not.
    pub come: u64,
    /// Letters that are left out and were not, by why.
    pub left_out: BTreeMap<Exclusion, u64>,
    /// Letters that may go and might not then.
    pub let_in: u64,
    /// Letters that need a request of their own and did not.
    pub anew: u64,
}

impl ReplayPlan {
    /// How it differs from a plan that was seen, if what it would do is something else: other letters, or more requests.
    pub fn drift_from(&self, seen: &Self) -> Option<PlanDrift> {
        if (self.matched, self.included) == (seen.matched, seen.included) && self.anew <= seen.anew {
            return None;
        }
        let before = |why: &Exclusion| seen.excluded.get(why).copied().unwrap_or_default();
        let left_out = self.excluded.iter().map(|(why, letters)| (*why, letters.saturating_sub(before(why))));
        let left_out: BTreeMap<_, _> = left_out.filter(|(_, letters)| *letters > 0).collect();
        Some(PlanDrift {
            seen: seen.included,
            gone: seen.matched.saturating_sub(self.matched),
            come: self.matched.saturating_sub(seen.matched),
            let_in: if left_out.is_empty() && self.matched <= seen.matched {
                self.included.saturating_sub(seen.included)
            } else {
                0
            },
            left_out,
            anew: self.anew.saturating_sub(seen.anew),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(included: u64, anew: u64, left_out: u64) -> ReplayPlan {
        let excluded = BTreeMap::from([(Exclusion::BeingReplayed, left_out)]);
        let (matched, saved) = (included + left_out, included - anew);
        ReplayPlan { matched, included, saved, anew, excluded, ..ReplayPlan::default() }
    }

    #[test]
    fn what_would_be_sent_now_is_told_apart_from_what_was_seen() {
        let seen = plan(60, 3, 0);
        assert_eq!(seen.drift_from(&seen), None);
        assert_eq!(plan(60, 0, 0).drift_from(&seen), None, "fewer requests than were agreed to");
        let taken = plan(40, 3, 20).drift_from(&seen).expect("other letters");
        assert_eq!((taken.seen, taken.gone, taken.left_out[&Exclusion::BeingReplayed]), (60, 0, 20));
        let pages_gone = plan(60, 60, 0).drift_from(&seen).expect("more requests");
        assert_eq!((pages_gone.anew, pages_gone.left_out.len()), (57, 0));
        let gone = plan(58, 3, 0).drift_from(&seen).expect("fewer letters");
        assert_eq!((gone.gone, gone.come, gone.let_in), (2, 0, 0));
        let let_in = plan(60, 3, 0).drift_from(&plan(40, 3, 20)).expect("more letters");
        assert_eq!((let_in.let_in, let_in.come), (20, 0));
    }
}
