//! What must hold of the ledger.

use redrive_core::failures::Reason;
use redrive_core::jobs::{LeasedJob, Tally};
use redrive_core::policy::Policy;
use redrive_core::settlements::{Ending, Outcome, decide};

use super::script::{Shared, assert_sound, at, attach, bury, enqueue, job, lease_one, ledger, plain, settle_as};
use crate::StoreError;
use crate::contract::{CountDead, DeadBy, DeadFilter, Led, Tidy};

/// A job that is done after a replay is counted as recovered.
pub async fn a_replayed_letter_counts_as_recovered(store: Shared) {
    attach(&store, 1).await;
    enqueue(&store, vec![job(1, plain())]).await;
    let leased = lease_one(&store, at(0)).await;
    let replayed = LeasedJob { tally: Tally { attempts: 4, attempts_before: 4, replays: 1, ..leased.tally }, ..leased };
    let ending = Ending { at: at(1), duration: None, worker: None, chance: 0.0 };
    let decision = decide(&Policy::default(), &replayed, Outcome::Done, ending);
    settle_as(&store, &replayed, decision, at(1)).await;
    let ledger = ledger(&store).await;
    assert_eq!((ledger.done, ledger.recovered), (1, 1));
    assert_sound(&store).await;
}

/// Tidying up changes nothing that can be read, and comes to an end.
pub async fn tidying_up_shows_nowhere(store: Shared) {
    attach(&store, 1).await;
    for n in 0..3 {
        bury(&store, job(n, plain()), Reason::Blocked, "blocked", at(0)).await;
    }
    let counted = CountDead { by: DeadBy::Target, filter: DeadFilter::default(), limit: 10 };
    let before = store.count_dead(counted.clone()).await.expect("counted");
    assert_eq!(before.iter().map(|count| count.count).sum::<i64>(), 3);
    let mut steps = 0;
    while store.tidy(Tidy { limit: 1, led: None }).await.expect("tidied").more {
        steps += 1;
        assert!(steps < 100, "there is an end to it");
    }
    assert_eq!(store.count_dead(counted).await.expect("counted"), before);
    assert_sound(&store).await;
    let led = Some(Led { name: "store".to_owned(), term: 77 });
    let refused = store.tidy(Tidy { limit: 1, led }).await.expect_err("somebody else leads");
    assert!(matches!(refused, StoreError::Conflict { .. }), "{refused}");
}
