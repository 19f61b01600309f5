//! Databases and roles that are set up in ways that nobody thought of.

use std::sync::Arc;
use std::time::Duration;

use redrive_core::policy::Bounds;
use redrive_core::settlements::Outcome;
use redrive_store::conformance::load::Load;
use redrive_store::conformance::script::{
    Shared, assert_sound, at, attach, enqueue, job, lease_all, plain, settle, try_enqueue,
};
use redrive_store::postgres::PostgresStore;
use redrive_store::{Options, StoreError};

use super::{open, run};
use crate::support::server::OwnServer;

/// What a role may be used to.
const STRANGE: &[&str] = &[
    "default_transaction_isolation = 'serializable'",
    "default_transaction_deferrable = on",
    "idle_in_transaction_session_timeout = '1ms'",
    "lock_timeout = '1ms'",
    "synchronous_commit = off",
    "search_path = '\"$user\", nowhere'",
    "standard_conforming_strings = off",
    "\"DateStyle\" = 'German'",
    "\"IntervalStyle\" = 'sql_standard'",
    "\"TimeZone\" = 'Asia/Kathmandu'",
    "bytea_output = 'escape'",
    "extra_float_digits = -15",
    "client_encoding = 'LATIN1'",
    "enable_indexscan = off",
    "row_security = off",
    "transform_null_equals = on",
    "array_nulls = off",
    "statement_timeout = '20s'",
];

/// A role with strange settings and few rights works like any other.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn strange_settings_of_a_role_change_nothing() {
    let server = OwnServer::start();
    let mut sql = "CREATE ROLE odd LOGIN; REVOKE TEMP ON DATABASE postgres FROM PUBLIC;
                   REVOKE ALL ON SCHEMA public FROM PUBLIC; GRANT CREATE ON DATABASE postgres TO odd;"
        .to_owned();
    for setting in STRANGE {
        sql += &format!("ALTER ROLE odd SET {setting};");
    }
    run(&server.address(), &sql).await;
    let address = server.address().replace("user=redrive", "user=odd");
    let mut load = Load::begin(vec![open(&address, "redrive").await, open(&address, "redrive").await]).await;
    load.settle_more(60).await;
    load.end().await;
}

/// A database that may not be written says so, and the same handle goes on when it may be.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_may_not_be_written_is_got_over() {
    let server = OwnServer::start();
    let mut options = Options::create();
    options.patience = Duration::from_secs(2);
    let store = PostgresStore::open(&server.address(), Some("redrive"), options).await.expect("a store opens");
    let store: Shared = Arc::new(store);
    enqueue(&store, vec![job(1, plain())]).await;
    let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'redrive %'";
    run(&server.address(), &format!("ALTER ROLE redrive SET default_transaction_read_only = on; {end}")).await;
    let refused = try_enqueue(&store, vec![job(2, plain())], Bounds::default()).await.expect_err("refused");
    assert!(
        matches!(refused, StoreError::Unavailable { .. }) && refused.to_string().contains("read-only"),
        "{refused}"
    );
    let writable = "BEGIN READ WRITE; ALTER ROLE redrive RESET default_transaction_read_only; COMMIT";
    run(&server.address(), writable).await;
    enqueue(&store, vec![job(2, plain())]).await;
    assert_sound(&store).await;
}

/// A server that takes no more connections is waited for.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_without_free_connections_is_waited_for() {
    let server = OwnServer::start();
    run(&server.address(), "CREATE ROLE few LOGIN; GRANT CREATE ON DATABASE postgres TO few").await;
    let store = open(&server.address().replace("user=redrive", "user=few"), "redrive").await;
    attach(&store, 1).await;
    let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'few'";
    run(&server.address(), &format!("ALTER ROLE few CONNECTION LIMIT 0; {end}")).await;
    let address = server.address();
    let freed = tokio::spawn(async move {
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        run(&address, "ALTER ROLE few CONNECTION LIMIT -1").await;
    });
    enqueue(&store, vec![job(1, plain())]).await;
    freed.await.expect("freed");
    let leased = lease_all(&store, 1, at(1)).await.jobs;
    settle(&store, &leased[0], Outcome::Done, at(2)).await;
    assert_sound(&store).await;
}

/// A database that does not keep text as UTF-8 is refused, with the way out.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_of_another_encoding_is_refused() {
    let server = OwnServer::start();
    for encoding in ["LATIN1", "SQL_ASCII"] {
        let name = encoding.to_lowercase();
        run(&server.address(), &format!("CREATE DATABASE {name} ENCODING '{encoding}' TEMPLATE template0")).await;
        let address = server.address().replace("dbname=postgres", &format!("dbname={name}"));
        let refused = PostgresStore::open(&address, None, Options::create()).await.err().expect("refused");
        assert!(matches!(refused, StoreError::NotAStore { .. }), "{refused}");
        assert!(refused.to_string().contains(encoding), "{refused}");
    }
}
