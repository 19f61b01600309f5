//! What can be asked of replays that are there, and what is refused.

use redrive::contract::{DeadFilter, ListActivity};
use redrive::replays::{NewReplay, ReplayError, ReplayRef, can_use_saved};
use redrive::{Error, ErrorKind, FailureReport, Job, Pipeline, Reason, Redrive, json};
use redrive_core::actors::{Actor, Via};
use redrive_core::definitions::DefinitionVersion;
use redrive_core::ids::ReplayId;
use redrive_core::replays::{ReplayChange, ReplayMode, ReplayState, Wish};

use self::in_memory::{at_start, redrive, replay_of};

use crate::support::in_memory;

fn pipeline() -> Pipeline {
    let fails = |_: Job| async { Err::<serde_json::Value, _>(FailureReport::new(Reason::Timeout, "slow")) };
    Pipeline::new("p", fails).expect("a pipeline").attempts(1)
}

/// A replay of three letters that nobody works on.
async fn replay(redrive: &Redrive) -> ReplayId {
    redrive.enqueue(&pipeline(), (0..3).map(|n| json!({"n": n}))).await.expect("accepted");
    redrive.drain(pipeline()).await.expect("drained");
    let filter = DeadFilter { reason: Some(Reason::Timeout), ..DeadFilter::default() };
    let new = NewReplay { wish: Wish::of(ReplayMode::Refetch), ..replay_of(filter) };
    redrive.start_replay(new).await.expect("started").0.expect("a replay")
}

fn by() -> Actor {
    Actor::new("ada", Via::Api)
}

fn refused(answer: Result<impl Sized, Error>) -> ReplayError {
    match answer {
        Err(Error::Replay(error)) => error,
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("it was not refused"),
    }
}

#[tokio::test]
async fn a_replay_is_found_by_its_id_or_as_the_last() {
    let (redrive, _) = redrive();
    let none = redrive.find_replay(ReplayRef::Last).await;
    assert_eq!(none.as_ref().map(|_| ()).map_err(Error::kind), Err(ErrorKind::Missing));
    assert_eq!(refused(none), ReplayError::None);
    let id = replay(&redrive).await;
    assert_eq!(redrive.find_replay(ReplayRef::Last).await.expect("found").id, id);
    assert_eq!(redrive.find_replay(ReplayRef::Id(id)).await.expect("found").id, id);
    let other = ReplayId::new(at_start(), 99);
    assert_eq!(refused(redrive.find_replay(ReplayRef::Id(other)).await), ReplayError::Unknown(other));
    assert_eq!("last".parse::<ReplayRef>(), Ok(ReplayRef::Last));
    assert!("first".parse::<ReplayRef>().is_err());
}

#[tokio::test]
async fn a_replay_is_paused_resumed_and_cancelled_and_no_more_after_that() {
    let (redrive, _) = redrive();
    let which = ReplayRef::Id(replay(&redrive).await);
    let state = async || redrive.find_replay(which).await.expect("found").state;
    assert_eq!(redrive.pause_replay(which, &by()).await.expect("paused").state, ReplayState::Paused);
    let defined = |version: &str| [pipeline().defined(DefinitionVersion::new(version))];
    let (resumed, before) = redrive.resume_replay(which, &by(), &defined("aa")).await.expect("resumed");
    assert_eq!((resumed.state, before.len()), (ReplayState::Running, 0));
    let (running, before) = redrive.resume_replay(which, &by(), &defined("bb")).await.expect("it runs already");
    assert_eq!(running.state, ReplayState::Running);
    let versions = [running.pins, before].map(|pins| pins.into_values().map(|v| v.to_string()).collect::<Vec<_>>());
    assert_eq!(versions, [["bb"], ["aa"]], "it is pinned anew, and says so");
    let cancelled = redrive.cancel_replay(which, &by(), &[pipeline()]).await.expect("cancelled");
    assert_eq!((cancelled.state, cancelled.progress.cancelled()), (ReplayState::Cancelled, 3));
    let resumed = redrive.resume_replay(which, &by(), &[]).await.map(|(replay, _)| replay);
    for answer in [redrive.pause_replay(which, &by()).await, resumed] {
        assert_eq!(answer.as_ref().map(|_| ()).map_err(Error::kind), Err(ErrorKind::Refused));
        assert!(matches!(refused(answer), ReplayError::InState { state: ReplayState::Cancelled, .. }));
    }
    assert_eq!(state().await, ReplayState::Cancelled);
    let name = "p".parse().expect("a name");
    assert_eq!(redrive.ledger(&name).await.expect("read").dead, 3);
}

#[test]
fn a_handler_that_asks_anew_cannot_work_from_saved_payloads() {
    let refused = can_use_saved(&[pipeline()], false).expect_err("it cannot");
    assert_eq!(refused.kind(), ErrorKind::Invalid);
    assert!(matches!(refused, ReplayError::SavedUnusable { edited: false, .. }));
    assert_eq!(can_use_saved(&[], false), Ok(()));
}

#[tokio::test]
async fn the_last_that_can_be_cancelled_is_not_always_the_newest() {
    let (redrive, _) = redrive();
    let older = replay(&redrive).await;
    let other = Pipeline::with_name("q".parse().expect("a name"), pipeline().handler()).attempts(1);
    redrive.enqueue(&other, [json!({"n": 1})]).await.expect("accepted");
    redrive.drain(other.clone()).await.expect("drained");
    let filter = DeadFilter { pipeline: Some(other.name().clone()), ..DeadFilter::default() };
    let new = NewReplay { wish: Wish::of(ReplayMode::Refetch), ..replay_of(filter) };
    let newer = redrive.start_replay(new).await.expect("started").0.expect("a replay");
    assert_eq!(redrive.find_cancellable(ReplayRef::Last).await.expect("found").id, newer);
    redrive.cancel_replay(ReplayRef::Last, &by(), &[other]).await.expect("cancelled");
    let found = redrive.find_cancellable(ReplayRef::Last).await.expect("found");
    assert_eq!((found.id, found.pipelines.contains(pipeline().name())), (older, true));
    assert_eq!(redrive.find_replay(ReplayRef::Last).await.expect("found").id, newer);
    redrive.cancel_replay(ReplayRef::Last, &by(), &[pipeline()]).await.expect("cancelled");
    let none = refused(redrive.find_cancellable(ReplayRef::Last).await);
    let (change, state) = (ReplayChange::Cancel, ReplayState::Cancelled);
    assert_eq!(none, ReplayError::NoneFor { change, last: newer, state });
}

#[tokio::test]
async fn the_last_that_can_be_resumed_is_not_one_that_has_ended() {
    let (redrive, _) = redrive();
    assert_eq!(refused(redrive.find_resumable(ReplayRef::Last).await), ReplayError::None);
    let id = replay(&redrive).await;
    assert_eq!(redrive.find_resumable(ReplayRef::Last).await.expect("found").id, id);
    redrive.pause_replay(ReplayRef::Id(id), &by()).await.expect("paused");
    assert_eq!(redrive.find_resumable(ReplayRef::Last).await.expect("found").id, id);
    redrive.cancel_replay(ReplayRef::Id(id), &by(), &[pipeline()]).await.expect("cancelled");
    let none = redrive.find_resumable(ReplayRef::Last).await.expect_err("none is left");
    let said = format!("there is no replay that can be resumed: the last, {id}, is cancelled");
    assert_eq!((none.kind(), none.to_string()), (ErrorKind::Missing, said));
    assert!(matches!(refused(redrive.find_resumable(ReplayRef::Id(id)).await), ReplayError::InState { .. }));
}

#[tokio::test]
async fn whoever_resumes_a_replay_with_other_rules_is_noted_with_them() {
    let (redrive, _) = redrive();
    let which = ReplayRef::Id(replay(&redrive).await);
    let defined = |version: &str| [pipeline().defined(DefinitionVersion::new(version))];
    for version in ["aa", "bb", "bb"] {
        redrive.pause_replay(which, &by()).await.expect("paused");
        redrive.resume_replay(which, &by(), &defined(version)).await.expect("resumed");
    }
    redrive.resume_replay(which, &by(), &defined("cc")).await.expect("it runs already");
    let asked = ListActivity { who: Some("ada".into()), limit: 99, ..ListActivity::default() };
    let noted = redrive.list_activity(asked).await.expect("listed").items;
    let told: Vec<_> = noted.iter().rev().filter(|a| a.verb == "resume" || a.verb == "pin").collect();
    let told: Vec<_> = told.iter().map(|a| (a.verb.as_str(), a.detail.get("pins").cloned())).collect();
    let pins = |version: &str| Some(json!({"p": version}));
    let resumed = [("resume", pins("aa")), ("resume", pins("bb")), ("resume", None), ("pin", pins("cc"))];
    assert_eq!(told, resumed, "only what it is pinned to anew");
}
