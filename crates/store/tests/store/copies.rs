//! Copies from one backend to another: what cases of the suite leave in a store comes over whole, in either direction.

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use redrive_store::conformance::Fixture;
use redrive_store::conformance::script::Shared;
use redrive_store::contract::copies::{LEFT_OUT, PARTS};
use redrive_store::sqlite::SqliteStore;
use redrive_store::{Options, Store};
use tempfile::TempDir;

use crate::support::schemas::store;
use crate::support::server::{address, schema};

/// A store in a file, and others in schemas, or the other way round.
struct Across {
    folder: TempDir,
    schema: String,
    to_postgres: bool,
}

impl Across {
    fn new(to_postgres: bool) -> Self {
        Self { folder: tempfile::tempdir().expect("a folder"), schema: schema(), to_postgres }
    }

    fn file(&self) -> Shared {
        open(self.folder.path())
    }

    async fn schema(&self) -> Shared {
        Arc::new(store(&self.schema).await)
    }
}

fn open(folder: &Path) -> Arc<dyn Store> {
    Arc::new(SqliteStore::open(&folder.join("redrive.db"), Options::create()).expect("a store opens"))
}

#[async_trait]
impl Fixture for Across {
    async fn handle(&self) -> Shared {
        if self.to_postgres { self.file() } else { self.schema().await }
    }

    async fn other(&self) -> Shared {
        if self.to_postgres { self.schema().await } else { self.file() }
    }
}

mod to_postgres {
    fn fixture() -> super::Across {
        super::Across::new(true)
    }

    redrive_store::copied_tests!(fixture);
}

mod to_sqlite {
    fn fixture() -> super::Across {
        super::Across::new(false)
    }

    redrive_store::copied_tests!(fixture);
}

/// So that a table that is added later is not forgotten.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_table_comes_over_or_is_left_out_for_a_reason() {
    let schema = schema();
    store(&schema).await;
    let (client, connection) = tokio_postgres::connect(&address(), tokio_postgres::NoTls).await.expect("connected");
    tokio::spawn(connection);
    let sql = "SELECT c.table_name::text, array_agg(c.column_name::text ORDER BY c.column_name::text COLLATE \"C\")
               FROM information_schema.columns c JOIN information_schema.tables t USING (table_schema, table_name)
               WHERE t.table_type = 'BASE TABLE' AND c.table_schema = $1 GROUP BY 1";
    let tables = client.query(sql, &[&schema]).await.expect("asked");
    assert!(tables.len() > PARTS.len());
    for row in tables {
        let (table, columns): (String, Vec<String>) = (row.get(0), row.get(1));
        let Some(part) = PARTS.iter().find(|part| part.name == table) else {
            assert!(LEFT_OUT.iter().any(|(name, _)| *name == table), "table {table} is neither copied nor left out");
            continue;
        };
        let mut known: Vec<_> = part.columns().collect();
        known.sort_unstable();
        assert_eq!(columns, known, "columns of {table}");
    }
}
