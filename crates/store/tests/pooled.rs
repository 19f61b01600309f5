//! The conformance suite on PostgreSQL through a pooler that gives each transaction another connection. `scripts/soak` runs it.

#[path = "support/pooler.rs"]
mod pooler;
#[path = "support/postgres.rs"]
mod postgres;

use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use redrive_store::Options;
use redrive_store::conformance::Fixture;
use redrive_store::conformance::script::Shared;
use redrive_store::postgres::PostgresStore;

use self::pooler::Pooler;
use self::postgres::{schema, server};

redrive_store::conformance_tests!(through_a_pooler);

/// A store in a schema of its own, reached through a pooler.
struct Pooled {
    pooler: OnceLock<Pooler>,
    schema: String,
}

fn through_a_pooler() -> Pooled {
    Pooled { pooler: OnceLock::new(), schema: schema() }
}

impl Pooled {
    async fn open(&self, schema: &str) -> Shared {
        let address = self.pooler.get_or_init(|| Pooler::start(server(), "")).address();
        Arc::new(PostgresStore::open(&address, Some(schema), Options::create()).await.expect("a store opens"))
    }
}

#[async_trait]
impl Fixture for Pooled {
    async fn handle(&self) -> Shared {
        self.open(&self.schema).await
    }

    async fn other(&self) -> Shared {
        self.open(&schema()).await
    }
}
