//! What who listens hears of jobs, pipelines and replays.

#[path = "support/in_memory.rs"]
mod in_memory;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use redrive::events::{Happening, Heard, Listener};
use redrive::handler::HandlerError;
use redrive::{CancellationToken, FailureReport, Handler, Job, Pipeline, Reason, json};

use self::in_memory::{eventually, redrive};

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
