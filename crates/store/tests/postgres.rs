//! The conformance suite on PostgreSQL, and what only a server must hold to.

#[path = "support/cutting.rs"]
mod cutting;
#[path = "support/postgres.rs"]
mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use redrive_core::settlements::Outcome;
use redrive_store::conformance::script::{
    Shared, assert_sound, at, attach, enqueue, job, lease_all, lease_of, ledger, listen, pipeline, plain, settle,
};
use redrive_store::contract::{Change, Changes, EnqueueJobs, EnqueuedJob, Lane, Topic};
use redrive_store::postgres::PostgresStore;
use redrive_store::{Options, StoreError};
use tokio_postgres::NoTls;

use self::cutting::Cutting;
use self::support::{OwnServer, address, address_in, in_schemas, schema, server, store};

redrive_store::conformance_tests!(in_schemas);

async fn open(schema: &str) -> Shared {
    Arc::new(store(schema).await)
}

/// Runs statements in a schema, past the store.
async fn tamper(schema: &str, sql: &str) {
    let (client, connection) = tokio_postgres::connect(&address(), NoTls).await.expect("connected");
    tokio::spawn(connection);
    client.batch_execute(&format!("SET search_path = {schema}; {sql}")).await.expect(sql);
}

async fn refusal(schema: &str, options: Options) -> StoreError {
    PostgresStore::open(&address(), Some(schema), options).await.err().expect("refused")
}

#[tokio::test]
async fn what_was_acknowledged_is_there_after_reopening() {
    let schema = schema();
    let first = open(&schema).await;
    enqueue(&first, (1..=100).map(|n| job(n, plain())).collect()).await;
    drop(first);
    let second = open(&schema).await;
    attach(&second, 1).await;
    assert_eq!(lease_all(&second, 1_000, at(0)).await.jobs.len(), 100);
    assert_sound(&second).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_callers_in_two_processes_share_one_store() {
    let schema = schema();
    let stores = [open(&schema).await, open(&schema).await];
    let tasks: Vec<_> = (0..32_u128)
        .map(|caller| {
            let store = Arc::clone(&stores[usize::from(caller % 2 == 0)]);
            tokio::spawn(async move {
                for n in 0..20 {
                    enqueue(&store, vec![job(1 + caller * 1_000 + n, plain())]).await;
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.expect("no caller fails");
    }
    attach(&stores[0], 1).await;
    // Two take at once, and neither has what the other has.
    let (here, there) = tokio::join!(take_all(&stores[0]), take_all(&stores[1]));
    assert_eq!(here + there, 32 * 20);
    assert_eq!(ledger(&stores[1]).await.done, 32 * 20);
    assert_sound(&stores[0]).await;
}

/// Leases and settles until nothing is left; says how many jobs that were.
async fn take_all(store: &Shared) -> usize {
    let mut taken = 0;
    loop {
        let leased = lease_all(store, 50, at(0)).await.jobs;
        if leased.is_empty() {
            return taken;
        }
        for job in &leased {
            settle(store, job, Outcome::Done, at(1)).await;
        }
        taken += leased.len();
    }
}

#[tokio::test]
async fn the_audit_notices_what_does_not_add_up() {
    for tampering in [
        "DELETE FROM job WHERE seq = 1",
        "DELETE FROM place",
        "INSERT INTO lane VALUES (-1, 1, 'hshop', 2); INSERT INTO place SELECT -1, due_at, seq FROM place",
        "UPDATE pipeline SET done = done + 1",
        "UPDATE pipeline SET accepted = accepted + 1, queued = queued + 1",
        "UPDATE pipeline SET retrying = 5",
        "INSERT INTO done (job, pipeline, accepted_at, done_at, attempts, crashes, replays)
         SELECT id, pipeline, accepted_at, 0, 1, 0, 0 FROM job",
        "SELECT setval('job_number', 1)",
        "INSERT INTO dead (seq, id, pipeline, accepted_at, died_at, kept_from, attempts, crashes, replays, gate, reason, message, input)
         SELECT 99, id, pipeline, accepted_at, 0, 0, 1, 0, 0, 'auto', 'dns', '', '{}' FROM job LIMIT 1",
        "INSERT INTO identity VALUES (1, 'nobody', '', '00000000-0000-0000-0000-000000000000', 0)",
        "INSERT INTO lease (job, seq, worker, token, epoch, until)
         SELECT u, 99, u, u, 1, 0 FROM (SELECT '00000000-0000-0000-0000-000000000000'::uuid AS u) u",
        "INSERT INTO round (pipeline, name, begun_at, grown_at, accepted, queued) VALUES (1, 'r', 0, 0, 1, 1)",
        "INSERT INTO dead_count VALUES (1, 'target', 'shop', 'dns', 1)",
    ] {
        let schema = schema();
        let store = open(&schema).await;
        enqueue(&store, vec![job(1, plain()), job(2, plain())]).await;
        assert_sound(&store).await;
        tamper(&schema, tampering).await;
        let audit = store.audit().await.expect("audited");
        assert!(!audit.problems.is_empty(), "{tampering} went unnoticed");
    }
}

#[tokio::test]
async fn a_store_is_made_only_if_asked_to_and_only_where_nothing_else_is() {
    let schema = schema();
    assert!(matches!(refusal(&schema, Options::default()).await, StoreError::Missing { .. }));
    tamper("public", &format!("CREATE SCHEMA {schema}; CREATE TABLE {schema}.others (id integer)")).await;
    assert!(matches!(refusal(&schema, Options::create()).await, StoreError::NotAStore { .. }));
    tamper(&schema, "DROP TABLE others").await;
    drop(open(&schema).await);
    tamper(&schema, "UPDATE meta SET version = 999, oldest = 999").await;
    let newer = refusal(&schema, Options::create()).await;
    assert!(matches!(newer, StoreError::NewerSchema { found: 999, .. }), "{newer}");
    let injected = refusal("a; DROP SCHEMA public", Options::create()).await;
    assert!(matches!(injected, StoreError::InvalidAddress { .. }), "{injected}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn several_processes_make_one_store() {
    let schema = schema();
    let opening: Vec<_> = (0..4)
        .map(|_| {
            tokio::spawn({
                let schema = schema.clone();
                async move { open(&schema).await }
            })
        })
        .collect();
    for (n, opened) in (1..).zip(opening) {
        enqueue(&opened.await.expect("opened"), vec![job(n, plain())]).await;
    }
    assert_eq!(ledger(&open(&schema).await).await.accepted, 4);
}

async fn next(changes: &mut Changes) -> Change {
    tokio::time::timeout(Duration::from_secs(60), changes.next()).await.expect("in time").expect("heard")
}

/// Waits until a topic is told; others may be told before, since whoever begins to listen may have missed something.
async fn hear(changes: &mut Changes, topic: Topic) {
    while !next(changes).await.is_about(topic) {}
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changes_of_another_process_are_heard() {
    let schema = schema();
    let (first, second) = (open(&schema).await, open(&schema).await);
    let mut there = listen(&second).await;
    attach(&first, 1).await;
    hear(&mut there, Topic::Workers).await;
    enqueue(&first, vec![job(1, plain())]).await;
    hear(&mut there, Topic::Jobs).await;
    // Once it listens, it hears what a change is about and nothing else.
    while !there.pending().expect("listened").is_none() {}
    attach(&first, 2).await;
    assert_eq!(next(&mut there).await, Topic::Workers.into());
}

/// Text may have what PostgreSQL cannot keep.
#[tokio::test]
async fn zero_characters_are_kept_as_their_picture() {
    let store = open(&schema()).await;
    let mut zeros = job(1, serde_json::json!({"url": "https://example.com/", "name": "a\0b"}));
    zeros.key = Some("k\0".into());
    enqueue(&store, vec![zeros.clone()]).await;
    let again = enqueue(&store, vec![redrive_core::jobs::NewJob { id: job(2, plain()).id, ..zeros.clone() }]).await;
    assert!(matches!(again[0], EnqueuedJob::Known { id, .. } if id == zeros.id), "{again:?}");
    attach(&store, 1).await;
    let leased = lease_all(&store, 2, at(0)).await.jobs;
    assert_eq!(leased[0].input["name"], "a\0b", "an input is kept as it is");
    assert_eq!(leased[0].key.as_deref(), Some("k\u{2400}"));
}

/// Commits get lost before and after they took place; whoever asked sees nothing of it, and nothing happens twice.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_not_answered_is_exact() {
    const CALLERS: u128 = 8;
    const JOBS: u128 = 12;
    let schema = schema();
    drop(open(&schema).await);
    let way = Cutting::to(server());
    let address = address_in(way.folder());
    let store = PostgresStore::open(&address, Some(&schema), Options::default()).await.expect("opened");
    let store: Shared = Arc::new(store);
    attach(&store, 1).await;
    let callers: Vec<_> = (0..CALLERS)
        .map(|caller| {
            let store = Arc::clone(&store);
            tokio::spawn(async move {
                for n in 0..JOBS {
                    let params = EnqueueJobs {
                        pipeline: pipeline(),
                        jobs: vec![job(1 + caller * 1_000 + n, plain())],
                        queued_max: None,
                        now: at(0),
                    };
                    let answer = store.enqueue(params).await.expect("accepted");
                    assert!(matches!(answer[..], [EnqueuedJob::Accepted(_)]), "{answer:?}");
                }
            })
        })
        .collect();
    for caller in callers {
        caller.await.expect("no caller fails");
    }
    assert_eq!(ledger(&store).await.accepted, i64::try_from(CALLERS * JOBS).expect("few"));
    let mut settled = 0;
    let gates = store.lease(lease_of(Lane::Queue, 1, at(0))).await.expect("asked").gates.expect("told").version;
    loop {
        let asked = redrive_store::contract::LeaseJobs { gates_seen: Some(gates), ..lease_of(Lane::Queue, 7, at(0)) };
        let leased = store.lease(asked).await.expect("leased").jobs;
        if leased.is_empty() {
            break;
        }
        for job in &leased {
            // It fails if the job does not move.
            settle(&store, job, Outcome::Done, at(1)).await;
            settled += 1;
        }
    }
    assert_eq!(settled, CALLERS * JOBS, "every job was leased once");
    let ledger = ledger(&store).await;
    assert_eq!((ledger.done, ledger.queued, ledger.leased), (ledger.accepted, 0, 0));
    assert_sound(&store).await;
    let commits = &way.commits;
    let (lost, unanswered) = (commits.lost.load(Ordering::SeqCst), commits.unanswered.load(Ordering::SeqCst));
    assert!(lost > 5 && unanswered > 5, "{lost} lost, {unanswered} unanswered");
}

/// How often a server is stopped under load.
fn stops() -> usize {
    std::env::var("REDRIVE_TEST_STOPS").ok().and_then(|text| text.parse().ok()).unwrap_or(3)
}

/// A server is stopped at once, again and again, while two processes accept and work: nobody fails, and all adds up.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_stopped_at_once_loses_nothing() {
    let server = OwnServer::start();
    let address = server.address();
    let open = || PostgresStore::open(&address, None, Options::create());
    let stores: [Shared; 2] = [Arc::new(open().await.expect("opened")), Arc::new(open().await.expect("opened"))];
    attach(&stores[0], 1).await;
    let is_over = Arc::<AtomicBool>::default();
    let accepting: Vec<_> = (0..4_u128)
        .map(|caller| {
            let (store, is_over) = (Arc::clone(&stores[usize::from(caller % 2 == 0)]), Arc::clone(&is_over));
            tokio::spawn(async move {
                let mut accepted = 0;
                while !is_over.load(Ordering::SeqCst) {
                    enqueue(&store, vec![job(1 + caller * 1_000_000 + accepted, plain())]).await;
                    accepted += 1;
                    // Not more than can be worked on.
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
                accepted
            })
        })
        .collect();
    let working: Vec<_> = stores
        .iter()
        .map(|store| {
            let (store, is_over) = (Arc::clone(store), Arc::clone(&is_over));
            tokio::spawn(async move {
                let mut settled = 0;
                while !is_over.load(Ordering::SeqCst) {
                    settled += take_all(&store).await;
                }
                settled
            })
        })
        .collect();
    for _ in 0..stops() {
        // Something happens between two stops.
        let before = ledger(&stores[0]).await.done;
        while ledger(&stores[0]).await.done < before + 20 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        server.stop();
    }
    is_over.store(true, Ordering::SeqCst);
    let (mut accepted, mut settled) = (0, 0);
    for caller in accepting {
        accepted += i64::try_from(caller.await.expect("no caller fails")).expect("few");
    }
    for worker in working {
        settled += worker.await.expect("no worker fails");
    }
    settled += take_all(&stores[1]).await;
    assert_eq!(i64::try_from(settled).expect("few"), accepted, "every job was worked on once");
    let ledger = ledger(&stores[0]).await;
    assert_eq!((ledger.accepted, ledger.done, ledger.leased), (accepted, accepted, 0));
    assert_sound(&stores[1]).await;
}
