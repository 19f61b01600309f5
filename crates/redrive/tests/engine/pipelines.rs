//! Pipelines that people pause, and breakers that they turn, as workers of two processes see it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use redrive::clock::Clock;
use redrive::pipelines::PipelineError;
use redrive::worker::Until;
use redrive::{CancellationToken, Error, ErrorKind, Job, Pipeline, Redrive, json};
use redrive_core::actors::{Actor, Via};
use redrive_core::ids::PipelineName;
use tokio::sync::Semaphore;

use self::in_memory::{at_start, eventually, redrive};

use crate::support::in_memory;

fn ada() -> Actor {
    Actor::new("ada", Via::Cli)
}

fn name() -> PipelineName {
    "p".parse().expect("a name")
}

/// A pipeline whose jobs wait for permits and are counted when they begin.
fn gated(begun: &Arc<AtomicU32>, gate: &Arc<Semaphore>) -> Pipeline {
    let (begun, gate) = (Arc::clone(begun), Arc::clone(gate));
    let handler = move |_: Job| {
        let (begun, gate) = (Arc::clone(&begun), Arc::clone(&gate));
        async move {
            begun.fetch_add(1, Ordering::SeqCst);
            gate.acquire().await.expect("open").forget();
            Ok(json!({}))
        }
    };
    Pipeline::new("p", handler).expect("a pipeline").concurrency(1)
}

async fn two_processes() -> (tempfile::TempDir, [Redrive; 2]) {
    let folder = tempfile::tempdir().expect("a folder");
    let address = format!("sqlite:{}", folder.path().join("redrive.db").display());
    let handles = [Redrive::open(&address).await.expect("opened"), Redrive::open(&address).await.expect("opened")];
    (folder, handles)
}

/// What a worker has leased ahead and not begun goes back when another process pauses the pipeline.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_pause_by_another_process_is_heeded_between_two_jobs() {
    let (_folder, [works, pauses]) = two_processes().await;
    let (begun, gate) = (Arc::new(AtomicU32::new(0)), Arc::new(Semaphore::new(0)));
    let pipeline = gated(&begun, &gate);
    works.enqueue(&pipeline, (0..20).map(|n| json!({ "n": n }))).await.expect("accepted");
    let stop = CancellationToken::new();
    let working = tokio::spawn(works.worker(vec![pipeline]).run(Until::Stopped, stop.clone()));
    eventually("one runs", async || begun.load(Ordering::SeqCst) == 1).await;
    pauses.pause_pipeline(&name(), Some("the shop moves"), &ada()).await.expect("paused");
    let leased = async || pauses.ledger(&name()).await.expect("read").leased;
    eventually("only what runs is leased", async || leased().await == 1).await;
    gate.add_permits(20);
    eventually("what ran came to its end", async || pauses.ledger(&name()).await.expect("read").done == 1).await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!((begun.load(Ordering::SeqCst), leased().await), (1, 0), "nothing more is begun");
    let pause = pauses.resume_pipeline(&name(), &ada()).await.expect("resumed");
    assert_eq!(pause.why.as_deref(), Some("the shop moves"));
    eventually("all are done", async || pauses.ledger(&name()).await.expect("read").done == 20).await;
    stop.cancel();
    working.await.expect("ended").expect("worked");
}

#[tokio::test]
async fn a_run_waits_for_a_paused_pipeline_as_for_a_target() {
    let (redrive, clock) = redrive();
    let pipeline = Pipeline::new("p", |_: Job| async { Ok(json!({})) }).expect("a pipeline");
    redrive.enqueue(&pipeline, [json!({})]).await.expect("accepted");
    redrive.pause_pipeline(&name(), None, &ada()).await.expect("paused");
    let worker = redrive.worker(vec![pipeline.clone()]).max_wait(Duration::from_secs(600));
    let working = tokio::spawn(worker.run(Until::Drained, CancellationToken::new()));
    eventually("it gives up", async || {
        clock.advance(Duration::from_secs(10));
        working.is_finished()
    })
    .await;
    let waited = clock.now().since(at_start());
    assert!(waited >= Duration::from_secs(600), "it may go on at any moment: {waited:?}");
    match working.await.expect("ended") {
        Err(Error::WaitedInVain(waited)) => assert_eq!(waited.paused.expect("why").by, ada()),
        other => panic!("{other:?}"),
    }
    redrive.resume_pipeline(&name(), &ada()).await.expect("resumed");
    assert_eq!(redrive.drain(pipeline).await.expect("drained").done, 1);
}

#[tokio::test]
async fn only_what_is_paused_is_resumed() {
    let (redrive, _) = redrive();
    let refused = redrive.resume_pipeline(&name(), &ada()).await.expect_err("not paused");
    assert!(matches!(&refused, Error::Pipeline(PipelineError::NotPaused(_))) && refused.kind() == ErrorKind::Refused);
    redrive.pause_pipeline(&name(), Some("a"), &ada()).await.expect("paused");
    let bob = Actor::new("bob", Via::Cli);
    let again = redrive.pause_pipeline(&name(), None, &bob).await.expect("paused");
    assert_eq!((again.by, again.why.as_deref()), (bob, Some("a")));
    let refused = redrive.check_not_paused([&name()]).await.expect_err("paused");
    assert!(refused.to_string().contains("pipeline p is paused by bob"), "{refused}");
}
