//! The conformance suite on a store in memory.

use async_trait::async_trait;
use redrive_store::conformance::Fixture;
use redrive_store::conformance::script::Shared;
use redrive_store::sqlite::SqliteStore;
use std::sync::Arc;

struct InMemory(Shared);

fn fresh() -> InMemory {
    InMemory(Arc::new(SqliteStore::in_memory().expect("a store in memory opens")))
}

#[async_trait]
impl Fixture for InMemory {
    async fn handle(&self) -> Shared {
        Arc::clone(&self.0)
    }

    async fn other(&self) -> Shared {
        fresh().0
    }
}

redrive_store::conformance_tests!(fresh);
