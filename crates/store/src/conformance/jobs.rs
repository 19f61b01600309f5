//! What must hold of jobs.

use std::sync::Arc;

use redrive_core::failures::Reason;
use redrive_core::ids::JobId;
use redrive_core::settlements::Outcome;
use redrive_core::state::JobState;
use serde_json::json;

use super::script::{
    Shared, assert_sound, at, attach, bury, enqueue, job, lease_all, lease_one, ledger, pipeline, plain, settle,
    timeout, try_enqueue,
};
use crate::StoreError;
use crate::contract::{CancelJobs, DeadFilter, EnqueueJobs, EnqueuedJob, JobFilter, ListDead, ListJobs, Settled};

/// Accepted jobs are in the ledger.
pub async fn accepts_and_counts(store: Shared) {
    let answers = enqueue(&store, vec![job(1, plain()), job(2, plain())]).await;
    assert_eq!(answers.len(), 2);
    assert!(answers.iter().all(|answer| matches!(answer, EnqueuedJob::Accepted(_))));
    let ledger = ledger(&store).await;
    assert_eq!((ledger.accepted, ledger.queued), (2, 2));
    assert_sound(&store).await;
}

/// A job whose key is known is not accepted again, in whatever state the first one is.
pub async fn a_key_is_accepted_once(store: Shared) {
    attach(&store, 1).await;
    let first = job(1, json!({"key": "k"}));
    enqueue(&store, vec![first.clone(), job(2, json!({"key": "k"}))]).await;
    let again = |state, ended_at| EnqueuedJob::Known { id: first.id, state, ended_at };
    assert_eq!(enqueue(&store, vec![job(3, json!({"key": "k"}))]).await, [again(JobState::Queued, None)]);
    let leased = lease_one(&store, at(0)).await;
    assert_eq!(enqueue(&store, vec![job(4, json!({"key": "k"}))]).await, [again(JobState::Leased, None)]);
    settle(&store, &leased, Outcome::Done, at(1)).await;
    assert_eq!(enqueue(&store, vec![job(5, json!({"key": "k"}))]).await, [again(JobState::Done, Some(at(1)))]);
    assert_eq!(ledger(&store).await.accepted, 1);
    let id = bury(&store, job(6, json!({"key": "d"})), Reason::Blocked, "no", at(2)).await;
    let dead = EnqueuedJob::Known { id, state: JobState::Dead, ended_at: Some(at(2)) };
    assert_eq!(enqueue(&store, vec![job(7, json!({"key": "d"}))]).await, [dead]);
    assert_sound(&store).await;
}

/// Two pipelines may use the same key.
pub async fn keys_belong_to_a_pipeline(store: Shared) {
    enqueue(&store, vec![job(1, json!({"key": "k"}))]).await;
    let other = "other".parse().expect("a name");
    let jobs = vec![job(2, json!({"key": "k"}))];
    let answer = store.enqueue(EnqueueJobs { pipeline: other, jobs, queued_max: None, now: at(0) }).await;
    assert!(matches!(answer.expect("accepted")[0], EnqueuedJob::Accepted(_)));
}

/// A batch that does not fit is refused as a whole; jobs that are known need no room.
pub async fn a_full_queue_refuses_all(store: Shared) {
    let keyed = |n: u128| job(n, json!({"key": n.to_string()}));
    try_enqueue(&store, vec![keyed(1), keyed(2)], Some(3)).await.expect("two fit");
    let refused = try_enqueue(&store, vec![keyed(3), keyed(4)], Some(3)).await;
    assert!(matches!(refused, Err(StoreError::QueueFull { queued: 2, max: 3, .. })), "{refused:?}");
    assert_eq!(ledger(&store).await.accepted, 2, "nothing of the batch was accepted");
    let again = vec![keyed(1), keyed(2), keyed(3)];
    try_enqueue(&store, again, Some(3)).await.expect("only one of them is new");
    try_enqueue(&store, vec![keyed(1)], Some(1)).await.expect("a known job needs no room");
    assert_eq!(ledger(&store).await.queued, 3);
    assert_sound(&store).await;
}

/// Lists find jobs by what they are and page through all of them.
pub async fn lists_filter_and_page(store: Shared) {
    attach(&store, 1).await;
    let jobs = (1..=7).map(|n| job(n, json!({"url": format!("https://host{}/", n % 2), "n": n})));
    enqueue(&store, jobs.collect()).await;
    let leased = lease_one(&store, at(0)).await;
    settle(&store, &leased, timeout(), at(0)).await;
    let done = lease_one(&store, at(0)).await;
    settle(&store, &done, Outcome::Done, at(0)).await;

    let count = async |filter: JobFilter| {
        let page = store.list_jobs(ListJobs { filter, limit: 100, cursor: None }).await.expect("listed");
        page.items.len()
    };
    let all = JobFilter::default;
    assert_eq!(count(all()).await, 7);
    assert_eq!(count(JobFilter { states: vec![JobState::Queued], ..all() }).await, 6);
    assert_eq!(count(JobFilter { states: vec![JobState::Done], ..all() }).await, 1);
    assert_eq!(count(JobFilter { states: vec![JobState::Leased], ..all() }).await, 0);
    assert_eq!(count(JobFilter { states: vec![JobState::Leased, JobState::Done], ..all() }).await, 1);
    assert_eq!(count(JobFilter { target: Some("host1".into()), ..all() }).await, 4);
    assert_eq!(count(JobFilter { reason: Some(Reason::Timeout), ..all() }).await, 1);
    assert_eq!(count(JobFilter { code: Some("ETIMEDOUT".into()), ..all() }).await, 1);
    assert_eq!(count(JobFilter { text: Some("\"n\":7".into()), ..all() }).await, 1);
    assert_eq!(count(JobFilter { text: Some("%".into()), ..all() }).await, 0, "text is text, not a pattern");
    assert_eq!(count(JobFilter { pipeline: Some(pipeline()), since: Some(at(0)), ..all() }).await, 7);
    assert_eq!(count(JobFilter { until: Some(at(0)), ..all() }).await, 0);

    let mut seen = Vec::new();
    let mut cursor = None;
    loop {
        let page = store.list_jobs(ListJobs { filter: all(), limit: 3, cursor }).await.expect("listed");
        seen.extend(page.items.iter().map(|job| job.id));
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    let newest_first: Vec<JobId> = (1..=7).rev().map(|n| job(n, plain()).id).collect();
    assert_eq!(seen, newest_first);
    let nonsense = ListJobs { filter: all(), limit: 3, cursor: Some("nonsense".into()) };
    assert!(matches!(store.list_jobs(nonsense).await, Err(StoreError::InvalidCursor(_))));
}

/// A job can be looked at wherever it is.
pub async fn shows_jobs_in_every_state(store: Shared) {
    attach(&store, 1).await;
    let state = async |id: JobId| store.get_job(id).await.expect("looked up").map(|detail| detail.job.state);
    let new = job(1, json!({"key": "k", "url": "https://example.com/"}));
    let id = new.id;
    assert_eq!(state(id).await, None);
    enqueue(&store, vec![new]).await;
    assert_eq!(state(id).await, Some(JobState::Queued));
    let first = lease_one(&store, at(0)).await;
    assert_eq!(state(id).await, Some(JobState::Leased));
    settle(&store, &first, timeout(), at(0)).await;
    let detail = store.get_job(id).await.expect("looked up").expect("there");
    assert_eq!((detail.job.attempts, detail.failures.len()), (1, 1));
    assert_eq!(detail.job.due_at, Some(at(1)));
    assert_eq!(detail.job.reason, Some(Reason::Timeout));
    let second = lease_one(&store, at(1)).await;
    settle(&store, &second, Outcome::Done, at(2)).await;
    let detail = store.get_job(id).await.expect("looked up").expect("there");
    assert_eq!((detail.job.state, detail.job.attempts, detail.failures.len()), (JobState::Done, 2, 1));
    assert_eq!(detail.job.ended_at, Some(at(2)));
}

/// Cancelling discards with a record; the late settlement of a cancelled job changes nothing.
pub async fn cancels_queued_and_leased_jobs(store: Shared) {
    attach(&store, 1).await;
    enqueue(&store, vec![job(1, plain()), job(2, plain()), job(3, plain())]).await;
    let leased = lease_one(&store, at(0)).await;
    let ids = vec![leased.lease.job, job(2, plain()).id, job(99, plain()).id];
    let params = CancelJobs { ids, actor: "ada".into(), why: "wrong file".into(), now: at(5) };
    let cancelled = store.cancel_jobs(params.clone()).await.expect("cancelled");
    assert_eq!(cancelled.len(), 2, "the unknown one is passed over");
    assert_eq!(store.cancel_jobs(params).await.expect("cancelled"), [], "twice changes nothing");
    let ledger = ledger(&store).await;
    assert_eq!((ledger.queued, ledger.leased, ledger.discarded), (1, 0, 2));

    assert_eq!(settle(&store, &leased, Outcome::Done, at(6)).await, Settled::Stale);
    let detail = store.get_job(leased.lease.job).await.expect("looked up").expect("there");
    assert_eq!((detail.job.state, detail.late.len()), (JobState::Discarded, 1));
    let record = detail.discard.expect("a record");
    assert_eq!((record.actor.as_str(), record.why.as_str(), record.at), ("ada", "wrong file", at(5)));
    assert_eq!(lease_all(&store, 10, at(9)).await.jobs.len(), 1);
    assert_sound(&store).await;
}

/// A cursor that no list has given out fails its caller, and nobody who asks at the same time.
pub async fn a_bad_cursor_fails_only_its_caller(store: Shared) {
    let mut callers = tokio::task::JoinSet::new();
    for n in 0..100 {
        let (lister, pusher) = (Arc::clone(&store), Arc::clone(&store));
        callers.spawn(async move {
            let cursor = Some("no cursor".to_owned());
            let jobs = ListJobs { filter: JobFilter::default(), limit: 1, cursor: cursor.clone() };
            let letters = ListDead { filter: DeadFilter::default(), limit: 1, cursor, with_failures: false };
            let (jobs, letters) = tokio::join!(lister.list_jobs(jobs), lister.list_dead(letters));
            assert!(matches!(jobs, Err(StoreError::InvalidCursor(_))), "{jobs:?}");
            assert!(matches!(letters, Err(StoreError::InvalidCursor(_))), "{letters:?}");
        });
        callers.spawn(async move { drop(enqueue(&pusher, vec![job(n + 1, plain())]).await) });
    }
    while let Some(ended) = callers.join_next().await {
        ended.expect("each gets what it asked for");
    }
    assert_eq!(ledger(&store).await.accepted, 100);
    assert_sound(&store).await;
}

/// Size is no excuse.
pub async fn a_huge_input_comes_back_whole(store: Shared) {
    attach(&store, 1).await;
    let text = "\u{1F980}\0\"\\".repeat(400_000);
    let huge = job(1, json!({"text": text}));
    enqueue(&store, vec![huge.clone()]).await;
    assert_eq!(lease_one(&store, at(0)).await.input, huge.input);
}
