//! A job that takes the whole worker down, in a real process that really dies.
//!
//! The test starts itself again as the worker, as often as the worker dies.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use redrive::handler::{exec, isolated};
use redrive::vault::Vault;
use redrive::{Job, Pipeline, Reason, Redrive, json};
use redrive_core::payloads::Response;
use redrive_core::policy::Policy;
use redrive_store::conformance::decorators::{Decorated, Layer};
use redrive_store::contract::{DeadFilter, ListDead};
use redrive_store::sqlite::SqliteStore;
use redrive_store::{Options, Result as StoreResult};

const WORKER: &str = "REDRIVE_POISON_TEST_STORE";

fn pipeline() -> Pipeline {
    let handler = |job: Job| async move {
        let died = std::env::var_os(WORKER).map(PathBuf::from).expect("in a worker").with_extension("died");
        match job.input["n"].as_u64() {
            Some(7) => {
                std::fs::write(died, "").expect("noted");
                std::process::abort();
            }
            // Others are in the middle of their work when it first happens.
            Some(5..=8) if !died.exists() => std::future::pending().await,
            _ => Ok(json!(null)),
        }
    };
    Pipeline::new("p", handler).expect("a pipeline").concurrency(4).backoff(Duration::from_millis(1))
}

fn open(path: &Path) -> Redrive {
    Redrive::over(Arc::new(SqliteStore::open(path, Options::create()).expect("opened")))
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
    while !work(&path, "poison::only_the_poison_pill_is_blamed") {
        deaths += 1;
        assert!(deaths < 10, "the worker dies for ever");
    }
    assert_eq!(deaths, 4, "one death in company, three alone");

    let redrive = open(&path);
    let ledger = redrive.ledger(pipeline().name()).await.expect("read");
    assert_eq!((ledger.done, ledger.dead), (39, 1), "every other job finished");
    let params = ListDead { with_failures: true, ..ListDead::newest(DeadFilter::default(), 9) };
    let letter = redrive.store().list_dead(params).await.expect("listed").items.remove(0);
    assert_eq!(letter.input["n"], 7);
    assert_eq!((letter.reason, letter.crashes, letter.attempts), (Reason::PoisonPill, 3, 0));
    assert_eq!(letter.failures.map(|failures| failures.len()), Some(3));
    assert_eq!(redrive.store().audit().await.expect("audited").problems, Vec::<String>::new());
}

/// A store that takes its time to settle.
struct SlowToSettle;

impl Layer for SlowToSettle {
    async fn around<T, F, R>(&self, verb: &'static str, call: F) -> StoreResult<T>
    where
        T: Send,
        F: Fn() -> R + Send + Sync,
        R: Future<Output = StoreResult<T>> + Send,
    {
        if verb == "settle" {
            tokio::time::sleep(Duration::from_millis(300)).await;
        }
        call().await
    }
}

/// Suspects that went well alone are settled a moment later, and others begin meanwhile: one of those takes the worker down.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_suspect_that_went_well_is_not_blamed_before_it_is_settled() {
    // Whoever is blamed once is buried.
    let pipeline = || {
        let policy = Policy { crashes_max: 1, ..pipeline().policy().clone() };
        pipeline().with_policy(policy)
    };
    if let Some(path) = std::env::var_os(WORKER).map(PathBuf::from) {
        let store = Arc::new(SqliteStore::open(&path, Options::create()).expect("opened"));
        let redrive = Redrive::over(Decorated::around(store, &Arc::new(SlowToSettle)));
        redrive.drain(pipeline()).await.expect("drained");
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("redrive.db");
    open(&path).enqueue(&pipeline(), (0..12).map(|n| json!({"n": n}))).await.expect("accepted");
    let mut deaths = 0;
    while !work(&path, "poison::a_suspect_that_went_well_is_not_blamed_before_it_is_settled") {
        deaths += 1;
        assert!(deaths < 10, "the worker dies for ever");
    }
    assert_eq!(deaths, 2, "one death in company, one alone");
    let ledger = open(&path).ledger(pipeline().name()).await.expect("read");
    assert_eq!((ledger.done, ledger.dead), (11, 1), "nobody else is blamed");
}

const ISOLATED: &str = "poison::isolated_jobs_answer_for_their_own_process";

/// Keeps a payload, then takes the process down if the job says so.
fn deadly() -> Pipeline {
    let handler = |job: Job| async move {
        let mut capture = job.evidence.capture().expect("begun");
        capture.write(b"what it died of").expect("written");
        job.evidence.save(capture, Response::default(), Some(100)).await.expect("kept");
        match job.input["n"] == 7 {
            true => {
                eprintln!("it had s3cret-value and token=abcdef1234567890 with it");
                std::process::abort()
            }
            false => Ok(json!(job.input["n"])),
        }
    };
    let test = std::env::current_exe().expect("this test");
    let args = ["--exact", ISOLATED, "--nocapture"].map(Into::into);
    let mut command = exec::Command::new(test, args);
    command.env.push(("REDRIVE_POISON_TEST_JOB".into(), "1".into()));
    command.secrets.add_value("s3cret-value");
    let pipeline = Pipeline::new("p", handler).expect("a pipeline").isolate_with(command, json!("definition"));
    pipeline.concurrency(4).backoff(Duration::from_millis(1))
}

/// The test starts itself as the worker, and that starts itself as the process of a job.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn isolated_jobs_answer_for_their_own_process() {
    if std::env::var_os("REDRIVE_POISON_TEST_JOB").is_some() {
        let build = |definition| {
            assert_eq!(definition, json!("definition"));
            Ok(deadly().handler())
        };
        panic!("{}", isolated::serve(build).await);
    }
    if let Some(path) = std::env::var_os(WORKER).map(PathBuf::from) {
        let redrive = open(&path);
        let vault = Vault::open(&path.with_file_name("payloads").display().to_string(), &redrive).expect("opened");
        redrive.drain(deadly().vault(vault)).await.expect("drained");
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("redrive.db");
    open(&path).enqueue(&deadly(), (0..10).map(|n| json!({"n": n}))).await.expect("accepted");
    assert!(!work(&path, ISOLATED), "the worker dies in company");
    assert!(work(&path, ISOLATED), "and of nobody who is alone");
    let redrive = open(&path);
    let ledger = redrive.ledger(deadly().name()).await.expect("read");
    assert_eq!((ledger.done, ledger.dead), (9, 1));
    let params = ListDead { with_failures: true, ..ListDead::newest(DeadFilter::default(), 9) };
    let letter = redrive.store().list_dead(params).await.expect("listed").items.remove(0);
    assert_eq!((letter.reason, letter.crashes, letter.code.as_deref()), (Reason::PoisonPill, 3, Some("SIGABRT")));
    for failure in letter.failures.iter().flatten().filter(|failure| failure.code.as_deref() == Some("SIGABRT")) {
        let said = failure.stderr.as_deref().unwrap_or_default();
        assert!(said.contains("it had *** and token=*** with it"), "{said}");
    }
    let payload = letter.failures.into_iter().flatten().next_back().and_then(|failure| failure.payload);
    let payload = payload.expect("what it died of is kept");
    assert_eq!((payload.size_bytes, payload.total_bytes), (15, Some(100)));
}

/// Runs a worker until it ends; says whether it ended well.
fn work(path: &Path, test_name: &str) -> bool {
    let test = std::env::current_exe().expect("this test");
    let mut worker = Command::new(test);
    worker.args(["--exact", test_name]).env(WORKER, path);
    worker.stdout(Stdio::null()).stderr(Stdio::null()).status().expect("started").success()
}
