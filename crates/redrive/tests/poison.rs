//! A job that takes the whole worker down, in a real process that really dies.
//!
//! The test starts itself again as the worker, as often as the worker dies.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use redrive::{Job, Pipeline, Reason, Redrive, json};
use redrive_store::contract::{DeadFilter, ListDead};

const WORKER: &str = "REDRIVE_POISON_TEST_STORE";

fn pipeline() -> Pipeline {
    let handler = |job: Job| async move {
        if job.input["n"] == 7 {
            // Others are in the middle of their work when it happens.
            tokio::time::sleep(Duration::from_millis(20)).await;
            std::process::abort();
        }
        tokio::time::sleep(Duration::from_millis(30)).await;
        Ok(json!(null))
    };
    Pipeline::new("p", handler).expect("a pipeline").concurrency(4).backoff(Duration::from_millis(1))
}

fn open(path: &Path) -> Redrive {
    Redrive::open(&format!("sqlite:{}", path.display())).expect("opened")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_the_poison_pill_is_blamed() {
    if let Some(path) = std::env::var_os(WORKER).map(PathBuf::from) {
        open(&path).drain(pipeline()).await.expect("drained");
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("redrive.db");
    open(&path).enqueue(&pipeline(), (0..40).map(|n| json!({"n": n}))).await.expect("accepted");
    let mut deaths = 0;
    while !work(&path) {
        deaths += 1;
        assert!(deaths < 10, "the worker dies for ever");
    }
    assert_eq!(deaths, 4, "one death in company, three alone");

    let redrive = open(&path);
    let ledger = redrive.ledger(pipeline().name()).await.expect("read");
    assert_eq!((ledger.done, ledger.dead), (39, 1), "every other job finished");
    let params = ListDead { filter: DeadFilter::default(), limit: 9, cursor: None, with_failures: true };
    let letter = redrive.store().list_dead(params).await.expect("listed").items.remove(0);
    assert_eq!(letter.input["n"], 7);
    assert_eq!((letter.reason, letter.crashes, letter.attempts), (Reason::PoisonPill, 3, 0));
    assert_eq!(letter.failures.map(|failures| failures.len()), Some(3));
    assert_eq!(redrive.store().audit().await.expect("audited").problems, Vec::<String>::new());
}

/// Runs a worker until it ends; says whether it ended well.
fn work(path: &Path) -> bool {
    let test = std::env::current_exe().expect("this test");
    let mut worker = Command::new(test);
    worker.args(["--exact", "only_the_poison_pill_is_blamed"]).env(WORKER, path);
    worker.stdout(Stdio::null()).stderr(Stdio::null()).status().expect("started").success()
}
