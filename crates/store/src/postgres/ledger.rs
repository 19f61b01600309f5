//! The ledger, read as it was written; the health of the database.

use std::collections::BTreeMap;
use std::path::Path;

use async_trait::async_trait;
use redrive_core::ids::PipelineName;
use redrive_core::ledger::Ledger;
use serde_json::json;

use super::batch::Batch;
use super::fault::Fault;
use super::rows::{LEDGER_COLUMNS, is_listed};
use super::sql::{Conn, args};
use super::{PostgresStore, activity, audit, health, rows, run, tidying};
use crate::contract::{Audit, Capabilities, Compact, Compacted, Health, LedgerStore, Tidied, Tidy};
use crate::error::{Result, StoreError};

#[async_trait]
impl LedgerStore for PostgresStore {
    async fn ledgers(&self) -> Result<BTreeMap<PipelineName, Ledger>> {
        let ledgers = self.read((), |conn, (): &()| Box::pin(listed(conn))).await?;
        Ok(ledgers.into_iter().map(|(_, name, ledger)| (name, ledger)).collect())
    }

    async fn audit(&self) -> Result<Audit> {
        self.read((), run!(audit::audit)).await
    }

    async fn health(&self) -> Result<Health> {
        self.read(self.target.place.clone(), run!(health::health)).await
    }

    async fn compact(&self, params: Compact) -> Result<Compacted> {
        // Space that is no longer used is used again by the server itself; to give it back to the disk would lock every table.
        let bytes = self.read((), |conn, (): &()| Box::pin(size_bytes(conn))).await?;
        self.write((params, bytes), run!(note_compacted)).await?;
        Ok(Compacted { before_bytes: bytes, after_bytes: bytes })
    }

    async fn tidy(&self, params: Tidy) -> Result<Tidied> {
        let more = self.write(params, run!(tidying::fold_some)).await?;
        let (cleared, refused) =
            tidying::clear(&self.target).await.map_err(|fault| fault.into_store_error(&self.target.place))?;
        Ok(Tidied { cleared, refused, more })
    }

    async fn snapshot(&self, _: &Path) -> Result<()> {
        Err(StoreError::Unsupported { place: self.target.place.clone(), what: "a copy in a file" })
    }

    fn trouble(&self) -> Option<StoreError> {
        self.writer.trouble()
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { snapshot: true, text_index: false, instant_presence: false }
    }
}

async fn note_compacted(batch: &mut Batch, (params, bytes): &(Compact, u64)) -> Result<(), Fault> {
    let detail = json!({"before_bytes": bytes, "after_bytes": bytes});
    activity::note(batch, &params.by, ("compact", "store"), &detail, params.now).await
}

async fn listed(conn: &Conn) -> Result<Vec<(i64, PipelineName, Ledger)>, Fault> {
    ledgers(conn, &is_listed()).await
}

/// The ledgers of pipelines `p` of which a condition holds.
pub(super) async fn ledgers(conn: &Conn, which: &str) -> Result<Vec<(i64, PipelineName, Ledger)>, Fault> {
    let sql = format!("SELECT {LEDGER_COLUMNS} FROM pipeline p WHERE {which}");
    conn.query(&sql, args![], |row| rows::ledger(row)).await
}

/// Bytes of the store's tables and their indexes.
pub(super) async fn size_bytes(conn: &Conn) -> Result<u64, Fault> {
    let sql = "SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint FROM pg_class c
               WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'r'";
    conn.query_one(sql, args![], |row| row.get(0)).await
}
