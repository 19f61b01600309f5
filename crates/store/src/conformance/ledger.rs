//! What must hold of the ledger.

use redrive_core::jobs::{LeasedJob, Tally};
use redrive_core::policy::Policy;
use redrive_core::settlements::{Ending, Outcome, decide};

use super::script::{Shared, assert_sound, at, attach, enqueue, job, lease_one, ledger, plain, settle_as};

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
