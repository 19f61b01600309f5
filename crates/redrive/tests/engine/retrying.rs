//! What jobs failed with that wait for another attempt is told while a target is on hold, and costs nothing otherwise.

use std::sync::Arc;
use std::time::Duration;

use redrive::worker::Until;
use redrive::{CancellationToken, FailureReport, Job, Pipeline, Redrive, json};
use redrive_store::conformance::decorators::{Counting, Decorated};
use redrive_store::sqlite::SqliteStore;

use self::in_memory::{eventually, hold, over};

use crate::support::in_memory;

async fn enqueue(redrive: &Redrive, pipeline: &Pipeline, jobs: u32) {
    let inputs = (0..jobs).map(|n| json!({"n": n, "url": "https://shop.example/"}));
    redrive.enqueue(pipeline, inputs).await.expect("accepted");
}

fn broken(name: &str) -> Pipeline {
    Pipeline::new(name, |_: Job| async { Err::<serde_json::Value, _>(FailureReport::message("no price")) })
        .expect("a pipeline")
}

#[tokio::test]
async fn jobs_that_wait_are_read_only_while_a_target_is_on_hold() {
    let counting = Arc::<Counting>::default();
    let (redrive, _) = over(Decorated::around(Arc::new(SqliteStore::in_memory().expect("opened")), &counting));
    let pipeline = broken("shop");
    enqueue(&redrive, &pipeline, 4).await;
    let stop = CancellationToken::new();
    let working = tokio::spawn(redrive.worker(vec![pipeline.clone()]).run(Until::Stopped, stop.clone()));
    eventually("all of them failed", async || redrive.ledger(pipeline.name()).await.expect("read").retrying == 4).await;
    stop.cancel();
    working.await.expect("no panic").expect("stopped");
    assert!(redrive.status().await.expect("read").retrying.is_empty());
    assert_eq!((counting.calls("retrying_jobs"), counting.calls("list_jobs")), (0, 0));
    hold(&redrive, "shop.example", None).await.expect("held");
    let before = counting.calls("list_jobs");
    let status = redrive.status().await.expect("read").retrying;
    assert_eq!(
        (status[0].targets.as_slice(), status[0].lines(3)),
        (["shop.example".to_owned()].as_slice(), vec!["4 × handler_error: no price".to_owned()])
    );
    assert_eq!((counting.calls("retrying_jobs"), counting.calls("list_jobs")), (1, before));
}

#[tokio::test]
async fn three_hundred_pipelines_on_hold_are_told_within_bounds() {
    let counting = Arc::<Counting>::default();
    let (redrive, clock) = over(Decorated::around(Arc::new(SqliteStore::in_memory().expect("opened")), &counting));
    for n in 0..300 {
        enqueue(&redrive, &broken(&format!("p{n}")), 1).await;
    }
    let busy = broken("p0");
    enqueue(&redrive, &busy, 60).await;
    let stop = CancellationToken::new();
    let working = tokio::spawn(redrive.worker(vec![busy.clone()]).run(Until::Stopped, stop.clone()));
    eventually("all of them failed", async || redrive.ledger(busy.name()).await.expect("read").retrying == 61).await;
    stop.cancel();
    working.await.expect("no panic").expect("stopped");
    clock.advance(Duration::from_secs(1));
    hold(&redrive, "shop.example", None).await.expect("held");
    let views = redrive.status().await.expect("read").retrying;
    assert_eq!(views.len(), 1, "of the others nothing failed");
    let told = (views[0].jobs, views[0].at_least, views[0].lines(3));
    assert_eq!(told, (20, true, vec!["at least 20 × handler_error: no price".to_owned()]));
    assert!(counting.asked("retrying_jobs").rows_max <= 20, "each reads its share");
}
