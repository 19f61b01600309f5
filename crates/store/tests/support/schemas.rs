//! Stores on the PostgreSQL server of the tests.

use async_trait::async_trait;
use redrive_store::Options;
use redrive_store::conformance::Fixture;
use redrive_store::conformance::script::Shared;
use redrive_store::postgres::PostgresStore;

use super::server::{address, schema};

/// Opens the store in a schema.
pub async fn store(schema: &str) -> PostgresStore {
    PostgresStore::open(&address(), Some(schema), Options::create()).await.expect("a store opens")
}

/// A store in a schema of its own, and others beside it.
pub struct InSchemas(String);

/// A fixture for one case.
pub fn in_schemas() -> InSchemas {
    InSchemas(schema())
}

#[async_trait]
impl Fixture for InSchemas {
    async fn handle(&self) -> Shared {
        std::sync::Arc::new(store(&self.0).await)
    }

    async fn other(&self) -> Shared {
        std::sync::Arc::new(store(&schema()).await)
    }
}
