//! On how many saved pages of a cause rules that could be meant match: counted beside the page that shows it, and kept for a while.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use redrive::compare::{CandidateCounts, Comparing, Comparison};
use redrive_core::causes::CauseId;
use redrive_core::dead::DeadLetter;
use redrive_core::ids::JobId;
use tokio::sync::Semaphore;

use crate::app::App;

/// How long a count is shown before it is made anew.
const HOLDS: Duration = Duration::from_secs(60);

/// Counts that are kept.
const KEPT_MAX: usize = 200;

/// Counts that are made at once.
static COUNTING: Semaphore = Semaphore::const_new(2);

/// Counts that are under way or wait for their turn, at most: who comes when there are so many looks again.
const UNDER_WAY_MAX: usize = 8;

/// What is counted: the rules that the page of a letter of a cause suggests, in a version of its pipeline.
type Key = (CauseId, JobId, Option<String>);

/// A count that was made, or none while the first is under way.
#[derive(Clone, Default)]
struct Kept {
    counts: Option<(Instant, Arc<CandidateCounts>)>,
    under_way: bool,
}

/// The counts that are known. Cheap to clone.
#[derive(Clone, Default)]
pub struct Counted(Arc<Mutex<HashMap<Key, Kept>>>);

impl Counted {
    fn all(&self) -> MutexGuard<'_, HashMap<Key, Kept>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is known, and whether it is to be counted by who asks.
    fn look(&self, key: &Key) -> (Option<Arc<CandidateCounts>>, bool) {
        let mut all = self.all();
        if all.len() >= KEPT_MAX && !all.contains_key(key) {
            all.retain(|_, kept| kept.under_way);
        }
        let has_room = all.values().filter(|kept| kept.under_way).count() < UNDER_WAY_MAX;
        let kept = all.entry(key.clone()).or_default();
        let is_fresh = kept.counts.as_ref().is_some_and(|(at, _)| at.elapsed() < HOLDS);
        let counts = kept.counts.as_ref().map(|(_, counts)| Arc::clone(counts));
        let is_wanted = !is_fresh && !kept.under_way && has_room;
        kept.under_way |= is_wanted;
        (counts, is_wanted)
    }
}

/// Whoever counts; however that ends, another may afterwards.
struct Turn(Counted, Key);

impl Turn {
    fn counted(self, counts: CandidateCounts) {
        self.0.all().entry(self.1.clone()).or_default().counts = Some((Instant::now(), Arc::new(counts)));
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if let Some(kept) = self.0.all().get_mut(&self.1) {
            kept.under_way = false;
        }
    }
}

/// On how many pages of these letters of a cause the rules match that a comparison names; nothing while that is being counted.
pub fn candidates(
    app: &App,
    cause: &CauseId,
    comparison: &Comparison,
    letters: &[DeadLetter],
) -> Option<Arc<CandidateCounts>> {
    let setting = app.setting();
    let pipeline = letters.first().and_then(|letter| app.pipeline(&letter.pipeline).ok());
    let version = pipeline.and_then(|pipeline| Some(pipeline.definition()?.as_str().to_owned()));
    let key = (cause.clone(), comparison.letter, version);
    let (counts, is_wanted) = app.counted().look(&key);
    if is_wanted {
        let turn = Turn(app.counted().clone(), key);
        let (app, comparison, letters) = (app.clone(), comparison.clone(), letters.to_vec());
        tokio::spawn(async move {
            let Ok(_place) = COUNTING.acquire().await else { return };
            let with = Comparing { setting: &setting, vault: app.vault() };
            turn.counted(app.redrive().count_candidates(&with, &comparison, &letters).await);
        });
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;
    use redrive_core::time::Timestamp;

    #[test]
    fn one_counts_and_the_others_wait_for_it() {
        let counted = Counted::default();
        let key =
            |n: u128| -> Key { ("3f9a1c2e".parse().expect("an id"), JobId::new(Timestamp::from_millis(0), n), None) };
        assert!(counted.look(&key(1)).1);
        assert_eq!(counted.look(&key(1)), (None, false), "somebody is at it");
        drop(Turn(counted.clone(), key(1)));
        assert_eq!(counted.look(&key(1)), (None, true), "nothing came of it");
        Turn(counted.clone(), key(1)).counted(CandidateCounts::default());
        assert!(matches!(counted.look(&key(1)), (Some(_), false)));
        for n in 2..2 * KEPT_MAX as u128 {
            counted.look(&key(n));
            Turn(counted.clone(), key(n)).counted(CandidateCounts::default());
        }
        assert!(counted.all().len() <= KEPT_MAX, "no more than that are kept");
    }

    #[test]
    fn so_many_are_under_way_at_most() {
        let counted = Counted::default();
        let key =
            |n: u128| -> Key { ("3f9a1c2e".parse().expect("an id"), JobId::new(Timestamp::from_millis(0), n), None) };
        let last = UNDER_WAY_MAX as u128;
        assert!((0..last).all(|n| counted.look(&key(n)).1));
        assert_eq!(counted.look(&key(last)), (None, false), "there are enough");
        drop(Turn(counted.clone(), key(0)));
        assert_eq!(counted.look(&key(last)), (None, true));
    }
}
