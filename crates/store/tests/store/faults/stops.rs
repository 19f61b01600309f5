//! A server that is stopped at once, whose processes are ended, or whose disk is full.

use std::os::unix::fs::{MetadataExt, chown};

use redrive_core::policy::Bounds;
use redrive_core::policy::Policy;
use redrive_core::settlements::{Ending, Outcome, Settlement, decide};
use redrive_store::StoreError;
use redrive_store::conformance::load::Load;
use redrive_store::conformance::recount::assert_recounted;
use redrive_store::conformance::script::{
    assert_sound, at, attach, enqueue, job, lease_all, ledger, plain, settle_all, try_enqueue,
};
use redrive_store::contract::Settled;

use super::disk::Disk;
use super::{open, run, times};
use crate::support::server::{OwnServer, address, schema};

/// Somebody ends processes of the server, again and again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_at_once_lose_nothing_when_processes_of_the_server_are_ended() {
    let server = OwnServer::start();
    let stores = vec![open(&server.address(), "redrive").await, open(&server.address(), "redrive").await];
    let mut load = Load::begin(stores).await;
    for _ in 0..times(8) {
        load.settle_more(10).await;
        let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                   WHERE application_name LIKE 'redrive %' AND pid <> pg_backend_pid() AND random() < 0.5";
        run(&server.address(), end).await;
    }
    load.end().await;
}

/// A server is stopped at once, again and again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_stopped_at_once_loses_nothing() {
    let server = OwnServer::start();
    let stores = vec![open(&server.address(), "redrive").await, open(&server.address(), "redrive").await];
    let mut load = Load::begin(stores).await;
    for _ in 0..times(3) {
        load.settle_more(20).await;
        server.stop();
    }
    load.settle_more(1).await;
    load.end().await;
}

/// Somebody else has a transaction open all the time, so that nothing that is over can be cleaned away.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_snapshot_that_somebody_holds_changes_nothing() {
    let (address, schema) = (address(), schema());
    let (client, connection) = tokio_postgres::connect(&address, tokio_postgres::NoTls).await.expect("connected");
    let connection = tokio::spawn(connection);
    let store = open(&address, &schema).await;
    attach(&store, 1).await;
    client.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM pg_class").await.expect("begun");
    let (rounds, rules) = (u128::from(times(4)), store.cause_rules().await.expect("read"));
    for round in 0..rounds {
        enqueue(&store, (1..=1_000).map(|n| job(round * 1_000 + n, plain())).collect()).await;
        for _ in 0..5 {
            let leased = lease_all(&store, 200, at(1)).await.jobs;
            let ending = || Ending { at: at(2), duration: None, worker: None, chance: 0.0 };
            let done = |job| Settlement::new(job, decide(&Policy::default(), job, Outcome::Done, ending()), &rules);
            let settled = settle_all(&store, leased.iter().map(done).collect(), at(2)).await;
            assert_eq!((settled.len(), settled.iter().all(|answer| *answer == Settled::Applied)), (200, true));
        }
    }
    client.batch_execute("COMMIT").await.expect("held until now");
    connection.abort();
    let counts = ledger(&store).await;
    assert_eq!((u128::try_from(counts.done), counts.open()), (Ok(rounds * 1_000), 0));
    assert_sound(&store).await;
}

/// A disk fills up while jobs are accepted: that is said, what was accepted is there, and it goes on once there is room.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_is_said_and_got_over() {
    let (server, folder) = (OwnServer::start(), tempfile::tempdir().expect("a folder"));
    let disk = Disk::mount(folder.path(), "size=24m");
    let small = folder.path().join("tables");
    std::fs::create_dir(&small).expect("made");
    let owner = std::fs::metadata(server.folder().join("data")).expect("there");
    chown(&small, Some(owner.uid()), Some(owner.gid())).expect("given");
    run(&server.address(), &format!("CREATE TABLESPACE small LOCATION '{}'", small.display())).await;
    run(&server.address(), "ALTER ROLE redrive SET default_tablespace = small").await;
    let store = open(&server.address(), "redrive").await;
    let mut accepted = 0;
    let full = loop {
        let text: String = (0..200_000_u64).map(|n| char::from(b'a' + (n * n % 7_919 % 26) as u8)).collect();
        match try_enqueue(&store, vec![job(accepted + 1, serde_json::json!({"text": text}))], Bounds::default()).await {
            Ok(_) => accepted += 1,
            Err(error) => break error,
        }
        assert!(accepted < 10_000, "it is a small disk");
    };
    assert!(matches!(full, StoreError::DiskFull { .. }), "{full}");
    assert_eq!(u128::try_from(ledger(&store).await.accepted), Ok(accepted));
    disk.remount("size=200m");
    let next = vec![job(accepted + 1, serde_json::json!({"text": "room"}))];
    try_enqueue(&store, next, Bounds::default()).await.expect("accepted");
    assert_eq!(u128::try_from(ledger(&store).await.accepted), Ok(accepted + 1));
    assert_recounted(&store).await;
    assert_sound(&store).await;
}
