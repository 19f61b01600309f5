//! The conformance suite on PostgreSQL, and what only a server must hold to.

use std::sync::Arc;
use std::time::Duration;

use redrive_core::causes::CauseRules;
use redrive_core::policy::Policy;
use redrive_core::settlements::{Ending, Outcome, Settlement, decide};
use redrive_store::conformance::script::{
    Shared, assert_sound, at, attach, enqueue, job, lease_all, ledger, listen, plain, settle, timeout, worker,
};
use redrive_store::contract::{Change, Changes, EnqueuedJob, JobFilter, ListJobs, SettleJobs, Settled, Topic};
use redrive_store::postgres::PostgresStore;
use redrive_store::{Options, StoreError};
use tokio_postgres::NoTls;

use crate::support::schemas::{in_schemas, store};
use crate::support::server::{address, schema};

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

/// The server refuses every other statement that ends jobs, for reasons that pass. What ends the transaction is reported, not
/// that the other statements of the transaction fail then.
#[tokio::test]
async fn settlement_that_is_refused_for_a_moment_is_tried_again() {
    for (reason, is_told) in [("53100", true), ("40P01", false), ("57014", false)] {
        let schema = schema();
        let store = open(&schema).await;
        enqueue(&store, (1..=40).map(|n| job(n, plain())).collect()).await;
        attach(&store, 1).await;
        let leased = lease_all(&store, 40, at(0)).await.jobs;
        tamper(&schema, &refuse_every_other(&schema, reason)).await;
        let mut told = 0;
        for pair in leased.chunks(2) {
            let ending = Ending { at: at(1), duration: None, worker: Some(worker(1)), chance: 0.0 };
            let settlement = |(job, outcome)| {
                Settlement::new(job, decide(&Policy::default(), job, outcome, ending), &CauseRules::default())
            };
            let settlements: Vec<_> = pair.iter().zip([Outcome::Done, timeout()]).map(settlement).collect();
            let params =
                SettleJobs { settlements, worker: worker(1), breakers: Vec::new(), keep_late: true, now: at(1) };
            let answer = loop {
                match store.settle(params.clone()).await {
                    Err(StoreError::DiskFull { .. }) if is_told => told += 1,
                    answer => break answer,
                }
            };
            assert_eq!(answer.expect(reason).settled, [Settled::Applied, Settled::Applied]);
        }
        assert_eq!((ledger(&store).await.done, told > 0), (20, is_told), "{reason}");
        assert_sound(&store).await;
    }
}

/// Makes every other statement that ends jobs fail.
fn refuse_every_other(schema: &str, reason: &str) -> String {
    format!(
        "CREATE SEQUENCE refusals;
         CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
             IF nextval('{schema}.refusals') % 2 = 1 THEN RAISE EXCEPTION 'not now' USING ERRCODE = '{reason}'; END IF;
             RETURN NULL;
         END $$;
         CREATE TRIGGER refuse BEFORE INSERT ON done FOR EACH STATEMENT EXECUTE FUNCTION refuse();"
    )
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

#[tokio::test]
async fn query_whose_caller_leaves_is_cancelled() {
    let schema = schema();
    let store = open(&schema).await;
    let (client, connection) = tokio_postgres::connect(&address(), NoTls).await.expect("connected");
    tokio::spawn(connection);
    client.batch_execute(&format!("BEGIN; LOCK TABLE {schema}.job IN ACCESS EXCLUSIVE MODE")).await.expect("locked");
    let waiting = async || {
        let sql = "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = $1::text::regclass";
        client.query_one(sql, &[&format!("{schema}.job")]).await.expect("asked").get::<_, i64>(0)
    };
    let listing = tokio::spawn(async move {
        let all = ListJobs { filter: JobFilter::default(), limit: 1, cursor: None };
        store.list_jobs(all).await
    });
    let until = async |count: i64| {
        let comes = async {
            while waiting().await != count {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(60), comes).await.unwrap_or_else(|_| panic!("never {count} queries"));
    };
    until(1).await;
    listing.abort();
    until(0).await;
}
