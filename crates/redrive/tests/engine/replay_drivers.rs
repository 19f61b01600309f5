//! Replays that several workers drive, and tries that a replay relies on.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use redrive::replays::{NewReplay, ReplayError, ReplayRef};
use redrive::worker::Until;
use redrive::{CancellationToken, Error, FailureReport, Job, Pipeline, Reason, Redrive, json};
use redrive_core::actors::{Actor, Via};
use redrive_core::definitions::DefinitionVersion;
use redrive_core::ids::{ReplayId, TryId};
use redrive_core::jobs::Input;
use redrive_core::policy::Policy;
use redrive_core::replays::{AutoReplay, Automatic, Pacing, ReplayChange, ReplayMode, ReplayState, Wish};
use redrive_core::workers::TakesReplays;
use redrive_store::Store;
use redrive_store::conformance::decorators::{Counting, Decorated, Delaying};
use redrive_store::contract::{DeadFilter, ListDead, OpenTry, Selection};
use redrive_store::sqlite::SqliteStore;

use self::in_memory::{at_start, eventually, over, redrive, replay_of};

use crate::support::in_memory;

fn ada() -> Actor {
    Actor::new("ada", Via::Api)
}

fn broken() -> DeadFilter {
    DeadFilter { reason: Some(Reason::HandlerError), ..DeadFilter::default() }
}

fn all() -> Selection {
    Selection { filter: broken(), ids: Vec::new() }
}

/// A pipeline that fails until it is fixed, with so many dead letters.
async fn with_dead(redrive: &Redrive, name: &str, letters: u32, fixed: &Arc<AtomicBool>) -> Pipeline {
    let fixed = Arc::clone(fixed);
    let pipeline = Pipeline::new(name, move |_: Job| {
        let works = fixed.load(Ordering::Relaxed);
        async move { if works { Ok(json!(1)) } else { Err(FailureReport::new(Reason::HandlerError, "broken")) } }
    })
    .expect("a pipeline")
    .attempts(1);
    redrive.enqueue(&pipeline, (0..letters).map(|n| json!({"n": n}))).await.expect("accepted");
    redrive.drain(pipeline.clone()).await.expect("drained");
    pipeline
}

async fn start(redrive: &Redrive, pacing: Pacing) -> redrive_core::ids::ReplayId {
    redrive
        .start_replay(NewReplay { pacing, ..replay_of(broken()) })
        .await
        .expect("started")
        .0
        .expect("something to replay")
}

async fn assert_sound(redrive: &Redrive) {
    assert_eq!(redrive.store().audit().await.expect("audited").problems, Vec::<String>::new());
}

/// Workers of the queue alone, or of another replay, take no letters of a replay: nobody does, if only they are there.
#[tokio::test]
async fn workers_that_take_no_letters_of_a_replay_do_not_attend_to_it() {
    let (redrive, _clock) = redrive();
    let pipeline = with_dead(&redrive, "p", 1, &Arc::default()).await;
    let id = start(&redrive, Pacing::default()).await;
    let replay = redrive.find_replay(ReplayRef::Id(id)).await.expect("there");
    let attended = async || redrive.unattended(&replay).await.expect("asked").is_empty();
    let stop = CancellationToken::new();
    let local = tokio::spawn(redrive.worker(vec![pipeline.clone()]).run(Until::Stopped, stop.clone()));
    while redrive.store().list_workers().await.expect("listed").iter().all(|worker| worker.runs.is_empty()) {
        tokio::task::yield_now().await;
    }
    assert!(!attended().await, "the local worker takes the queue alone");
    let (remote, pipelines) = (redrive.remote_worker(None, "elsewhere", 0), [pipeline]);
    let other = ReplayId::new(redrive.now(), 7);
    for (takes, attends) in [
        (TakesReplays::None, false),
        (TakesReplays::One { replay: other }, false),
        (TakesReplays::One { replay: id }, true),
        (TakesReplays::All, true),
        (TakesReplays::None, false),
    ] {
        remote.look(&pipelines, (takes, 1)).await.expect("looked");
        assert_eq!(attended().await, attends, "{takes:?}");
    }
    stop.cancel();
    local.await.expect("joined").expect("worked");
}

#[tokio::test]
async fn a_replay_over_two_pipelines_is_driven_by_workers_that_know_one() {
    let (redrive, _clock) = redrive();
    let fixed = Arc::new(AtomicBool::new(false));
    let a = with_dead(&redrive, "a", 7, &fixed).await;
    let b = with_dead(&redrive, "b", 9, &fixed).await;
    fixed.store(true, Ordering::Relaxed);
    let id = start(&redrive, Pacing::default()).await;
    let work = |pipeline: &Pipeline| {
        redrive.worker(vec![pipeline.clone()]).with_replays().run(Until::Drained, CancellationToken::new())
    };
    tokio::time::timeout(Duration::from_secs(120), work(&a))
        .await
        .expect("it does not wait for others")
        .expect("worked");
    let halfway = redrive.find_replay(ReplayRef::Id(id)).await.expect("there");
    assert_eq!((halfway.state, halfway.progress.recovered), (ReplayState::Running, 7), "it took its own");
    let left = redrive.store().left_in_replay(id).await.expect("asked");
    assert_eq!(left.iter().map(ToString::to_string).collect::<Vec<_>>(), ["b"]);
    assert_eq!(redrive.unattended(&halfway).await.expect("asked"), left, "nobody is at work");
    tokio::time::timeout(Duration::from_secs(120), work(&b)).await.expect("it ends").expect("worked");
    let done = redrive.find_replay(ReplayRef::Id(id)).await.expect("there");
    assert_eq!((done.state, done.progress.recovered), (ReplayState::Done, 16));
    assert!(redrive.unattended(&done).await.expect("asked").is_empty());
    assert_sound(&redrive).await;
}

#[tokio::test]
async fn a_replay_waits_for_the_versions_of_pipelines_whose_letters_are_left() {
    let (redrive, _clock) = redrive();
    let fixed = Arc::new(AtomicBool::new(false));
    let version = DefinitionVersion::new("aa");
    let a = with_dead(&redrive, "a", 2, &fixed).await.defined(version.clone());
    let b = with_dead(&redrive, "b", 2, &fixed).await.defined(version.clone());
    fixed.store(true, Ordering::Relaxed);
    let new = NewReplay { pins: redrive::replays::pins(&[a.clone(), b.clone()]), ..replay_of(broken()) };
    let id = redrive.start_replay(new).await.expect("started").0.expect("a replay");
    let awaited = async || {
        let replay = redrive.find_replay(ReplayRef::Id(id)).await.expect("there");
        let awaited = redrive.awaited_by(&replay).await.expect("asked");
        awaited.into_iter().map(|(name, version)| format!("{name} {version}")).collect::<Vec<_>>()
    };
    assert_eq!(awaited().await, ["a aa", "b aa"]);
    redrive.worker(vec![a]).with_replays().run(Until::Drained, CancellationToken::new()).await.expect("worked");
    assert_eq!(awaited().await, ["b aa"], "the letters of the other are through");
    redrive.pause_replay(ReplayRef::Id(id), &ada()).await.expect("paused");
    assert!(awaited().await.is_empty(), "a worker would not help");
    redrive.resume_replay(ReplayRef::Id(id), &ada(), &[]).await.expect("resumed");
    redrive.worker(vec![b]).with_replays().run(Until::Drained, CancellationToken::new()).await.expect("worked");
    assert!(awaited().await.is_empty());
}

#[tokio::test]
async fn what_is_cancelled_keeps_to_the_attempts_of_its_pipeline() {
    let (redrive, _clock) = redrive();
    let fixed = Arc::new(AtomicBool::new(false));
    let pipeline = with_dead(&redrive, "p", 3, &fixed).await;
    let id = start(&redrive, Pacing { ramp: vec![1], ..Pacing::default() }).await;
    let cancelled = redrive.cancel_replay(ReplayRef::Id(id), &ada(), &[pipeline]).await.expect("cancelled");
    assert_eq!((cancelled.state, cancelled.progress.cancelled()), (ReplayState::Cancelled, 3));
    let again = redrive.cancel_replay(ReplayRef::Last, &ada(), &[]).await;
    assert!(matches!(again, Err(Error::Replay(ReplayError::NoneFor { change: ReplayChange::Cancel, .. }))));
    assert_sound(&redrive).await;
}

#[tokio::test]
async fn a_try_is_not_relied_on_once_its_pipeline_is_defined_otherwise() {
    let (redrive, clock) = redrive();
    let pipeline = |version: &str| {
        let made = Pipeline::new("p", |_: Job| async { Ok::<_, FailureReport>(json!(1)) }).expect("a pipeline");
        [made.defined(DefinitionVersion::new(version))]
    };
    let find = async |version: &str| redrive.find_recoverable(&all(), &Input::new(), &pipeline(version)).await;
    assert!(matches!(find("v1").await, Err(Error::Replay(ReplayError::NoTry))));
    let tried_with = [("p".parse().expect("a name"), Some(DefinitionVersion::new("v1")))].into_iter().collect();
    let id = TryId::new(at_start(), 1);
    let (selection, edits) = (all(), Input::new());
    let open = OpenTry { id, by: ada(), selection, edits, tried_with, outcome: json!({}), now: redrive.now() };
    redrive.store().open_try(open).await.expect("opened");
    assert!(matches!(find("v1").await, Err(Error::Replay(ReplayError::NoTry))), "it has not ended");
    redrive.store().end_try(id, json!({}), redrive.now()).await.expect("ended");
    assert_eq!(find("v1").await.expect("found").id, id);
    assert!(matches!(find("v2").await, Err(Error::Replay(ReplayError::TriedOtherwise(_)))));
    clock.advance(Duration::from_secs(86_401));
    assert!(matches!(find("v1").await, Err(Error::Replay(ReplayError::TryTooOld(_)))));
}

/// A replay whose letters are named, and whose maker was killed when it had claimed them and not heard so: whoever goes on does not
/// take its own letters for another's.
#[tokio::test]
async fn a_choice_that_was_abandoned_goes_on_where_it_was() {
    let layer = Arc::new(Delaying::new("claim_letters"));
    let store: Arc<dyn Store> = Arc::new(SqliteStore::in_memory().expect("opened"));
    let (redrive, _clock) = over(Decorated::around(store, &layer));
    let fixed = Arc::new(AtomicBool::new(false));
    let pipeline = with_dead(&redrive, "p", 3, &fixed).await;
    let listed = ListDead::newest(DeadFilter::default(), 9);
    let ids = redrive.store().list_dead(listed).await.expect("listed").items.iter().map(|letter| letter.id).collect();
    let selection = Selection { filter: DeadFilter::default(), ids };
    let new = NewReplay { selection, ..replay_of(DeadFilter::default()) };
    layer.hold_back(true);
    let maker = tokio::spawn({
        let redrive = redrive.clone();
        async move { redrive.start_replay(new).await.map(drop) }
    });
    eventually("its letters are claimed", async || layer.held_back() == 1).await;
    maker.abort();
    layer.hold_back(false);
    fixed.store(true, Ordering::Relaxed);
    let id = redrive.find_replay(ReplayRef::Last).await.expect("there").id;
    let worker = redrive.worker(vec![pipeline]).only_replay(id);
    tokio::time::timeout(Duration::from_secs(120), worker.run(Until::Drained, CancellationToken::new()))
        .await
        .expect("it ends")
        .expect("worked");
    let done = redrive.find_replay(ReplayRef::Id(id)).await.expect("there");
    assert_eq!((done.state, done.progress.recovered), (ReplayState::Done, 3));
    assert_eq!(done.excluded, Default::default(), "none of them was another's");
    assert_sound(&redrive).await;
}

/// A pipeline in a version that replays by itself what timed out, each minute.
fn by_itself(version: &str, fails: bool) -> Pipeline {
    let policy = Policy { auto_replays: vec![AutoReplay::every(Duration::from_secs(60))], ..Policy::default() };
    let run = move |_: Job| async move {
        if fails { Err(FailureReport::new(Reason::Timeout, "slow")) } else { Ok(json!(1)) }
    };
    let pipeline = Pipeline::new("p", run).expect("a pipeline").with_policy(policy).attempts(1);
    pipeline.defined(DefinitionVersion::new(version))
}

#[tokio::test]
async fn a_turn_without_letters_leaves_nothing_behind() {
    let layer = Arc::<Counting>::default();
    let store: Arc<dyn Store> = Arc::new(SqliteStore::in_memory().expect("opened"));
    let (redrive, clock) = over(Decorated::around(store, &layer));
    let stop = CancellationToken::new();
    redrive.enqueue(&by_itself("v1", false), [json!({})]).await.expect("accepted");
    let worker = redrive.worker(vec![by_itself("v1", false)]).with_replays();
    let working = tokio::spawn(worker.run(Until::Stopped, stop.clone()));
    eventually("some turns were had", async || {
        clock.advance(Duration::from_secs(30));
        layer.calls("survey_letters") >= 5
    })
    .await;
    stop.cancel();
    working.await.expect("no panic").expect("stopped");
    assert_eq!(layer.calls("open_replay"), 0);
}

/// An automatic replay is pinned like any other; when the rules that it was planned with are gone it goes on with those there are.
#[tokio::test]
async fn an_automatic_replay_is_pinned_and_goes_on_when_its_rules_are_gone() {
    let (redrive, clock) = redrive();
    let old = by_itself("v1", true);
    redrive.enqueue(&old, (0..3).map(|n| json!({"n": n}))).await.expect("accepted");
    redrive.drain(old.clone()).await.expect("drained");
    let filter = DeadFilter { reason: Some(Reason::Timeout), ..DeadFilter::default() };
    let automatic = Some(Automatic { times_max: 9, letters_max: 9 });
    let wish = Wish { automatic, ..Wish::of(ReplayMode::Refetch) };
    let pins = redrive::replays::pins(std::slice::from_ref(&old));
    let new = NewReplay { wish, pins, ..replay_of(filter) };
    let id = redrive.start_replay(new).await.expect("started").0.expect("something to replay");
    let new = by_itself("v2", false);
    let worker = redrive.worker(vec![new.clone()]).with_replays();
    tokio::time::timeout(Duration::from_secs(120), worker.run(Until::Drained, CancellationToken::new()))
        .await
        .expect("it does not wait for ever")
        .expect("worked");
    let done = redrive.find_replay(ReplayRef::Id(id)).await.expect("there");
    assert_eq!((done.state, done.progress.recovered), (ReplayState::Done, done.progress.total));
    assert_eq!(done.pins, redrive::replays::pins(&[new]));

    redrive.enqueue(&old, [json!({"n": 4})]).await.expect("accepted");
    redrive.drain(old.clone()).await.expect("drained");
    let stop = CancellationToken::new();
    let working = tokio::spawn(redrive.worker(vec![old.clone()]).with_replays().run(Until::Stopped, stop.clone()));
    eventually("policy began one", async || {
        clock.advance(Duration::from_secs(30));
        redrive.find_replay(ReplayRef::Last).await.expect("there").id != id
    })
    .await;
    stop.cancel();
    working.await.expect("no panic").expect("stopped");
    let begun = redrive.find_replay(ReplayRef::Last).await.expect("there");
    assert!(begun.automatic);
    assert_eq!(begun.pins, redrive::replays::pins(std::slice::from_ref(&old)));
}
