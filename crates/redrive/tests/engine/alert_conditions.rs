//! Conditions judged by what a store has: queues that nobody works on, targets that stay away, what people hold and pause.

use std::time::Duration;

use redrive::alerts::Watching;
use redrive::contract::DeadFilter;
use redrive::replays::{NewReplay, ReplayRef};
use redrive::{CancellationToken, FailureReport, Job, Pipeline, Reason, Redrive, json};
use redrive_core::actors::{Actor, Via};
use redrive_core::alerts::{Alert, AlertPage, Condition, RuleBook};
use redrive_core::replays::{ReplayMode, Wish};
use serde_json::Value;

use self::in_memory::{breakers, eventually, hold, redrive, replay_of};

use crate::support::in_memory;

/// Only what waits is watched.
fn watching() -> Watching {
    let mut book = RuleBook::default();
    (book.all.rate, book.all.jump, book.all.cause_letters, book.all.disk) = (None, None, None, None);
    Watching::new(book, Vec::new())
}

fn quick() -> Pipeline {
    Pipeline::new("shop", |_: Job| async { Ok(json!({})) }).expect("a pipeline")
}

async fn firing(redrive: &Redrive, watching: &Watching) -> Vec<Alert> {
    let list = redrive.check_alerts(watching).await.expect("checked");
    list.alerts.into_iter().map(|view| view.alert).filter(Alert::is_firing).collect()
}

#[tokio::test]
async fn a_queue_that_nobody_works_on_fires_until_somebody_does() {
    let (redrive, clock) = redrive();
    let watching = watching();
    redrive.enqueue(&quick(), [json!({"n": 1})]).await.expect("accepted");
    assert_eq!(firing(&redrive, &watching).await, []);
    clock.advance(Duration::from_secs(31 * 60));
    let fires = firing(&redrive, &watching).await;
    assert_eq!(fires.iter().map(|alert| alert.condition).collect::<Vec<_>>(), [Condition::Stalled]);
    assert_eq!(redrive.preview_alerts(&watching).await.expect("judged").len(), 1);
    redrive.drain(quick()).await.expect("drained");
    assert_eq!(firing(&redrive, &watching).await, []);
}

/// A target that stays away fires; one that a person holds does not, and neither does a pipeline that a person paused.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_target_that_stays_away_fires_and_what_people_hold_does_not() {
    let (redrive, clock) = redrive();
    let refused = |_: Job| async { Err::<Value, _>(FailureReport::new(Reason::Blocked, "no")) };
    let shop = || Pipeline::new("shop", refused).expect("a pipeline").concurrency(1);
    let inputs = |from: u32| (from..from + 12).map(|n| json!({"n": n, "target": "far.example"}));
    redrive.enqueue(&shop(), inputs(0)).await.expect("accepted");
    let stop = CancellationToken::new();
    let working = tokio::spawn(redrive.worker(vec![shop()]).run(redrive::worker::Until::Stopped, stop.clone()));
    eventually("it opens", async || !breakers(&redrive).await.is_empty()).await;
    redrive.enqueue(&shop(), inputs(100)).await.expect("accepted");
    let waits = async || breakers(&redrive).await.iter().any(|b| b.held > 0);
    eventually("jobs wait for it", waits).await;
    stop.cancel();
    working.await.expect("no panic").expect("worked");
    let watching = watching();
    clock.advance(Duration::from_secs(16 * 60));
    let fires = firing(&redrive, &watching).await;
    assert_eq!(fires.iter().map(|alert| alert.condition).collect::<Vec<_>>(), [Condition::Breaker]);
    assert!(fires[0].finding.summary.contains("far.example has been failing for 16m"), "{}", fires[0].finding.summary);
    let (name, ada) = ("shop".parse().expect("a name"), Actor::new("ada", Via::Cli));
    hold(&redrive, "far.example", None).await.expect("held");
    assert_eq!(firing(&redrive, &watching).await, []);
    redrive.enqueue(&shop(), [json!({"n": 99})]).await.expect("accepted");
    redrive.pause_pipeline(&name, None, &ada).await.expect("paused");
    clock.advance(Duration::from_secs(3_600));
    assert_eq!(firing(&redrive, &watching).await, []);
    redrive.resume_pipeline(&name, &ada).await.expect("resumed");
    assert_eq!(firing(&redrive, &watching).await.len(), 1, "it stands");
}

/// Nobody works on the replay; it is over when somebody does, and a replay that a person paused does not fire.
#[tokio::test]
async fn a_replay_that_no_worker_takes_fires_after_five_minutes() {
    let (redrive, clock) = redrive();
    let watching = watching();
    let fails = |_: Job| async { Err::<Value, _>(FailureReport::new(Reason::RejectedInput, "no")) };
    redrive.enqueue(&quick(), [json!({"n": 1})]).await.expect("accepted");
    redrive.drain(Pipeline::new("shop", fails).expect("a pipeline")).await.expect("drained");
    let filter = DeadFilter { reason: Some(Reason::RejectedInput), ..DeadFilter::default() };
    let new = NewReplay { wish: Wish { force: true, ..Wish::of(ReplayMode::Refetch) }, ..replay_of(filter) };
    let new = NewReplay { force_why: Some("it is mended".into()), ..new };
    let id = redrive.start_replay(new).await.expect("started").0.expect("a replay");
    clock.advance(Duration::from_secs(4 * 60));
    assert_eq!(firing(&redrive, &watching).await, []);
    clock.advance(Duration::from_secs(60));
    let fires = firing(&redrive, &watching).await;
    assert_eq!(fires.iter().map(|alert| alert.condition).collect::<Vec<_>>(), [Condition::Stalled]);
    assert_eq!(fires[0].page(), AlertPage::Replay(id));
    let (which, ada) = (ReplayRef::Id(id), Actor::new("ada", Via::Cli));
    redrive.pause_replay(which, &ada).await.expect("paused");
    assert_eq!(firing(&redrive, &watching).await, []);
    redrive.resume_replay(which, &ada, &[]).await.expect("resumed");
    assert_eq!(firing(&redrive, &watching).await, [], "it has five minutes again");
    clock.advance(Duration::from_secs(5 * 60));
    assert_eq!(firing(&redrive, &watching).await.len(), 1);
    let worker = redrive.worker(vec![quick()]).with_replays();
    worker.run(redrive::worker::Until::Drained, CancellationToken::new()).await.expect("drained");
    assert_eq!(redrive.find_replay(which).await.expect("found").progress.recovered, 1);
    assert_eq!(firing(&redrive, &watching).await, []);
}
