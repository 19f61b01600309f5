//! What must hold of rounds.

use redrive_core::failures::Reason;
use redrive_core::jobs::NewJob;
use redrive_core::settlements::Outcome;
use serde_json::json;

use super::replays::replay_one;
use super::script::{
    Shared, ada, assert_sound, at, attach, bury, dead, enqueue, job, lease_one, ledger, pipeline, plain, settle,
    timeout, within,
};
use crate::contract::{
    BeginRound, CancelJobs, DeadFilter, DiscardDead, ForgetHistory, ListActivity, ListRounds, RoundView,
};

const DAY: i64 = 86_400;

fn of(n: u128, round: &str) -> NewJob {
    NewJob { round: round.parse().ok(), ..job(n, json!({"key": "k"})) }
}

async fn rounds(store: &Shared) -> Vec<RoundView> {
    store.list_rounds(ListRounds { pipeline: None, limit: 9, within: Vec::new() }).await.expect("listed")
}

/// Queued, leased, done, dead and discarded.
fn states(round: &RoundView) -> [i64; 5] {
    assert!(round.balances(), "{round:?}");
    [round.queued, round.leased, round.done, round.dead, round.discarded]
}

/// Each move of a job is in the ledger of its round; jobs of no round are in none.
pub async fn a_round_has_a_ledger_of_its_own(store: Shared) {
    attach(&store, 1).await;
    enqueue(&store, vec![of(1, "monday"), of(2, "")]).await;
    assert_eq!(rounds(&store).await.iter().map(states).collect::<Vec<_>>(), [[1, 0, 0, 0, 0]]);
    let leased = lease_one(&store, at(0)).await;
    assert_eq!(states(&rounds(&store).await[0]), [0, 1, 0, 0, 0]);
    settle(&store, &leased, timeout(), at(1)).await;
    assert_eq!(states(&rounds(&store).await[0]), [1, 0, 0, 0, 0]);
    settle(&store, &lease_one(&store, at(2)).await, Outcome::Done, at(2)).await;
    settle(&store, &lease_one(&store, at(99)).await, Outcome::Done, at(99)).await;
    assert_eq!(states(&rounds(&store).await[0]), [0, 0, 1, 0, 0]);
    let recovered = bury(&store, of(3, "tuesday"), Reason::Blocked, "no", at(100)).await;
    settle(&store, &replay_one(&store).await, Outcome::Done, at(203)).await;
    let given_up = bury(&store, NewJob { key: None, ..of(4, "tuesday") }, Reason::Blocked, "no", at(204)).await;
    assert_ne!(recovered, given_up);
    let discard = DiscardDead { ids: vec![given_up], by: ada(), why: "old".into(), now: at(205) };
    store.discard_dead(discard).await.expect("discarded");
    let cancelled = NewJob { key: None, ..of(5, "tuesday") };
    enqueue(&store, vec![cancelled.clone()]).await;
    let cancel = CancelJobs { ids: vec![cancelled.id], by: ada(), why: "no".into(), now: at(206) };
    store.cancel_jobs(cancel).await.expect("cancelled");
    let listed = rounds(&store).await;
    let tuesday = listed.iter().find(|round| round.round.as_str() == "tuesday").expect("listed");
    assert_eq!((tuesday.accepted, states(tuesday)), (3, [0, 0, 1, 0, 2]));
    assert_eq!(ledger(&store).await.accepted, 5, "that of the pipeline has all of them");
    let other = ListRounds { pipeline: "other".parse().ok(), limit: 9, within: Vec::new() };
    assert!(store.list_rounds(other).await.expect("listed").is_empty());
    assert_eq!(
        store
            .list_rounds(ListRounds { pipeline: Some(pipeline()), limit: 1, within: Vec::new() })
            .await
            .expect("listed")
            .len(),
        1
    );
    let own = async |patterns: &[&str]| {
        let params = ListRounds { pipeline: None, limit: 9, within: within(patterns) };
        store.list_rounds(params).await.expect("listed").len()
    };
    assert_eq!((own(&["suite"]).await, own(&["shop", "SUITE*"]).await), (2, 0));
    assert_sound(&store).await;
}

/// A round goes when all of its jobs are forgotten, and not before.
pub async fn a_round_of_which_nothing_is_known_is_forgotten(store: Shared) {
    attach(&store, 1).await;
    enqueue(&store, vec![of(1, "monday")]).await;
    settle(&store, &lease_one(&store, at(0)).await, Outcome::Done, at(1)).await;
    bury(&store, NewJob { round: "tuesday".parse().ok(), ..job(2, plain()) }, Reason::Blocked, "no", at(1)).await;
    let params = ForgetHistory { pipeline: pipeline(), before: at(2 * DAY), limit: 9, led: None, now: at(100 * DAY) };
    store.forget_receipts(params.clone()).await.expect("forgotten");
    assert_sound(&store).await;
    assert_eq!(rounds(&store).await.iter().map(|round| round.forgotten).sum::<i64>(), 1);
    store.forget_counts(params).await.expect("forgotten");
    let left: Vec<String> = rounds(&store).await.iter().map(|round| round.round.to_string()).collect();
    assert_eq!(left, ["tuesday"], "its letter is still there");
    let of = |round: &str| DeadFilter { round: round.parse().ok(), ..DeadFilter::default() };
    assert_eq!((dead(&store, of("tuesday")).await.len(), dead(&store, of("monday")).await.len()), (1, 0));
    assert_sound(&store).await;
}

/// Whoever wants a round that somebody else began, or that has jobs, has to take another.
pub async fn a_round_begins_once(store: Shared) {
    let begin = |round: &str| {
        let (pipeline, round) = (pipeline(), round.parse().expect("a name"));
        BeginRound { pipeline, round, by: ada(), now: at(1) }
    };
    let (one, other) = tokio::join!(store.begin_round(begin("monday")), store.begin_round(begin("monday")));
    assert_ne!(one.expect("answered"), other.expect("answered"), "one of them gets it");
    let listed = rounds(&store).await;
    assert_eq!((listed.len(), listed[0].accepted, listed[0].begun_at), (1, 0, at(1)));
    enqueue(&store, vec![of(1, "monday"), of(2, "tuesday")]).await;
    assert!(!store.begin_round(begin("monday")).await.expect("answered"));
    assert!(!store.begin_round(begin("tuesday")).await.expect("answered"));
    assert_eq!(rounds(&store).await.iter().map(|round| round.accepted).collect::<Vec<_>>(), [1, 1]);
    let of = ListActivity { pipeline: Some(pipeline()), limit: 9, ..ListActivity::default() };
    let noted = store.list_activity(of).await.expect("listed").items;
    let told: Vec<_> = noted.iter().map(|a| (a.verb.as_str(), a.object.as_str(), &a.by)).collect();
    assert_eq!(told, [("begin", "round monday", &ada())], "who began one is noted, who did not is not");
    assert_sound(&store).await;
}
