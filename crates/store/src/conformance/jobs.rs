//! What must hold of jobs.

use std::sync::Arc;

use redrive_core::causes::CauseRules;
use redrive_core::dead::DeadLetter;
use redrive_core::failures::Reason;
use redrive_core::hand_on::HandedJob;
use redrive_core::ids::{JobId, PipelineName};
use redrive_core::jobs::{LeasedJob, NewJob};
use redrive_core::policy::Bounds;
use redrive_core::policy::Policy;
use redrive_core::settlements::{Ending, Outcome, Settlement, decide};
use redrive_core::state::JobState;
use serde_json::json;

use super::replays::replay_one;
use super::script::{
    Shared, ada, assert_sound, at, attach, brought, bury, enqueue, fatal, job, lease_all, lease_one, ledger, pipeline,
    plain, settle, settle_all, timeout, try_enqueue, within,
};
use crate::StoreError;
use crate::contract::{
    CancelJobs, DeadFilter, DiscardDead, EnqueueJobs, EnqueuedJob, JobFilter, ListDead, ListJobs, Settled,
};

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
    let answer =
        store.enqueue(EnqueueJobs { pipeline: other, jobs: jobs.into(), bounds: Bounds::default(), now: at(0) }).await;
    assert!(matches!(answer.expect("accepted")[0], EnqueuedJob::Accepted(_)));
}

/// Two rounds may use the same key; each of them once.
pub async fn keys_belong_to_a_round(store: Shared) {
    let of = |n: u128, round: &str| NewJob { round: round.parse().ok(), ..job(n, json!({"key": "k"})) };
    let answers = enqueue(&store, vec![of(1, ""), of(2, "monday"), of(3, "tuesday")]).await;
    assert!(answers.iter().all(|answer| matches!(answer, EnqueuedJob::Accepted(_))), "{answers:?}");
    let known = EnqueuedJob::Known { id: of(2, "").id, state: JobState::Queued, ended_at: None };
    assert_eq!(enqueue(&store, vec![of(4, "monday")]).await, [known]);
    let full = try_enqueue(&store, vec![of(5, "monday"), of(6, "wednesday")], Bounds::of_queue(Some(3))).await;
    assert!(matches!(full, Err(StoreError::QueueFull { .. })), "one of them is new: {full:?}");
    try_enqueue(&store, vec![of(5, "monday"), of(6, "wednesday")], Bounds::of_queue(Some(4)))
        .await
        .expect("one of them is known");
    assert_sound(&store).await;
}

async fn number(store: &Shared, n: u128) -> i64 {
    let id = job(n, plain()).id;
    store.get_job(id).await.expect("asked").expect("there").job.number.expect("a number")
}

/// A number is given once, also if the job that had it is gone from where it was.
pub async fn a_number_never_repeats(store: Shared) {
    attach(&store, 1).await;
    enqueue(&store, vec![job(1, plain()), job(2, plain())]).await;
    let given = [number(&store, 1).await, number(&store, 2).await];
    assert!(given[0] < given[1], "in the order in which they came");
    for leased in lease_all(&store, 9, at(0)).await.jobs {
        settle(&store, &leased, Outcome::Done, at(1)).await;
    }
    enqueue(&store, vec![NewJob { due_at: at(1_000), ..job(3, plain()) }]).await;
    bury(&store, job(4, plain()), Reason::Blocked, "no", at(2)).await;
    let letter = super::script::dead(&store, DeadFilter::default()).await.remove(0);
    let discard = DiscardDead { ids: vec![letter.id], by: ada(), why: "gone".into(), now: at(3) };
    store.discard_dead(discard).await.expect("discarded");
    let arrived = DeadLetter { id: job(5, plain()).id, number: Some(given[0]), ..letter };
    store.import_dead(brought(vec![arrived], at(4))).await.expect("imported");
    enqueue(&store, vec![job(6, plain())]).await;
    let mut all = Vec::new();
    for n in 1..=6 {
        all.push(number(&store, n).await);
    }
    assert!(all.is_sorted_by(|a, b| a < b), "each has one of its own, in whatever state it is: {all:?}");
    assert_sound(&store).await;
}

/// A job is found by its number and by the end of its id, in whatever state it is. What was given up keeps its number.
pub async fn a_job_is_found_by_number_and_ending(store: Shared) {
    attach(&store, 1).await;
    let found = async |named: &str| store.find_jobs(named.parse().expect("a name")).await.expect("asked");
    bury(&store, job(0xaaaa_0001, plain()), Reason::Blocked, "no", at(1)).await;
    bury(&store, job(0xbbbb_0001, plain()), Reason::Blocked, "no", at(2)).await;
    let discard = DiscardDead { ids: vec![job(0xbbbb_0001, plain()).id], by: ada(), why: "gone".into(), now: at(3) };
    store.discard_dead(discard).await.expect("discarded");
    enqueue(&store, vec![job(0xcccc_0001, plain())]).await;
    for leased in lease_all(&store, 9, at(4)).await.jobs {
        settle(&store, &leased, Outcome::Done, at(5)).await;
    }
    enqueue(&store, vec![job(0xdddd_0001, plain())]).await;
    for n in [0xaaaa_0001, 0xbbbb_0001, 0xcccc_0001, 0xdddd_0001] {
        let id = job(n, plain()).id;
        assert_eq!(found(&number(&store, n).await.to_string()).await, [id]);
        assert_eq!(found(&format!("{n:x}")).await, [id]);
    }
    let replayed = replay_one(&store).await;
    settle(&store, &replayed, Outcome::Done, at(200)).await;
    assert_eq!(found(&number(&store, 0xaaaa_0001).await.to_string()).await, [job(0xaaaa_0001, plain()).id]);
    assert!(found("a0001").await.len() == 1 && found("0-0001").await.is_empty() && found("99999").await.is_empty());
    enqueue(&store, vec![job(0xeeaa_0001, plain())]).await;
    assert!(found("aa-0001").await.len() > 1, "of several the caller is told");
}

/// Digits may be the number of one job and the end of a dead letter's id: both are found.
pub async fn digits_may_be_a_number_and_an_ending(store: Shared) {
    attach(&store, 1).await;
    let found = async |named: &str| store.find_jobs(named.parse().expect("a name")).await.expect("asked");
    bury(&store, job(0xaaaa_1000, plain()), Reason::Blocked, "no", at(1)).await;
    let letter = job(0xaaaa_1000, plain()).id;
    assert_eq!(found("1000").await, [letter], "nothing has that number");
    let first = number(&store, 0xaaaa_1000).await;
    enqueue(&store, (1..1_000).map(|n| job(n, plain())).collect()).await;
    let numbered = job(u128::try_from(1_000 - first).expect("few"), plain()).id;
    assert_eq!(found("1000").await, [numbered, letter]);
    assert_eq!(found("aaaa1000").await, [letter]);
}

/// Whatever becomes of a job, its number, its round and where it came from stay with it.
pub async fn a_job_keeps_its_number_round_and_origin(store: Shared) {
    attach(&store, 1).await;
    let origin = serde_json::from_value(json!({"kind": "celery", "group": "mails", "task": "0a1b"})).ok();
    let new = |n: u128| NewJob { round: "r1".parse().ok(), origin: origin.clone(), ..job(n, plain()) };
    let told = async |n: u128, state: JobState| {
        let view = store.get_job(job(n, plain()).id).await.expect("asked").expect("there").job;
        assert_eq!((view.state, view.round, view.origin), (state, "r1".parse().ok(), origin.clone()));
        view.number.expect("a number")
    };
    bury(&store, new(1), Reason::Blocked, "no", at(1)).await;
    let first = told(1, JobState::Dead).await;
    let letter = super::script::dead(&store, DeadFilter::default()).await.remove(0);
    assert_eq!((letter.number, letter.round.is_some(), &letter.origin), (Some(first), true, &origin));
    let leased = replay_one(&store).await;
    assert_eq!((leased.number, leased.round.as_ref()), (first, letter.round.as_ref()));
    assert_eq!(told(1, JobState::Leased).await, first);
    settle(&store, &leased, Outcome::Done, at(103)).await;
    assert_eq!(told(1, JobState::Done).await, first);
    bury(&store, new(2), Reason::Blocked, "no", at(110)).await;
    let second = told(2, JobState::Dead).await;
    let discard = DiscardDead { ids: vec![new(2).id], by: ada(), why: "gone".into(), now: at(111) };
    store.discard_dead(discard).await.expect("discarded");
    assert_eq!(told(2, JobState::Discarded).await, second);
    enqueue(&store, vec![new(3)]).await;
    let third = told(3, JobState::Queued).await;
    let cancel = CancelJobs { ids: vec![new(3).id], by: ada(), why: "gone".into(), now: at(112) };
    store.cancel_jobs(cancel).await.expect("cancelled");
    assert_eq!(told(3, JobState::Discarded).await, third);
    assert_sound(&store).await;
}

/// A batch that does not fit is refused as a whole; jobs that are known need no room.
pub async fn a_full_queue_refuses_all(store: Shared) {
    let keyed = |n: u128| job(n, json!({"key": n.to_string()}));
    try_enqueue(&store, vec![keyed(1), keyed(2)], Bounds::of_queue(Some(3))).await.expect("two fit");
    let refused = try_enqueue(&store, vec![keyed(3), keyed(4)], Bounds::of_queue(Some(3))).await;
    assert!(matches!(refused, Err(StoreError::QueueFull { queued: 2, max: 3, .. })), "{refused:?}");
    assert_eq!(ledger(&store).await.accepted, 2, "nothing of the batch was accepted");
    let again = vec![keyed(1), keyed(2), keyed(3)];
    try_enqueue(&store, again, Bounds::of_queue(Some(3))).await.expect("only one of them is new");
    try_enqueue(&store, vec![keyed(1)], Bounds::of_queue(Some(1))).await.expect("a known job needs no room");
    assert_eq!(ledger(&store).await.queued, 3);
    assert_sound(&store).await;
}

/// New jobs are refused while a pipeline has as many dead letters as it may have; nothing is evicted, and what fails becomes a letter.
pub async fn too_many_letters_refuse_new_jobs_alone(store: Shared) {
    let bounds = Bounds { queued_max: None, letters_max: Some(2) };
    let keyed = |n: u128| job(n, json!({"key": n.to_string()}));
    attach(&store, 1).await;
    bury(&store, keyed(1), Reason::Blocked, "no", at(100)).await;
    try_enqueue(&store, vec![keyed(2), keyed(3)], bounds).await.expect("there is one letter");
    for _ in 0..2 {
        let leased = lease_one(&store, at(100)).await;
        settle(&store, &leased, fatal(Reason::Blocked, "no"), at(100)).await;
    }
    assert_eq!(ledger(&store).await.dead, 3, "jobs that were queued become letters");
    let refused = try_enqueue(&store, vec![keyed(1), keyed(4)], bounds).await;
    assert!(matches!(refused, Err(StoreError::LettersFull { letters: 3, max: 2, .. })), "{refused:?}");
    assert_eq!(ledger(&store).await.accepted, 3, "nothing of the batch was accepted");
    try_enqueue(&store, vec![keyed(1)], bounds).await.expect("a known job needs no room");
    let ids = vec![keyed(1).id, keyed(2).id];
    let discard = DiscardDead { ids, by: ada(), why: "gone".into(), now: at(111) };
    store.discard_dead(discard).await.expect("discarded");
    try_enqueue(&store, vec![keyed(4)], bounds).await.expect("there is one letter again");
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
    for (patterns, found) in [(&["none-*", "suite"][..], 7), (&["su*"], 7), (&["*"], 7), (&["SUITE", "suit", "s_*"], 0)]
    {
        assert_eq!(count(JobFilter { within: within(patterns), ..all() }).await, found, "{patterns:?}");
    }
    let foreign = JobFilter { within: within(&["shop"]), text: Some("https".into()), ..all() };
    let page = store.list_jobs(ListJobs { filter: foreign, limit: 1, cursor: None }).await.expect("listed");
    assert_eq!((page.items.len(), page.next), (0, None), "a cursor says nothing of jobs of others");

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
    let params = CancelJobs { ids, by: ada(), why: "wrong file".into(), now: at(5) };
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
            let letters = ListDead { cursor, ..ListDead::newest(DeadFilter::default(), 1) };
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

/// A job that is done brings those into being that it hands on, once, whatever comes later; one that is not done brings none.
pub async fn a_job_that_is_done_hands_on_others(store: Shared) {
    attach(&store, 1).await;
    enqueue(&store, vec![job(1, json!({"n": 1})), job(2, json!({"key": "known"}))]).await;
    let leased = lease_all(&store, 2, at(1)).await.jobs;
    let other: PipelineName = "other".parse().expect("a name");
    let handed = |n: u128, pipeline: &PipelineName, key: &str| {
        let job = NewJob { key: Some(key.to_owned()), ..job(n, plain()) };
        HandedJob { pipeline: pipeline.clone(), job }
    };
    let jobs = vec![handed(11, &pipeline(), "a"), handed(12, &other, "a"), handed(13, &pipeline(), "known")];
    let settlement = |leased: &LeasedJob, outcome: Outcome| {
        let ending = Ending { at: at(2), duration: None, worker: None, chance: 0.0 };
        let decision = decide(&Policy::default(), leased, outcome, ending);
        Settlement::new(leased, decision, &CauseRules::default()).handing_on(jobs.clone())
    };
    settle_all(&store, vec![settlement(&leased[1], timeout())], at(2)).await;
    assert_eq!(ledger(&store).await.accepted, 2, "it is not done");
    let done = settlement(&leased[0], Outcome::Done);
    assert_eq!(settle_all(&store, vec![done.clone()], at(2)).await, [Settled::Applied]);
    assert_eq!(settle_all(&store, vec![done], at(2)).await, [Settled::Applied], "it was, and hands on nothing again");
    let ledgers = store.ledgers().await.expect("read");
    assert_eq!((ledgers[&pipeline()].accepted, ledgers[&pipeline()].done), (3, 1), "a known key is not accepted again");
    assert_eq!((ledgers[&other].accepted, ledgers[&other].queued), (1, 1));
    assert_sound(&store).await;
}
