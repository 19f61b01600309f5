//! Workers of other processes: how their death is noticed where no lock proves it.

use std::sync::Arc;
use std::time::Duration;

use redrive::chance::SeededChance;
use redrive::clock::TestClock;
use redrive::worker::Until;
use redrive::{CancellationToken, Job, Pipeline, Redrive, json};
use redrive_core::ids::{LeaseToken, WorkerId};
use redrive_core::time::Timestamp;
use redrive_core::workers::Presence;
use redrive_store::Options;
use redrive_store::contract::{Beat, Lane, LeaseJobs};
use redrive_store::sqlite::SqliteStore;

const START: Timestamp = Timestamp::from_millis(1_700_000_000_000);

fn beat(worker: WorkerId) -> Beat {
    let (host, runs, leases) = ("far".to_owned(), Vec::new(), Vec::new());
    Beat { worker, host, pid: 1, remote: false, runs, leases, until: START, now: START }
}

/// A worker on another host, or one whose file system has no locks, cannot be proven to be dead: its silence tells.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_without_a_lock_is_found_by_its_silence() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("redrive.db");
    let open = || Arc::new(SqliteStore::open(&path, Options::create()).expect("opened"));
    let clock = Arc::new(TestClock::at(START));
    let redrive =
        Redrive::over(open()).with_surroundings(Arc::<TestClock>::clone(&clock), Arc::new(SeededChance::new(7)));
    let pipeline = Pipeline::new("p", |_: Job| async { Ok(json!(1)) }).expect("a pipeline");
    redrive.enqueue(&pipeline, [json!({"n": 1})]).await.expect("accepted");

    let (other, worker) = (Redrive::over(open()), WorkerId::new(START, 9));
    other.store().beat(beat(worker)).await.expect("attached");
    let lease = LeaseJobs {
        pipeline: "p".parse().expect("a name"),
        lane: Lane::Queue,
        worker,
        definition: None,
        token: LeaseToken::new(START, 1),
        limit: 1,
        until: START + Duration::from_secs(3_600),
        gates: Vec::new(),
        gates_seen: Some(0),
        freed: Vec::new(),
        with_tried: false,
        only: None,
        now: START,
    };
    assert_eq!(other.store().lease(lease).await.expect("leased").jobs.len(), 1);
    drop(other);
    let conn = rusqlite::Connection::open(&path).expect("opened");
    conn.execute("UPDATE worker SET boot = NULL", []).expect("a worker without a lock");

    let working = redrive.worker(vec![pipeline]).run(Until::Drained, CancellationToken::new());
    let ticking = async {
        // Many more than it takes: a slow machine looks at fewer of them.
        for secs in 0..6_000 {
            tokio::time::sleep(Duration::from_millis(20)).await;
            clock.advance(Duration::from_secs(1));
            let ledger = redrive.ledger(&"p".parse().expect("a name")).await.expect("read");
            assert!(secs > 10 || ledger.done == 0, "it was taken for gone after {secs} s");
        }
    };
    tokio::select! {
        ended = working => ended.expect("drained"),
        () = ticking => panic!("the other worker is still waited for"),
    }
}

/// Who is there is known where nothing was ever brought, and who is silent is called so by everybody who asks.
#[tokio::test]
async fn the_status_says_which_workers_are_there_and_which_are_silent() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("redrive.db");
    let open = || Arc::new(SqliteStore::open(&path, Options::create()).expect("opened"));
    let clock = Arc::new(TestClock::at(START));
    let redrive =
        Redrive::over(open()).with_surroundings(Arc::<TestClock>::clone(&clock), Arc::new(SeededChance::new(7)));
    let other = Redrive::over(open());
    other.store().beat(beat(WorkerId::new(START, 9))).await.expect("attached");
    other.store().beat(Beat { remote: true, ..beat(WorkerId::new(START, 10)) }).await.expect("attached");
    drop(other);
    let conn = rusqlite::Connection::open(&path).expect("opened");
    conn.execute("UPDATE worker SET boot = NULL", []).expect("workers without a lock");
    let seen = async || {
        let status = redrive.status().await.expect("read");
        assert!(status.pipelines.is_empty());
        let mut seen: Vec<_> = status.workers.iter().map(|status| (status.worker.remote, status.process)).collect();
        seen.sort_by_key(|(remote, _)| *remote);
        let written = serde_json::to_value(&status).expect("JSON")["workers"].clone();
        assert!(written[0]["process"].is_string() && written[0]["pid"] == 1, "{written}");
        seen
    };
    assert_eq!(seen().await, [(false, Presence::Alive), (true, Presence::Elsewhere)]);
    clock.advance(Duration::from_secs(16));
    assert_eq!(seen().await, [(false, Presence::Silent), (true, Presence::Elsewhere)]);
}
