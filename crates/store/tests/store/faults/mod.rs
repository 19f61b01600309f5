//! What a store in PostgreSQL holds to while everything around it fails: connections that are cut, go silent or come late, a pooler
//! between, a server that is stopped, whose disk is full or whose settings are strange. Whoever asks sees nothing of it, and all adds
//! up.

mod cuts;
#[allow(dead_code, reason = "others fill it themselves")]
#[path = "../../../../cli/tests/cli/disk.rs"]
mod disk;
mod pooled;
mod settings;
mod stops;

use std::sync::Arc;
use std::time::{Duration, Instant};

use redrive_store::Options;
use redrive_store::conformance::script::Shared;
use redrive_store::postgres::PostgresStore;

/// How often something is done, or more often if asked for.
fn times(usual: u64) -> u64 {
    std::env::var("REDRIVE_TEST_FAULTS").ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}

/// Opens the store in a schema, and makes it if need be.
async fn open(address: &str, schema: &str) -> Shared {
    Arc::new(PostgresStore::open(address, Some(schema), Options::create()).await.expect("a store opens"))
}

/// Runs statements past the store, once the server is up.
async fn run(address: &str, sql: &str) {
    let since = Instant::now();
    let (client, connection) = loop {
        match tokio_postgres::connect(address, tokio_postgres::NoTls).await {
            Ok(connected) => break connected,
            Err(error) => assert!(since.elapsed() < Duration::from_secs(60), "{error:?}"),
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    let connection = tokio::spawn(connection);
    client.batch_execute(sql).await.expect(sql);
    connection.abort();
}
