//! What must hold of two handles to one store, as two processes have them: who is faster wins, and what is sent again because
//! its answer was lost changes nothing.

use std::collections::BTreeSet;
use std::sync::Arc;

use redrive_core::failures::Reason;
use redrive_core::policy::Bounds;
use redrive_core::settlements::Outcome;

use super::script::{
    Shared, ada, assert_sound, at, attach, bury, enqueue, job, lease_all, lease_of, lease_one, lease_past_breakers,
    ledger, plain, settle, try_enqueue,
};
use crate::contract::{CancelJobs, DiscardDead, EnqueuedJob, Lane, Settled};

/// Whatever two processes ask for at once, each job is leased once and none is left out.
pub async fn a_job_is_leased_once(first: Shared, second: Shared) {
    attach(&first, 1).await;
    enqueue(&first, (0..200).map(|n| job(n, plain())).collect()).await;
    let take = |store: Shared, start: i64| async move {
        let mut ids = Vec::new();
        for step in 0..60 {
            ids.extend(lease_all(&store, 7, at(start + step)).await.jobs.into_iter().map(|job| job.lease.job));
        }
        ids
    };
    let (here, there) = tokio::join!(take(Arc::clone(&first), 0), take(Arc::clone(&second), 1_000));
    let all: BTreeSet<_> = here.iter().chain(&there).copied().collect();
    assert_eq!((here.len() + there.len(), all.len()), (200, 200));
    assert_sound(&second).await;
}

/// A call that is sent again, by whichever handle, has no second effect and is answered as the first was.
pub async fn resending_changes_nothing(first: Shared, second: Shared) {
    attach(&first, 1).await;
    let jobs = || (1..=3).map(|n| job(n, serde_json::json!({"key": format!("k{n}")}))).collect::<Vec<_>>();
    let accepted = enqueue(&first, jobs()).await;
    assert!(accepted.iter().all(|answer| matches!(answer, EnqueuedJob::Accepted(_))));
    assert_eq!(
        try_enqueue(&second, jobs(), Bounds::default()).await.expect("answered"),
        accepted,
        "the same jobs again"
    );
    assert_eq!(ledger(&first).await.accepted, 3);

    let asked = lease_of(Lane::Queue, 2, at(1));
    let leased = lease_past_breakers(&first, asked.clone()).await.jobs;
    assert_eq!(leased.len(), 2);
    let again = lease_past_breakers(&second, asked).await.jobs;
    assert_eq!(again, leased, "the same token gets what it has");
    assert_eq!(ledger(&second).await.leased, 2);

    assert_eq!(settle(&first, &leased[0], Outcome::Done, at(2)).await, Settled::Applied);
    assert_eq!(settle(&second, &leased[0], Outcome::Done, at(2)).await, Settled::Applied, "it was");
    let counts = ledger(&first).await;
    assert_eq!((counts.done, counts.leased, counts.queued), (1, 1, 1), "a settlement counts once");
}

/// A job without a key that is sent again is the one that was accepted, wherever that is by then, and however full the pipeline is.
pub async fn what_is_sent_again_is_accepted_once(first: Shared, second: Shared) {
    attach(&first, 1).await;
    let jobs = || (1..=5).map(|n| job(n, plain())).collect::<Vec<_>>();
    let accepted = enqueue(&first, jobs()).await;
    let leased = lease_all(&first, 3, at(1)).await.jobs;
    settle(&first, &leased[0], Outcome::Done, at(2)).await;
    settle(&first, &leased[1], super::script::fatal(Reason::SchemaValidation, "no"), at(2)).await;
    let cancel = CancelJobs { ids: vec![job(4, plain()).id], by: ada(), why: "x".into(), now: at(2) };
    second.cancel_jobs(cancel).await.expect("cancelled");
    enqueue(&second, vec![job(9, plain())]).await;
    let before = ledger(&first).await;
    assert_eq!((before.done, before.dead, before.leased, before.discarded, before.queued), (1, 1, 1, 1, 2));
    for bound in [None, Some(1)] {
        let bounds = Bounds { queued_max: bound, letters_max: bound };
        assert_eq!(try_enqueue(&second, jobs(), bounds).await.expect("answered"), accepted, "{bound:?}");
    }
    assert_eq!(ledger(&first).await, before);
    assert_sound(&first).await;
}

/// Two processes whose clocks are minutes apart lose and double nothing.
pub async fn clocks_may_differ(first: Shared, second: Shared) {
    attach(&first, 1).await;
    enqueue(&first, vec![job(1, plain()), job(2, plain())]).await;
    let early = lease_one(&first, at(0)).await;
    let late = lease_one(&second, at(300)).await;
    assert_ne!(early.lease.job, late.lease.job);
    assert_eq!(settle(&second, &early, Outcome::Done, at(300)).await, Settled::Applied, "only the token counts");
    assert_eq!(settle(&first, &late, super::script::timeout(), at(1)).await, Settled::Applied);
    let retried = lease_one(&second, at(600)).await;
    assert!(retried.lease.epoch > late.lease.epoch, "epochs do not go by clocks");
    assert_eq!(settle(&second, &retried, Outcome::Done, at(600)).await, Settled::Applied);
    assert_eq!(ledger(&first).await.done, 2);
    assert_sound(&first).await;
}

/// What was decided from something that has changed meanwhile is not written.
pub async fn stale_guards_write_nothing(first: Shared, second: Shared) {
    attach(&first, 1).await;
    let letter = bury(&first, job(1, plain()), Reason::Blocked, "no", at(0)).await;
    enqueue(&first, vec![job(2, plain())]).await;
    let held = lease_one(&first, at(1)).await;
    let cancel = CancelJobs { ids: vec![held.lease.job], by: ada(), why: "x".into(), now: at(2) };
    assert_eq!(second.cancel_jobs(cancel.clone()).await.expect("cancelled"), [held.lease.job]);
    assert_eq!(settle(&first, &held, Outcome::Done, at(3)).await, Settled::Stale, "its lease is gone");
    assert_eq!(first.cancel_jobs(cancel).await.expect("asked"), []);
    let discard = DiscardDead { ids: vec![letter], by: ada(), why: "x".into(), now: at(4) };
    let (here, there) = tokio::join!(first.discard_dead(discard.clone()), second.discard_dead(discard));
    assert_eq!(here.expect("asked").len() + there.expect("asked").len(), 1, "one of them was faster");
    let counts = ledger(&first).await;
    assert_eq!((counts.discarded, counts.open(), counts.dead), (2, 0, 0));
}
