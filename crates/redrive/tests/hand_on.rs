//! Handing on: jobs that come into being with the end of another.

#[path = "support/in_memory.rs"]
mod in_memory;

use redrive::worker::Until;
use redrive::{
    CancellationToken, FailureReport, HandedOn, HandsOn, Job, Pipeline, PipelineName, Reason, Success, json,
};
use redrive_store::contract::{DeadFilter, ListDead};
use serde_json::Value;

use self::in_memory::redrive;

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
    let params = ListDead { filter: DeadFilter::default(), limit: 9, cursor: None, with_failures: true };
    let letter = redrive.store().list_dead(params).await.expect("listed").items.remove(0);
    assert_eq!((letter.reason, letter.code.as_deref()), (Reason::Misconfigured, Some("hand_on")));
    assert!(letter.message.contains("hand_on of pipeline pages"), "{}", letter.message);
}
