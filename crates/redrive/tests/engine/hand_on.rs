//! Handing on: jobs that come into being with the end of another.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use redrive::contract::{DeadFilter, JobFilter, ListDead, ListJobs};
use redrive::replays::NewReplay;
use redrive::worker::Until;
use redrive::{
    CancellationToken, Error, FailureReport, HandedOn, Handler, HandlerError, HandsOn, Job, Pipeline, PipelineName,
    Reason, Redrive, Success, json,
};
use redrive_core::replays::Pacing;
use serde_json::Value;

use self::in_memory::{redrive, replay_of};

use crate::support::in_memory;

fn name(name: &str) -> PipelineName {
    name.parse().expect("a name")
}

fn to(pipeline: &str, input: Value) -> HandedOn {
    let Value::Object(input) = input else { panic!("an object") };
    HandedOn::new(input).to(name(pipeline))
}

/// Hands on two items for each page, the last page but one more page.
async fn pages(job: Job) -> Result<Success, FailureReport> {
    let page = job.input["page"].as_u64().unwrap_or_default();
    let mut done = Success::from(json!({"page": page}));
    for item in 0..2 {
        done = done.hand_on(to("items", json!({"item": page * 10 + item})));
    }
    Ok(if page < 3 { done.hand_on(to("pages", json!({"page": page + 1}))) } else { done })
}

#[tokio::test]
async fn what_is_handed_on_is_worked_on_before_a_worker_has_nothing_left_to_do() {
    let (redrive, _) = redrive();
    let pages = Pipeline::new("pages", HandsOn(pages)).expect("a pipeline").hand_on(vec![name("items")]);
    let slow = |_: Job| async {
        tokio::time::sleep(std::time::Duration::from_millis(2)).await;
        Ok(json!(null))
    };
    let items = Pipeline::new("items", slow).expect("a pipeline");
    redrive.enqueue(&pages, [json!({"page": 1})]).await.expect("accepted");
    let worker = redrive.worker(vec![items, pages]);
    worker.run(Until::Drained, CancellationToken::new()).await.expect("drained");
    let (pages, items) = (redrive.ledger(&name("pages")).await, redrive.ledger(&name("items")).await);
    assert_eq!((pages.expect("read").done, items.expect("read").done), (3, 6));
    assert_eq!(redrive.store().audit().await.expect("audited").problems, Vec::<String>::new());
}

#[tokio::test]
async fn a_pipeline_that_is_not_named_gets_nothing_and_the_job_says_so() {
    let (redrive, _) = redrive();
    let pages = Pipeline::new("pages", HandsOn(pages)).expect("a pipeline");
    redrive.enqueue(&pages, [json!({"page": 3})]).await.expect("accepted");
    let ledger = redrive.drain(pages).await.expect("drained");
    assert_eq!((ledger.accepted, ledger.dead), (1, 1));
    let params = ListDead { with_failures: true, ..ListDead::newest(DeadFilter::default(), 9) };
    let letter = redrive.store().list_dead(params).await.expect("listed").items.remove(0);
    assert_eq!((letter.reason, letter.code.as_deref()), (Reason::Misconfigured, Some("hand_on")));
    assert!(letter.message.contains("hand_on of pipeline pages"), "{}", letter.message);
}

/// Letters of a pipeline go through again, all at once.
async fn replay(redrive: &Redrive, pipeline: &str) {
    let filter = DeadFilter { pipeline: Some(name(pipeline)), ..DeadFilter::default() };
    let pacing = Pacing { ramp: Vec::new(), ..Pacing::default() };
    let new = NewReplay { pacing, ..replay_of(filter) };
    redrive.start_replay(new).await.expect("started").0.expect("a replay");
}

/// Who drives replays ends only when nothing more can come of them.
#[tokio::test]
async fn what_a_replayed_letter_hands_on_is_worked_on_too() {
    let (redrive, _) = redrive();
    let fixed = Arc::new(AtomicBool::new(false));
    let handler = {
        let fixed = Arc::clone(&fixed);
        move |job: Job| {
            let fixed = fixed.load(Ordering::Relaxed);
            async move {
                if !fixed {
                    return Err(FailureReport::new(Reason::RejectedInput, "not yet"));
                }
                // Long enough that who looks at the queues only has found them empty.
                tokio::time::sleep(std::time::Duration::from_millis(300)).await;
                pages(job).await
            }
        }
    };
    let pages = Pipeline::new("pages", HandsOn(handler)).expect("a pipeline").hand_on(vec![name("items")]);
    let items = Pipeline::new("items", |_: Job| async { Ok(json!(null)) }).expect("a pipeline");
    redrive.enqueue(&pages, [json!({"page": 3})]).await.expect("accepted");
    redrive.drain(pages.clone()).await.expect("drained");
    fixed.store(true, Ordering::Relaxed);
    replay(&redrive, "pages").await;
    let worker = redrive.worker(vec![items, pages]).with_replays();
    let work_done = worker.work_done();
    worker.run(Until::Drained, CancellationToken::new()).await.expect("drained");
    let items = redrive.ledger(&name("items")).await.expect("read");
    assert_eq!((items.done, items.queued), (2, 0));
    assert_eq!(work_done.read().handed_on.into_iter().collect::<Vec<_>>(), [(name("items"), 2)]);
}

#[tokio::test]
async fn a_pipeline_with_one_target_has_it_for_what_is_handed_on_too() {
    let (redrive, _) = redrive();
    let pages = Pipeline::new("pages", HandsOn(pages)).expect("a pipeline").hand_on(vec![name("items")]);
    let pages = pages.fixed_target("catalog");
    let items = Pipeline::new("items", |_: Job| async { Ok(json!(null)) }).expect("a pipeline").fixed_target("api");
    redrive.enqueue(&pages, [json!({"page": 2})]).await.expect("accepted");
    let worker = redrive.worker(vec![items, pages]);
    worker.run(Until::Drained, CancellationToken::new()).await.expect("drained");
    let targets = async |pipeline: &str| {
        let filter = JobFilter { pipeline: Some(name(pipeline)), ..JobFilter::default() };
        let jobs = redrive.store().list_jobs(ListJobs { filter, limit: 9, cursor: None }).await.expect("listed").items;
        jobs.into_iter().map(|job| job.target.unwrap_or_default()).collect::<Vec<_>>()
    };
    assert_eq!(targets("pages").await, ["catalog"; 2], "the first, and the one that it handed on");
    assert_eq!(targets("items").await, ["api"; 4]);
}

/// Cannot work at all.
struct Gone;

#[async_trait::async_trait]
impl Handler for Gone {
    async fn run(&self, _: Job) -> Result<Success, HandlerError> {
        Err(HandlerError::Unavailable("its command is not there".into()))
    }
}

#[tokio::test]
async fn who_may_be_handed_jobs_does_not_wait_for_a_pipeline_that_was_given_up() {
    let (redrive, _) = redrive();
    let pages = Pipeline::new("pages", Gone).expect("a pipeline").hand_on(vec![name("items")]);
    let items = Pipeline::new("items", |_: Job| async { Ok(json!(null)) }).expect("a pipeline");
    redrive.enqueue(&pages, [json!({"page": 1})]).await.expect("accepted");
    redrive.enqueue(&items, [json!({"item": 1})]).await.expect("accepted");
    let worker = redrive.worker(vec![items, pages]);
    let working = worker.run(Until::Drained, CancellationToken::new());
    let ended = tokio::time::timeout(std::time::Duration::from_secs(60), working).await.expect("it ends");
    assert!(matches!(&ended, Err(Error::Held { pipeline, .. }) if *pipeline == name("pages")), "{ended:?}");
    let (pages, items) = (redrive.ledger(&name("pages")).await, redrive.ledger(&name("items")).await);
    assert_eq!((pages.expect("read").queued, items.expect("read").done), (1, 1));
}
