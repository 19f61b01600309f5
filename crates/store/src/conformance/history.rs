//! What must hold of forgetting.

use redrive_core::failures::Reason;
use redrive_core::policy::Bounds;
use redrive_core::settlements::Outcome;
use redrive_core::state::JobState;
use redrive_core::time::Timestamp;
use serde_json::json;

use super::replays::replay_one;
use super::script::{
    Shared, ada, assert_sound, at, attach, bury, enqueue, job, lease_all, lease_one, ledger, pipeline, plain, settle,
    timeout, worker,
};
use crate::contract::{
    CancelJobs, DiscardDead, EnqueueJobs, EnqueuedJob, ExpireDead, FoldCounts, ForgetHistory, ForgetRecords,
    ForgetReplays, Lead, Led, ListCauses,
};
use crate::error::StoreError;

const DAY: i64 = 86_400;

/// Forgets, in pieces of two, what was over before a time; says in how many.
async fn forget(store: &Shared, before: Timestamp, now: Timestamp) -> usize {
    let params = ForgetHistory { pipeline: pipeline(), before, limit: 2, led: None, now };
    let mut pieces = 1;
    while store.forget_receipts(params.clone()).await.expect("forgotten") {
        pieces += 1;
        assert!(ledger(store).await.balances(), "in the middle");
        assert_sound(store).await;
    }
    pieces
}

async fn done(store: &Shared, n: u128, key: &str) {
    enqueue(store, vec![job(n, json!({"key": key}))]).await;
    let leased = lease_one(store, at(0)).await;
    settle(store, &leased, Outcome::Done, at(1)).await;
}

async fn is_known(store: &Shared, n: u128) -> bool {
    store.get_job(job(n, plain()).id).await.expect("asked").is_some()
}

/// What was forgotten is still counted, and the audit adds it. A key that was forgotten is free.
pub async fn what_is_forgotten_is_counted(store: Shared) {
    attach(&store, 1).await;
    for n in 1..=5 {
        done(&store, n, &format!("k{n}")).await;
    }
    bury(&store, job(6, plain()), Reason::Blocked, "no", at(1)).await;
    settle(&store, &replay_one(&store).await, Outcome::Done, at(103)).await;
    let id = bury(&store, job(7, json!({"key": "k7"})), Reason::Blocked, "no", at(104)).await;
    let discard = DiscardDead { ids: vec![id], by: ada(), why: "old".into(), now: at(105) };
    store.discard_dead(discard).await.expect("discarded");
    let before = ledger(&store).await;
    assert!(forget(&store, at(2 * DAY), at(100 * DAY)).await > 2, "piece by piece");
    let after = ledger(&store).await;
    assert_eq!((after.accepted, after.done, after.recovered, after.discarded), (7, 6, 1, 1));
    assert_eq!((after.forgotten.done, after.forgotten.recovered, after.forgotten.discarded), (6, 1, 1));
    assert_eq!(before.accepted, after.accepted);
    for n in 1..=7 {
        assert!(!is_known(&store, n).await, "{n}");
    }
    let again = enqueue(&store, vec![job(8, json!({"key": "k1"}))]).await;
    assert!(matches!(again[0], EnqueuedJob::Accepted(_)), "{again:?}");
    assert_sound(&store).await;
}

/// Nothing is forgotten of what is queued, leased or dead, or of other pipelines, or is not old enough.
pub async fn what_is_open_is_not_forgotten(store: Shared) {
    attach(&store, 1).await;
    bury(&store, job(1, json!({"key": "dead"})), Reason::Blocked, "no", at(1)).await;
    enqueue(&store, vec![job(2, json!({"key": "leased"}))]).await;
    lease_all(&store, 9, at(2)).await;
    enqueue(&store, vec![job(3, json!({"key": "queued"}))]).await;
    let other = "other".parse().expect("a name");
    let jobs = vec![job(4, json!({"key": "elsewhere"}))];
    store
        .enqueue(EnqueueJobs { pipeline: other, jobs: jobs.into(), bounds: Bounds::default(), now: at(0) })
        .await
        .expect("accepted");
    forget(&store, at(50 * DAY), at(100 * DAY)).await;
    for (n, key) in [(1, "dead"), (2, "leased"), (3, "queued")] {
        assert!(is_known(&store, n).await, "{key}");
        let again = enqueue(&store, vec![job(10 + n, json!({"key": key}))]).await;
        assert!(matches!(again[0], EnqueuedJob::Known { .. }), "{key}");
    }
    assert_eq!(ledger(&store).await.forgotten, Default::default());
    assert_sound(&store).await;
}

/// A key's age starts anew on each day on which it is met: a file that is handed in daily is never done again.
pub async fn a_key_that_is_met_again_is_kept(store: Shared) {
    attach(&store, 1).await;
    done(&store, 1, "daily").await;
    done(&store, 2, "once").await;
    for day in 1..=200 {
        let now = at(day * DAY);
        let jobs = vec![job(1_000 + day as u128, json!({"key": "daily"}))];
        let met = EnqueueJobs { pipeline: pipeline(), jobs: jobs.into(), bounds: Bounds::default(), now };
        let answer = store.enqueue(met).await.expect("asked");
        assert!(matches!(answer[0], EnqueuedJob::Known { state: JobState::Done, .. }), "day {day}: {answer:?}");
        forget(&store, at((day - 90) * DAY), now).await;
    }
    assert!(is_known(&store, 1).await && !is_known(&store, 2).await);
    assert_eq!(ledger(&store).await.forgotten.done, 1);
    assert_sound(&store).await;
}

/// All receipts are looked at once a day, in laps that go on where the last piece ended.
pub async fn receipts_are_looked_at_once_a_day(store: Shared) {
    attach(&store, 1).await;
    done(&store, 1, "a").await;
    assert_eq!(forget(&store, at(0), at(10)).await, 1, "nothing is old enough");
    let params = |now| ForgetHistory { pipeline: pipeline(), before: at(DAY * 2), limit: 9, led: None, now };
    store.forget_receipts(params(at(20))).await.expect("forgotten");
    assert!(is_known(&store, 1).await, "it was looked at ten seconds ago");
    store.forget_receipts(params(at(10 + DAY))).await.expect("forgotten");
    assert!(!is_known(&store, 1).await);
    assert_sound(&store).await;
}

/// A settlement that comes after its job was forgotten is kept for a while, not for ever; one whose job is there stays with it.
pub async fn a_settlement_that_came_after_all_was_forgotten_goes(store: Shared) {
    attach(&store, 1).await;
    enqueue(&store, vec![job(1, plain()), job(2, plain())]).await;
    let [gone, stays] = [lease_one(&store, at(0)).await, lease_one(&store, at(0)).await];
    for leased in [&gone, &stays] {
        settle(&store, leased, Outcome::Returned, at(1)).await;
        settle(&store, leased, Outcome::Done, at(2)).await;
    }
    let late = async |n| store.get_job(job(n, plain()).id).await.expect("asked").map(|job| job.late.len());
    assert_eq!((late(1).await, late(2).await), (Some(1), Some(1)));
    let cancel = CancelJobs { ids: vec![gone.lease.job], by: ada(), why: "x".into(), now: at(3) };
    store.cancel_jobs(cancel).await.expect("cancelled");
    forget(&store, at(2 * DAY), at(100 * DAY)).await;
    settle(&store, &gone, timeout(), at(3 * DAY)).await;
    let records = |before, limit| ForgetRecords { before, limit, led: None };
    while store.forget_records(records(at(2 * DAY), 1)).await.expect("forgotten") {}
    assert_eq!(late(2).await, Some(1), "its job is there");
    assert!(store.forget_records(records(at(4 * DAY), 1)).await.expect("forgotten"), "there was one more");
    assert!(!store.forget_records(records(at(4 * DAY), 1)).await.expect("forgotten"));
    assert_eq!(late(2).await, Some(1));
    assert_sound(&store).await;
}

/// However old it is, a target of which letters are dead stays with their cause.
pub async fn a_target_is_known_as_long_as_its_letters_are_dead(store: Shared) {
    attach(&store, 1).await;
    for (n, host) in [(1, "a.example"), (2, "b.example")] {
        bury(&store, job(n, json!({"url": format!("https://{host}/")})), Reason::HandlerError, "no", at(1)).await;
    }
    let targets = async || {
        let all = ListCauses::all(9, at(2));
        store.list_causes(all).await.expect("listed")[0].targets.clone()
    };
    let discard = DiscardDead { ids: vec![job(1, plain()).id], by: ada(), why: "old".into(), now: at(2) };
    store.discard_dead(discard).await.expect("discarded");
    assert_eq!(targets().await, ["a.example", "b.example"]);
    let params = ForgetHistory { pipeline: pipeline(), before: at(DAY), limit: 9, led: None, now: at(100 * DAY) };
    while store.forget_counts(params.clone()).await.expect("forgotten") {}
    assert_eq!(targets().await, ["b.example"]);
    assert_sound(&store).await;
}

/// Who leads no more does no more of what is for the leader to do, and is told.
pub async fn only_who_leads_goes_on_forgetting(store: Shared) {
    attach(&store, 1).await;
    attach(&store, 2).await;
    done(&store, 1, "k").await;
    bury(&store, job(2, plain()), Reason::Blocked, "no", at(1)).await;
    let names = vec!["pipeline suite".to_owned()];
    let lead = |n, secs| Lead { names: names.clone(), holder: worker(n), until: at(secs + 15), now: at(secs) };
    assert_eq!(store.lead(lead(1, 0)).await.expect("asked"), [Some(1)]);
    assert_eq!(store.lead(lead(2, 60)).await.expect("asked"), [Some(2)]);
    let led = |term| Some(Led { name: "pipeline suite".into(), term });
    let history = |term| ForgetHistory {
        pipeline: pipeline(),
        before: at(2 * DAY),
        limit: 9,
        led: led(term),
        now: at(100 * DAY),
    };
    let expire = |term| ExpireDead { pipeline: pipeline(), before: at(DAY), limit: 9, led: led(term), now: at(DAY) };
    let refused =
        |answer: Option<StoreError>| assert!(matches!(answer, Some(StoreError::Conflict { .. })), "{answer:?}");
    let fold = |term| FoldCounts { before: at(DAY), limit: 9, led: led(term) };
    refused(store.forget_receipts(history(1)).await.err());
    refused(store.forget_counts(history(1)).await.err());
    refused(store.expire_dead(expire(1)).await.err());
    refused(store.fold_counts(fold(1)).await.err());
    refused(store.forget_records(ForgetRecords { before: at(DAY), limit: 9, led: led(1) }).await.err());
    refused(store.forget_replays(ForgetReplays { before: at(DAY), limit: 9, led: led(1) }).await.err());
    assert!(is_known(&store, 1).await && ledger(&store).await.dead == 1, "nothing was done");
    store.forget_receipts(history(2)).await.expect("forgotten");
    assert_eq!(store.expire_dead(expire(2)).await.expect("expired"), 1);
    store.fold_counts(fold(2)).await.expect("folded");
    assert!(!is_known(&store, 1).await);
}
