//! Workers that take up pipelines which changed.

use std::sync::{Arc, Mutex};

use redrive::events::{Happening, Heard};
use redrive::worker::Until;
use redrive::worker::reload::{Reread, Source};
use redrive::{CancellationToken, FailureReport, Handler, HandlerError, Job, Pipeline, Success, json};

use self::in_memory::{eventually, redrive};

use crate::support::in_memory;

/// Pipelines that a test puts there.
#[derive(Clone, Default)]
struct Given(Arc<Mutex<Option<Vec<Pipeline>>>>);

impl Given {
    fn put(&self, pipelines: Vec<Pipeline>) {
        *self.0.lock().expect("unpoisoned") = Some(pipelines);
    }
}

impl Source for Given {
    fn changed(&mut self) -> Option<Reread> {
        self.0.lock().expect("unpoisoned").take().map(Ok)
    }
}

/// Cannot work at all.
struct Gone;

#[async_trait::async_trait]
impl Handler for Gone {
    async fn run(&self, _: Job) -> Result<Success, HandlerError> {
        Err(HandlerError::Unavailable("its command is not there".into()))
    }
}

fn quick(name: &str) -> Pipeline {
    Pipeline::new(name, |_: Job| async { Ok(json!(1)) }).expect("a pipeline")
}

/// A pipeline whose jobs wait for the token.
fn waiting(name: &str, go: &CancellationToken) -> Pipeline {
    let go = go.clone();
    let handler = move |_: Job| {
        let go = go.clone();
        async move {
            go.cancelled().await;
            Ok::<_, FailureReport>(json!(1))
        }
    };
    Pipeline::new(name, handler).expect("a pipeline")
}

#[tokio::test]
async fn what_a_former_worker_could_not_do_is_no_failure_of_the_one_that_did_it() {
    let (redrive, _) = redrive();
    let (given, go) = (Given::default(), CancellationToken::new());
    let broken = Pipeline::new("b", Gone).expect("a pipeline");
    redrive.enqueue(&quick("a"), [json!({})]).await.expect("accepted");
    redrive.enqueue(&quick("b"), [json!({})]).await.expect("accepted");
    let mut listener = redrive.events().listen();
    let worker = redrive.worker(vec![waiting("a", &go), broken]).following(given.clone());
    let working = tokio::spawn(worker.run(Until::Drained, CancellationToken::new()));
    loop {
        if let Some(Heard::Event(event)) = listener.next().await
            && matches!(event.what, Happening::PipelineHeld { .. })
        {
            break;
        }
    }
    given.put(vec![waiting("a", &go), quick("b")]);
    eventually("the corrected one is done", async || redrive.ledger(quick("b").name()).await.expect("read").done == 1)
        .await;
    go.cancel();
    working.await.expect("no panic").expect("all was done");
    assert_eq!(redrive.ledger(quick("a").name()).await.expect("read").done, 1);
}

#[tokio::test]
async fn a_pipeline_that_is_taken_out_is_worked_on_no_more() {
    let (redrive, _) = redrive();
    let (given, go, stop) = (Given::default(), CancellationToken::new(), CancellationToken::new());
    redrive.enqueue(&quick("b"), [json!({"n": 1})]).await.expect("accepted");
    let worker = redrive.worker(vec![quick("a"), waiting("b", &go)]).following(given.clone());
    let working = tokio::spawn(worker.run(Until::Stopped, stop.clone()));
    let done = async |name: &str| redrive.ledger(quick(name).name()).await.expect("read").done;
    let runs = async || {
        let workers = redrive.store().list_workers().await.expect("listed");
        let mut runs: Vec<_> = workers.iter().map(|worker| worker.runs.len()).collect();
        runs.sort_unstable_by(|a, b| b.cmp(a));
        runs
    };
    eventually("it runs", async || redrive.ledger(quick("b").name()).await.expect("read").leased == 1).await;
    given.put(vec![quick("a")]);
    eventually("another takes over", async || runs().await == [2, 1]).await;
    redrive.enqueue(&quick("b"), [json!({"n": 2})]).await.expect("accepted");
    go.cancel();
    eventually("what ran comes to its end", async || done("b").await == 1 && runs().await == [1]).await;
    redrive.enqueue(&quick("a"), [json!({"n": 1})]).await.expect("accepted");
    eventually("the other pipeline goes on", async || done("a").await == 1).await;
    assert_eq!(redrive.ledger(quick("b").name()).await.expect("read").queued, 1, "nobody takes it");
    stop.cancel();
    working.await.expect("no panic").expect("stopped");
}
