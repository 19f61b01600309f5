//! Operating a store in PostgreSQL: several servers, a pooler and the way past it, connections that are counted, a server that has none
//! left, remains of rows, and a store of the first version.

use std::sync::Arc;

use redrive_core::servers::{Holder, ServerFacts, Verdict, judge};
use redrive_core::settlements::Outcome;
use redrive_store::conformance::histories::{self, live};
use redrive_store::conformance::recount::assert_recounted;
use redrive_store::conformance::script::{Shared, assert_sound, at, attach, enqueue, job, lease_all, plain, settle};
use redrive_store::contract::{ChangeStore, CountTraffic, Tidy, Topic, TrafficBy};
use tokio_postgres::Client;

use super::*;
use crate::support::pooler::Pooler;

/// How long something may take that happens by itself.
const PATIENCE: Duration = Duration::from_secs(60);

async fn open(address: &str, schema: &str) -> Shared {
    Arc::new(PostgresStore::open(address, Some(schema), Options::create()).await.expect(address))
}

/// Jobs go through a store from the first to the last step.
async fn assert_works(store: &Shared) {
    enqueue(store, vec![job(1, plain()), job(2, plain())]).await;
    attach(store, 1).await;
    for leased in &lease_all(store, 10, at(0)).await.jobs {
        settle(store, leased, Outcome::Done, at(1)).await;
    }
    assert_sound(store).await;
}

async fn number(client: &Client, sql: &str) -> i64 {
    client.query_one(sql, &[]).await.expect(sql).get(0)
}

/// Waits until a number is one that is waited for.
async fn until(client: &Client, sql: &str, fits: impl Fn(i64) -> bool) {
    let since = Instant::now();
    while !fits(number(client, sql).await) {
        assert!(since.elapsed() < PATIENCE, "{sql}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn of_several_servers_the_first_is_taken_that_answers_and_can_be_written_to() {
    let read_only = OwnServer::start();
    let set = "ALTER SYSTEM SET default_transaction_read_only = on";
    let client = connected(&[&read_only.address()]).await;
    client.batch_execute(set).await.expect(set);
    client.batch_execute("SELECT pg_reload_conf()").await.expect("reloaded");
    let (there, own) = (server::server().display(), read_only.folder().display());
    let nowhere = tempfile::tempdir().expect("a folder");
    let nowhere = nowhere.path().display();
    let of = |hosts: String, rest: &str| format!("host={hosts} user=redrive dbname=postgres {rest}");

    assert_works(&open(&of(format!("{nowhere},{there}"), ""), &schema()).await).await;
    let writable = "target_session_attrs=read-write";
    let since = Instant::now();
    // What was set takes a moment to be in force.
    loop {
        let alone = PostgresStore::open(&of(own.to_string(), writable), None, Options::create().impatient()).await;
        if alone.is_err() {
            break;
        }
        assert!(since.elapsed() < PATIENCE, "the server is never read-only");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_works(&open(&of(format!("{own},{there}"), writable), &schema()).await).await;
    let refused = PostgresStore::open(&of(own.to_string(), ""), None, Options::create().impatient()).await;
    let refused = refused.err().expect("nothing can be made there").to_string();
    assert!(refused.contains("target_session_attrs=read-write"), "{refused}");
}

#[tokio::test]
async fn a_pooler_is_noticed_and_the_way_past_it_taken() {
    let (pooler, schema) = (Pooler::start(server::server(), ""), schema());
    let through = open(&format!("{} statement_cache=off", pooler.address()), &schema).await;
    assert_works(&through).await;
    assert!(through.health().await.expect("looked").server.expect("facts").is_pooled);
    let past = self::schema();
    let url = format!("{}&application_name={past}", server::url(&schema));
    let url = url.replace('%', "%25").replace(':', "%3A").replace('&', "%26").replace('?', "%3F");
    let folder = pooler.address();
    let folder = folder.split(' ').next().expect("a folder").trim_start_matches("host=");
    let direct = format!("postgres://redrive@/postgres?host={folder}&schema={schema}&direct_url={url}");
    let direct = PostgresStore::open(&direct, None, Options::create()).await.expect("opened past the pooler");
    let accepted: i64 = direct.ledgers().await.expect("read").values().map(|ledger| ledger.accepted).sum();
    assert_eq!(accepted, 2);
    // It listens past the pooler, and hears there of what others write through it.
    let mut heard = direct.changes();
    let client = connected(&[&address()]).await;
    let listens = format!("SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE '{past}%'");
    until(&client, &listens, |listeners| listeners >= 1).await;
    let hears = async { while !heard.next().await.expect("heard").is_about_any(&[Topic::Jobs]) {} };
    enqueue(&through, vec![job(3, plain())]).await;
    tokio::time::timeout(PATIENCE, hears).await.expect("it hears of it");
}

/// What a server says besides its answers (from version 18 on also that a path was set) comes in the middle of them: nothing gets stuck
/// behind an answer that nobody has taken yet.
#[tokio::test]
async fn a_server_that_says_much_besides_its_answers_is_heard_out() {
    let schema = schema();
    let store = open(&address(), &schema).await;
    let says = format!(
        "CREATE FUNCTION {schema}.says() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
             FOR n IN 1..20 LOOP RAISE NOTICE 'still at work on %', TG_TABLE_NAME; END LOOP;
             RETURN NULL;
         END $$;
         DO $$ DECLARE found record; BEGIN
             FOR found IN SELECT table_name AS name FROM information_schema.tables
                          WHERE table_schema = '{schema}' AND table_type = 'BASE TABLE' LOOP
                 EXECUTE format('CREATE TRIGGER says AFTER INSERT OR UPDATE OR DELETE ON {schema}.%I FOR EACH STATEMENT
                                 EXECUTE FUNCTION {schema}.says()', found.name);
             END LOOP;
         END $$"
    );
    connected(&[&address()]).await.batch_execute(&says).await.expect(&says);
    // Whoever gets stuck is given up after a minute, and tried again.
    tokio::time::timeout(Duration::from_secs(50), assert_works(&store)).await.expect("nothing gets stuck");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_has_no_more_connections_than_it_may() {
    let client = connected(&[&address()]).await;
    for most in [4, 7] {
        let (name, schema) = (schema(), schema());
        let store = open(&format!("{} pool={most} application_name={name}", address()), &schema).await;
        enqueue(&store, vec![job(1_000_000, plain())]).await;
        let _heard = store.changes();
        let callers = (0..64).map(|n| {
            let store = Arc::clone(&store);
            tokio::spawn(async move {
                for round in 0..10 {
                    enqueue(&store, vec![job(n * 10 + round, serde_json::json!({}))]).await;
                    store.ledgers().await.expect("read");
                }
            })
        });
        let callers: Vec<_> = callers.collect();
        let count = format!("SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE '{name}%'");
        let mut seen = 0;
        while callers.iter().any(|caller| !caller.is_finished()) {
            seen = seen.max(number(&client, &count).await);
        }
        for caller in callers {
            caller.await.expect("no caller fails");
        }
        assert!(seen <= most && seen >= 3, "{seen} connections of {most}");
        assert_eq!(store.ledgers().await.expect("read").values().map(|ledger| ledger.accepted).sum::<i64>(), 641);
        assert_sound(&store).await;
    }
}

#[tokio::test]
async fn a_server_that_has_no_connection_left_is_told_of_with_the_ways_out() {
    let server = OwnServer::start();
    let client = connected(&[&server.address()]).await;
    client.batch_execute("ALTER SYSTEM SET max_connections = 8").await.expect("set");
    drop(client);
    server.stop();
    let mut all = vec![connected(&[&server.address()]).await];
    let since = Instant::now();
    let said = loop {
        match tokio_postgres::connect(&server.address(), NoTls).await {
            Ok((client, connection)) => {
                tokio::spawn(connection);
                all.push(client);
            }
            Err(_) => {
                let opened = PostgresStore::open(&server.address(), None, Options::create().impatient()).await;
                if let Some(error) = opened.err().filter(|error| error.to_string().contains("max_connections")) {
                    break error;
                }
            }
        }
        assert!(since.elapsed() < PATIENCE, "the server always has one more");
    };
    assert!(matches!(said, StoreError::Unavailable { .. }), "{said}");
    assert!(said.to_string().contains("lower pool in the address"), "{said}");
}

#[tokio::test]
async fn tables_with_many_remains_are_cleared() {
    let schema = schema();
    let store = open(&address(), &schema).await;
    let client = connected(&[&address()]).await;
    let remains = format!(
        "ALTER TABLE {schema}.condemned SET (autovacuum_enabled = false);
         INSERT INTO {schema}.condemned SELECT n::text, 0 FROM generate_series(1, 60000) n;
         DELETE FROM {schema}.condemned"
    );
    client.batch_execute(&remains).await.expect("made");
    let dead = format!("SELECT pg_stat_get_dead_tuples('{schema}.condemned'::regclass)");
    until(&client, &dead, |dead| dead > 50_000).await;
    let since = Instant::now();
    // Somebody's view of the database may be older than the remains.
    while number(&client, &dead).await > 0 {
        let tidied = store.tidy(Tidy { limit: 10, led: None }).await.expect("tidied");
        assert!(tidied.cleared.iter().all(|table| table == "condemned"), "{tidied:?}");
        assert!(since.elapsed() < PATIENCE, "nothing is ever cleared");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// The tables of the first version.
const FIRST: [&str; 4] = [
    include_str!("../../../src/postgres/schema/001_jobs.sql"),
    include_str!("../../../src/postgres/schema/001_dead.sql"),
    include_str!("../../../src/postgres/schema/001_rest.sql"),
    include_str!("../../../src/postgres/schema/001_serve.sql"),
];

/// How many attempts are counted.
async fn attempts(store: &Shared) -> i64 {
    let all = CountTraffic { pipeline: None, since: at(0), by: TrafficBy::Target };
    store.traffic(all).await.expect("read").iter().map(|count| count.count).sum()
}

#[tokio::test]
async fn a_store_of_the_first_version_is_brought_forward_and_older_workers_count_beside() {
    let schema = schema();
    let client = connected(&[&address()]).await;
    let first = FIRST.concat();
    let before = format!(
        "INSERT INTO pipeline (name) VALUES ('suite');
         INSERT INTO traffic SELECT id, {}, 'example.com', '', '', 3, 3 FROM pipeline",
        at(0).hour()
    );
    client
        .batch_execute(&format!("CREATE SCHEMA {schema}; SET search_path = {schema}; {first}; {before}"))
        .await
        .expect("made");
    let store = open(&address(), &schema).await;
    assert_eq!(store.health().await.expect("looked").schema_version, newest(&schema).await);
    assert_works(&store).await;
    // As workers of the first version count.
    client.batch_execute("UPDATE traffic SET count = count + 1, ended = ended + 1").await.expect("counted");
    assert_eq!(attempts(&store).await, 6, "three of before, two of now, one of an older worker");
    assert_eq!(number(&client, "SELECT sum(count)::bigint FROM traffic_delta").await, 2, "only added");
    let tidied = store.tidy(Tidy { limit: 1, led: None }).await.expect("folded");
    assert!(tidied.more, "{tidied:?}");
    while store.tidy(Tidy { limit: 1, led: None }).await.expect("folded").more {}
    assert_eq!(attempts(&store).await, 6);
    assert_eq!(number(&client, "SELECT count(*) FROM traffic_delta").await, 0);
}

/// The tables of the second version.
const SECOND: [&str; 2] = [
    include_str!("../../../src/postgres/schema/002_serving.sql"),
    include_str!("../../../src/postgres/schema/002_fleet.sql"),
];

/// The tables of the third version.
const THIRD: &str = include_str!("../../../src/postgres/schema/003_dashboard.sql");

/// Makes a store of an earlier version with all that another one has, as far as that version knows it.
async fn earlier(client: &Client, schema: &str, version: usize, lived: &str) {
    let later = SECOND.iter().filter(|_| version > 1).chain([&THIRD].into_iter().filter(|_| version > 2));
    let parts: String = FIRST.iter().chain(later).copied().collect();
    let made = format!("CREATE SCHEMA {schema}; SET search_path = {schema}; {parts};");
    // Rows come as they are: what triggers make of them is among them.
    let rows = format!(
        "SET session_replication_role = replica;
         DO $$ DECLARE found record; columns text; BEGIN
             FOR found IN SELECT table_name AS name FROM information_schema.tables
                          WHERE table_schema = '{schema}' AND table_type = 'BASE TABLE' LOOP
                 SELECT string_agg(quote_ident(o.column_name), ', ') INTO columns
                 FROM information_schema.columns o JOIN information_schema.columns n USING (table_name, column_name)
                 WHERE o.table_schema = '{schema}' AND n.table_schema = '{lived}' AND o.table_name = found.name
                   AND o.is_generated = 'NEVER';
                 EXECUTE format('DELETE FROM {schema}.%I', found.name);
                 EXECUTE format('INSERT INTO {schema}.%1$I (%2$s) OVERRIDING SYSTEM VALUE SELECT %2$s FROM {lived}.%1$I',
                                found.name, columns);
             END LOOP;
             FOR found IN SELECT sequencename AS name FROM pg_sequences WHERE schemaname = '{schema}' LOOP
                 EXECUTE format('SELECT setval(''{schema}.%1$I'', last_value, is_called) FROM {lived}.%1$I', found.name);
             END LOOP;
         END $$;
         SET session_replication_role = origin;
         UPDATE meta SET version = {version}, oldest = 1"
    );
    client.batch_execute(&(made + &rows)).await.expect("a store of an earlier version");
}

/// What people and monitoring see of a store.
async fn seen(store: &Shared) -> String {
    let totals = store.event_totals().await.expect("read");
    assert!(!totals.is_empty(), "it has lived");
    format!("{totals:#?} {}", histories::seen(store).await)
}

/// What was written by whatever happens to a store is brought forward from each of the versions before: it is seen as before, and goes
/// on, with workers of the version before at work beside, which know nothing of what was added.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_lived_in_an_earlier_version_goes_on_beside_its_workers() {
    let (client, lived) = (connected(&[&address()]).await, schema());
    let handles = [open(&address(), &lived).await, open(&address(), &lived).await];
    live(handles.clone(), [3, 4]).await;
    while handles[0].tidy(Tidy { limit: 1_000, led: None }).await.expect("folded").more {}
    // None of these versions wrote when a replay last moved.
    client.batch_execute(&format!("UPDATE {lived}.replay SET moved_at = 0")).await.expect("forgotten");
    let before = seen(&handles[0]).await;
    for version in [1, 2, 3] {
        let schema = schema();
        earlier(&client, &schema, version, &lived).await;
        let store = open(&address(), &schema).await;
        assert_eq!(seen(&store).await, before, "version {version}");
        assert_sound(&store).await;
        assert_recounted(&store).await;
        let total = async || store.event_totals().await.expect("read").iter().map(|total| total.count).sum::<i64>();
        let counted = total().await;
        // As workers of the first version write.
        let older = "INSERT INTO hourly_count (pipeline, hour, event, reason, count)
                     SELECT id, 0, 'buried', 'timeout', 3 FROM pipeline LIMIT 1
                     ON CONFLICT (pipeline, hour, event, reason) DO UPDATE SET count = hourly_count.count + excluded.count;
                     INSERT INTO try (uuid, actor, via, selection, edits, tried_with, created_at)
                     VALUES ('00000000-0000-0000-0000-000000000001', 'ada', 'cli', '{}', '{}', '{}', 0);
                     INSERT INTO try_letter (try, job, attempts, recovered, key, message)
                     SELECT max(id), '00000000-0000-0000-0000-000000000002', 1, true, NULL, NULL FROM try";
        client.batch_execute(older).await.expect("as an older worker writes");
        assert_eq!(total().await, counted + 3, "whoever counts, counters grow");
        assert_eq!(number(&client, "SELECT count(*) FROM try_letter WHERE state <> 'tried'").await, 0);
        for leased in &lease_all(&store, 99, at(9_000_000)).await.jobs {
            settle(&store, leased, Outcome::Done, at(9_000_001)).await;
        }
        assert_sound(&store).await;
    }
}

#[tokio::test]
async fn what_hurts_at_the_server_is_seen() {
    let server = OwnServer::start();
    let (holder, client) = (connected(&[&server.address()]).await, connected(&[&server.address()]).await);
    let store = open(&server.address(), "redrive").await;
    let facts = store.health().await.expect("looked").server.expect("facts");
    let hurts = |facts: &ServerFacts| -> Vec<&'static str> {
        judge(facts).iter().filter(|judged| judged.verdict != Verdict::Well).map(|judged| judged.check).collect()
    };
    assert_eq!((hurts(&facts), facts.fsync, facts.holders.len()), (Vec::new(), true, 0), "{facts:?}");

    holder.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM pg_class").await.expect("held");
    client.batch_execute("SELECT pg_create_physical_replication_slot('forgotten', true)").await.expect("made");
    client.batch_execute("ALTER SYSTEM SET full_page_writes = off").await.expect("set");
    client.batch_execute("SELECT pg_reload_conf()").await.expect("reloaded");
    until(&client, "SELECT (current_setting('full_page_writes') = 'off')::int::bigint", |off| off == 1).await;
    let pooler = Pooler::start(server.folder(), "");
    let through = open(&pooler.address(), "redrive").await;
    let facts = through.health().await.expect("looked").server.expect("facts");
    let held = |what: &str| facts.holders.iter().any(|holder| holder.what.contains(what));
    assert!(held("a transaction of redrive") && held("the replication slot forgotten"), "{facts:?}");
    assert_eq!(hurts(&facts), ["durability", "horizon", "pooler"], "{facts:?}");
    // A transaction of a moment hurts nobody; one of five minutes does.
    let long = |holder: &Holder| Holder { held_secs: holder.held_secs.map(|_| 301), ..holder.clone() };
    let facts = ServerFacts { holders: facts.holders.iter().map(long).collect(), ..facts };
    let horizon = judge(&facts).into_iter().find(|judged| judged.check == "horizon").expect("judged");
    assert!(horizon.found.contains("a transaction of redrive") && horizon.found.contains("5 minutes"), "{horizon:?}");
}
