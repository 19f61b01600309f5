//! What must hold of pipelines that people pause.

use redrive_core::failures::Reason;
use redrive_core::pipelines::{Contents, Pause};
use redrive_core::settlements::Outcome;

use super::script::{
    Shared, ada, assert_sound, at, attach, bury, enqueue, job, lease_all, lease_of, lease_one, lease_past_breakers,
    ledger, pipeline, plain, settle, timeout,
};
use crate::contract::{FoldCounts, ForgetPipeline, Lane, ListActivity, SetPause};

fn pause() -> Pause {
    Pause { by: ada(), why: Some("the shop moves".into()), since: at(1), until: Some(at(900)) }
}

async fn set(store: &Shared, was: Option<Pause>, next: Option<Pause>) -> bool {
    store.set_pause(SetPause { pipeline: pipeline(), was, next, by: ada(), now: at(1) }).await.expect("answered")
}

/// Nothing of a paused pipeline is leased, by whatever handle, and all of it once it goes on; what runs settles as ever.
pub async fn a_paused_pipeline_gives_nothing(first: Shared, second: Shared) {
    attach(&first, 1).await;
    enqueue(&first, vec![job(1, plain()), job(2, plain())]).await;
    let running = lease_one(&first, at(0)).await;
    assert!(set(&first, None, Some(pause())).await);
    for store in [&first, &second] {
        let leased = lease_all(store, 9, at(2)).await;
        assert_eq!((leased.jobs.len(), leased.paused, leased.next_due), (0, Some(pause()), None));
        assert_eq!(store.pauses().await.expect("listed").into_values().collect::<Vec<_>>(), [pause()]);
    }
    settle(&first, &running, timeout(), at(3)).await;
    enqueue(&second, vec![job(3, plain())]).await;
    assert_eq!((ledger(&first).await.queued, lease_all(&first, 9, at(9_000)).await.jobs.len()), (3, 0));
    assert!(set(&second, Some(pause()), None).await);
    let leased = lease_all(&first, 9, at(9_000)).await;
    assert_eq!((leased.jobs.len(), leased.paused), (3, None));
    assert!(first.pauses().await.expect("listed").is_empty());
    assert_sound(&first).await;
}

/// What somebody else did meanwhile is not undone unseen, and what was done is written down.
pub async fn a_pause_is_set_on_what_was_seen(store: Shared) {
    assert!(set(&store, None, Some(pause())).await, "also before the first job");
    assert!(!set(&store, None, Some(Pause { since: at(5), ..pause() })).await);
    assert!(!set(&store, None, None).await);
    assert_eq!(store.pauses().await.expect("listed").get(&pipeline()), Some(&pause()));
    assert!(set(&store, Some(pause()), None).await);
    let params = ListActivity { limit: 9, ..ListActivity::default() };
    let noted = store.list_activity(params).await.expect("listed").items;
    let verbs: Vec<_> = noted.iter().map(|view| (view.verb.as_str(), view.object.as_str())).collect();
    assert_eq!(verbs, [("resume", "pipeline suite"), ("pause", "pipeline suite")]);
    assert_eq!(noted[1].detail["why"], "the shop moves");
}

/// A lease that is asked for twice is answered as the first time: its jobs are out.
pub async fn what_was_leased_before_a_pause_stays_leased(store: Shared) {
    attach(&store, 1).await;
    enqueue(&store, vec![job(1, plain())]).await;
    let params = lease_of(Lane::Queue, 9, at(0));
    let leased = lease_past_breakers(&store, params.clone()).await;
    assert!(set(&store, None, Some(pause())).await);
    let again = lease_past_breakers(&store, params).await;
    assert_eq!((again.jobs.len(), &again.jobs), (1, &leased.jobs));
    settle(&store, &again.jobs[0], Outcome::Done, at(1)).await;
    assert_eq!(ledger(&store).await.done, 1);
}

/// A pipeline that has nothing is forgotten, and is there again when something comes.
pub async fn an_empty_pipeline_is_forgotten_until_something_comes(store: Shared) {
    attach(&store, 1).await;
    let forget = async || {
        let params = ForgetPipeline { pipeline: pipeline(), by: ada(), now: at(5) };
        store.forget_pipeline(params).await.expect("answered")
    };
    let listed = async || store.ledgers().await.expect("read").contains_key(&pipeline());
    assert!(forget().await.is_empty(), "nobody knows it");
    enqueue(&store, vec![job(1, plain())]).await;
    assert_eq!(forget().await, Contents { queued: 1, ..Contents::default() });
    let running = lease_one(&store, at(1)).await;
    assert_eq!(forget().await, Contents { running: 1, ..Contents::default() });
    settle(&store, &running, Outcome::Done, at(2)).await;
    assert!(set(&store, None, Some(pause())).await);
    assert_eq!(forget().await, Contents { paused: true, ..Contents::default() });
    assert!(set(&store, Some(pause()), None).await);
    assert!(listed().await, "what is refused changes nothing");
    assert!(forget().await.is_empty() && !listed().await);
    assert!(store.event_totals().await.expect("read").is_empty());
    while store.fold_counts(FoldCounts { before: at(86_400), limit: 9, led: None }).await.expect("folded") {}
    assert!(!listed().await, "to fold counts is no news");
    assert!(store.all_pipelines().await.expect("read").contains(&pipeline()));
    assert!(store.get_job(running.lease.job).await.expect("read").is_some(), "its receipt is kept");
    let params = ListActivity { limit: 1, ..ListActivity::default() };
    let noted = store.list_activity(params).await.expect("listed").items;
    assert_eq!((noted[0].verb.as_str(), noted[0].object.as_str()), ("forget", "pipeline suite"));
    bury(&store, job(2, plain()), Reason::Blocked, "no", at(3)).await;
    assert!(listed().await);
    assert_eq!((ledger(&store).await.accepted, ledger(&store).await.done), (2, 1));
    assert_eq!(forget().await, Contents { dead: 1, ..Contents::default() });
    assert_sound(&store).await;
}
