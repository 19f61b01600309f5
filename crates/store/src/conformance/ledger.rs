//! What must hold of the ledger.

use redrive_core::failures::Reason;
use redrive_core::jobs::{LeasedJob, Tally};
use redrive_core::policy::Policy;
use redrive_core::settlements::{Ending, Outcome, decide};
use serde_json::json;

use super::script::{
    Shared, ada, assert_sound, at, attach, enqueue, fatal, job, lease_all, lease_one, ledger, plain, settle, settle_as,
    timeout,
};
use crate::contract::{CancelJobs, DeadFilter, DiscardDead};

/// A long walk through every verb, after which everything still adds up.
pub async fn any_history_adds_up(store: Shared) {
    attach(&store, 1).await;
    let mut seed = 0x9E37_79B9_7F4A_7C15_u64;
    let mut roll = move |sides: u64| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed % sides
    };
    let mut leased: Vec<LeasedJob> = Vec::new();
    let mut accepted = 0;
    for step in 0..600_i64 {
        let now = at(step);
        match roll(8) {
            0 | 1 => {
                let input = json!({"key": format!("k{}", roll(400)), "url": format!("https://h{}/", roll(3))});
                enqueue(&store, vec![job(1_000 + step as u128, input)]).await;
            }
            2 | 3 => leased.extend(lease_all(&store, 1 + roll(3) as u32, now).await.jobs),
            4..=6 if !leased.is_empty() => {
                let held = leased.swap_remove(roll(leased.len() as u64) as usize);
                let outcome = match roll(6) {
                    0 | 1 => Outcome::Done,
                    2 => Outcome::Returned,
                    3 => fatal(Reason::SchemaValidation, "no"),
                    4 => Outcome::Crashed(redrive_core::failures::FailureReport::message("SIGKILL")),
                    _ => timeout(),
                };
                settle(&store, &held, outcome.clone(), now).await;
                settle(&store, &held, outcome, now).await;
            }
            7 => {
                let dead = super::script::dead(&store, DeadFilter::default()).await;
                let ids = dead.iter().take(1).map(|letter| letter.id).collect();
                let params = DiscardDead { ids, by: ada(), why: "w".into(), now };
                store.discard_dead(params).await.expect("discarded");
                let ids = leased.first().map(|held| held.lease.job).into_iter().collect();
                store.cancel_jobs(CancelJobs { ids, by: ada(), why: "w".into(), now }).await.expect("cancelled");
            }
            _ => {}
        }
        let ledger = ledger(&store).await;
        assert!(ledger.balances(), "after step {step}: {ledger:?}");
        accepted = ledger.accepted;
    }
    assert!(accepted > 80, "the walk did something");
    assert_sound(&store).await;
}

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
