//! What who listens hears of jobs, pipelines and replays.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use redrive::contract::DeadFilter;
use redrive::events::{Happening, Heard, Listener};
use redrive::handler::HandlerError;
use redrive::replays::{NewReplay, ReplayRef};
use redrive::worker::Until;
use redrive::{CancellationToken, FailureReport, Handler, Job, Pipeline, Policy, Reason, json};
use redrive_core::actors::{Actor, Via};
use redrive_core::breakers::BreakerPolicy;
use redrive_core::replays::{AutoReplay, Pacing};

use self::in_memory::{breakers, eventually, redrive, replay_of};

use crate::support::in_memory;

/// What was told so far.
async fn heard(listener: &mut Listener) -> Vec<Happening> {
    let mut happened = Vec::new();
    while let Ok(Some(Heard::Event(event))) = tokio::time::timeout(Duration::from_millis(50), listener.next()).await {
        assert!(event.worker.is_some(), "it was in a worker");
        happened.push(event.what.clone());
    }
    happened
}

#[tokio::test]
async fn every_job_is_heard_to_begin_and_to_end() {
    let (redrive, _) = redrive();
    let pipeline = Pipeline::new("p", |job: Job| async move {
        match job.input["good"].as_bool() {
            Some(true) => Ok(json!({})),
            _ => Err(FailureReport::new(Reason::RejectedInput, "no good")),
        }
    });
    let pipeline = pipeline.expect("a pipeline").concurrency(1);
    let mut listener = redrive.events().listen();
    redrive.enqueue(&pipeline, [json!({"good": true}), json!({"good": false})]).await.expect("accepted");
    redrive.drain(pipeline).await.expect("drained");
    let happened = heard(&mut listener).await;
    let count = |is: fn(&Happening) -> bool| happened.iter().filter(|what| is(what)).count();
    assert_eq!(count(|what| matches!(what, Happening::JobBegun { attempt: 1, .. })), 2);
    assert_eq!(count(|what| matches!(what, Happening::JobDone { attempts: 1, .. })), 1);
    assert_eq!(count(|what| matches!(what, Happening::JobDied { reason: Some(Reason::RejectedInput), .. })), 1);
    assert_eq!(happened.len(), 4, "{happened:?}");
}

/// Works once it is repaired.
struct Repairable(Arc<AtomicBool>);

#[async_trait::async_trait]
impl Handler for Repairable {
    async fn run(&self, _: Job) -> Result<redrive::Success, HandlerError> {
        match self.0.load(Ordering::Relaxed) {
            true => Ok(json!({}).into()),
            false => Err(HandlerError::Unavailable("its command is not there".into())),
        }
    }
}

#[tokio::test]
async fn a_pipeline_that_cannot_work_is_heard_to_be_held_once_and_to_go_on() {
    let (redrive, clock) = redrive();
    let repaired = Arc::new(AtomicBool::new(false));
    let pipeline = Pipeline::new("p", Repairable(Arc::clone(&repaired))).expect("a pipeline").concurrency(4);
    redrive.enqueue(&pipeline, (0..8).map(|n| json!({"n": n}))).await.expect("accepted");
    let mut listener = redrive.events().listen();
    let stop = CancellationToken::new();
    let working = tokio::spawn({
        let (redrive, stop) = (redrive.clone(), stop.clone());
        async move { redrive.work(vec![pipeline], stop).await }
    });
    let mut happened = Vec::new();
    let held =
        |happened: &[Happening]| happened.iter().filter(|what| matches!(what, Happening::PipelineHeld { .. })).count();
    while held(&happened) == 0 {
        happened.extend(heard(&mut listener).await);
    }
    repaired.store(true, Ordering::Relaxed);
    let name = "p".parse().expect("a name");
    eventually("all are done", async || {
        clock.advance(Duration::from_secs(1));
        redrive.ledger(&name).await.expect("read").done == 8
    })
    .await;
    stop.cancel();
    working.await.expect("no panic").expect("worked");
    happened.extend(heard(&mut listener).await);
    assert_eq!(held(&happened), 1, "{happened:?}");
    let went_on = happened.iter().filter(|what| matches!(what, Happening::PipelineWentOn { .. })).count();
    assert_eq!(went_on, 1, "{happened:?}");
}

/// Fails until it is repaired.
fn failing(repaired: &Arc<AtomicBool>, reason: Reason) -> Pipeline {
    let repaired = Arc::clone(repaired);
    let handler = move |_: Job| {
        let works = repaired.load(Ordering::Relaxed);
        async move { if works { Ok(json!({})) } else { Err(FailureReport::new(reason, "broken")) } }
    };
    Pipeline::new("p", handler).expect("a pipeline").attempts(1).concurrency(1)
}

#[tokio::test]
async fn a_breaker_is_heard_to_open_and_to_close() {
    let (redrive, clock) = redrive();
    let repaired = Arc::new(AtomicBool::new(false));
    let policy = Policy { breaker: BreakerPolicy { blocked_max: 1, ..BreakerPolicy::default() }, ..Policy::default() };
    let pipeline = failing(&repaired, Reason::Blocked).with_policy(policy).attempts(1);
    let tasks = (0..6).map(|n| json!({"n": n, "url": "https://sick.example/"}));
    redrive.enqueue(&pipeline, tasks).await.expect("accepted");
    let mut listener = redrive.events().listen();
    let working = tokio::spawn(redrive.worker(vec![pipeline]).run(Until::Drained, CancellationToken::new()));
    eventually("it opens", async || !breakers(&redrive).await.is_empty()).await;
    repaired.store(true, Ordering::Relaxed);
    eventually("all are through", async || {
        clock.advance(Duration::from_secs(30));
        working.is_finished()
    })
    .await;
    working.await.expect("no panic").expect("drained");
    let turned: Vec<_> = heard(&mut listener)
        .await
        .into_iter()
        .filter_map(|what| match what {
            Happening::BreakerOpened { target, .. } => Some(("opened", target)),
            Happening::BreakerClosed { target, .. } => Some(("closed", target)),
            _ => None,
        })
        .collect();
    assert_eq!(turned, [("opened", "sick.example".to_owned()), ("closed", "sick.example".to_owned())]);
}

#[tokio::test]
async fn a_replay_is_heard_to_send_to_pause_and_to_finish() {
    let (redrive, _) = redrive();
    let repaired = Arc::new(AtomicBool::new(false));
    let pipeline = failing(&repaired, Reason::HandlerError);
    redrive.enqueue(&pipeline, (0..4).map(|n| json!({"n": n}))).await.expect("accepted");
    redrive.drain(pipeline.clone()).await.expect("drained");
    let filter = DeadFilter { pipeline: Some(pipeline.name().clone()), ..DeadFilter::default() };
    let by = Actor::new("ada", Via::Api);
    let pacing = Pacing { ramp: vec![2], ..Pacing::default() };
    let new = NewReplay { pacing, ..replay_of(filter) };
    let id = redrive.start_replay(new).await.expect("started").0.expect("a replay");
    let mut listener = redrive.events().listen();
    let mut told = async || {
        let worker = redrive.worker(vec![pipeline.clone()]).only_replay(id);
        worker.run(Until::Drained, CancellationToken::new()).await.expect("worked");
        let of_replay = |what: Happening| match what {
            Happening::ReplaySent { replay, letters, .. } if replay == id => Some(format!("sent {letters}")),
            Happening::ReplayPaused { replay, .. } if replay == id => Some("paused".to_owned()),
            Happening::ReplayFinished { replay } if replay == id => Some("finished".to_owned()),
            _ => None,
        };
        heard(&mut listener).await.into_iter().filter_map(of_replay).collect::<Vec<_>>()
    };
    assert_eq!(told().await, ["sent 2", "paused"]);
    repaired.store(true, Ordering::Relaxed);
    redrive.resume_replay(ReplayRef::Id(id), &by, &[]).await.expect("resumed");
    let went_on = told().await;
    assert_eq!(
        (went_on.first().map(String::as_str), went_on.last().map(String::as_str)),
        (Some("sent 2"), Some("finished"))
    );
}

#[tokio::test]
async fn a_replay_that_a_policy_begins_is_heard() {
    let (redrive, clock) = redrive();
    let repaired = Arc::new(AtomicBool::new(false));
    let minute = Duration::from_secs(60);
    let auto = AutoReplay { reason: None, every: minute, delay: Duration::ZERO, times_max: 2, letters_max: 9 };
    let policy = Policy { auto_replays: vec![auto], ..Policy::default() };
    let pipeline = failing(&repaired, Reason::Timeout).with_policy(policy).attempts(1);
    redrive.enqueue(&pipeline, [json!({"n": 1})]).await.expect("accepted");
    redrive.drain(pipeline.clone()).await.expect("drained");
    repaired.store(true, Ordering::Relaxed);
    let (mut listener, stop) = (redrive.events().listen(), CancellationToken::new());
    let working = tokio::spawn(redrive.worker(vec![pipeline.clone()]).with_replays().run(Until::Stopped, stop.clone()));
    eventually("it recovers", async || {
        clock.advance(Duration::from_secs(1));
        redrive.ledger(pipeline.name()).await.expect("read").done == 1
    })
    .await;
    stop.cancel();
    working.await.expect("no panic").expect("stopped");
    let happened = heard(&mut listener).await;
    let begun = happened.iter().filter(|what| matches!(what, Happening::ReplayBegun { letters: 1, .. })).count();
    assert_eq!(begun, 1, "{happened:?}");
}
