//! Runs the conformance suite on stores that `scripts/test` leaves to `scripts/soak`: in memory, with a layer that counts calls, and on
//! PostgreSQL through a pooler that gives each transaction another connection.

#[path = "support/mod.rs"]
mod support;

use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use redrive_store::Options;
use redrive_store::conformance::Fixture;
use redrive_store::conformance::decorators::{Counting, Decorated};
use redrive_store::conformance::script::Shared;
use redrive_store::postgres::PostgresStore;
use redrive_store::sqlite::SqliteStore;

use self::support::pooler::Pooler;
use self::support::server::{schema, server};

/// A store in memory.
struct InMemory(Shared);

fn in_memory() -> InMemory {
    InMemory(Arc::new(SqliteStore::in_memory().expect("a store in memory opens")))
}

#[async_trait]
impl Fixture for InMemory {
    async fn handle(&self) -> Shared {
        Arc::clone(&self.0)
    }

    async fn other(&self) -> Shared {
        in_memory().0
    }
}

mod memory {
    use super::in_memory;

    redrive_store::conformance_tests!(in_memory);
}

/// A store in memory with a layer that counts calls.
struct Counted {
    inner: InMemory,
    layer: Arc<Counting>,
}

fn counted() -> Counted {
    Counted { inner: in_memory(), layer: Arc::default() }
}

#[async_trait]
impl Fixture for Counted {
    async fn handle(&self) -> Shared {
        Decorated::around(self.inner.handle().await, &self.layer)
    }

    async fn other(&self) -> Shared {
        Decorated::around(self.inner.other().await, &self.layer)
    }
}

mod counting {
    use super::counted;

    redrive_store::conformance_tests!(counted);
}

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

mod pooled {
    use super::through_a_pooler;

    redrive_store::conformance_tests!(through_a_pooler);
}
