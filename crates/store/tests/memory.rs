//! The conformance suite on a store in memory.

use std::sync::Arc;

use redrive_store::Store;
use redrive_store::sqlite::SqliteStore;

async fn fresh() -> (Arc<dyn Store>, ()) {
    (Arc::new(SqliteStore::in_memory().expect("a store in memory opens")), ())
}

redrive_store::conformance_tests!(fresh);
