//! The ledger and the roll-ups, read as they were written; the health of the file.

use std::collections::BTreeMap;
use std::path::Path;

use async_trait::async_trait;
use redrive_core::ids::PipelineName;
use redrive_core::ledger::Ledger;
use rusqlite::Connection;
use serde_json::json;

use super::fault::Fault;
use super::rows::{self, LEDGER_COLUMNS, RowResult, is_listed};
use super::{SqliteStore, activity, audit, compact, leader, schema, snapshot};
use crate::contract::{Audit, Capabilities, Compact, Compacted, Health, LedgerStore, Tidied, Tidy};
use crate::error::{Result, StoreError};
use crate::location::Location;

#[async_trait]
impl LedgerStore for SqliteStore {
    async fn ledgers(&self) -> Result<BTreeMap<PipelineName, Ledger>> {
        self.read(|conn| Ok(ledgers(conn, &is_listed())?.into_iter().map(|(_, name, ledger)| (name, ledger)).collect()))
            .await
    }

    async fn audit(&self) -> Result<Audit> {
        let mut audit = self.read(audit::audit).await?;
        audit.problems.extend(self.read(audit::damage).await?);
        Ok(audit)
    }

    async fn health(&self) -> Result<Health> {
        let location = self.location.clone();
        self.read(move |conn| health(conn, &location)).await
    }

    async fn compact(&self, params: Compact) -> Result<Compacted> {
        // Refuses where nothing may be written.
        self.write(|_| Ok(())).await?;
        let compacted = match self.location.file().map(Path::to_owned) {
            None => {
                let bytes = self.read(size_bytes).await?;
                Compacted { before_bytes: bytes, after_bytes: bytes }
            }
            Some(path) => {
                let compact = move || compact::compact(&path).map_err(|fault| fault.into_store_error(&path));
                tokio::task::spawn_blocking(compact).await.map_err(|_| StoreError::Closed)??
            }
        };
        let Compacted { before_bytes, after_bytes } = compacted;
        let detail = json!({"before_bytes": before_bytes, "after_bytes": after_bytes});
        self.write(move |batch| activity::note(batch, &params.by, ("compact", "store"), &detail, params.now)).await?;
        Ok(compacted)
    }

    async fn tidy(&self, params: Tidy) -> Result<Tidied> {
        self.write(move |batch| leader::check(batch, params.led.as_ref())).await?;
        // Counts are written as they are read, and pages that are no longer used are used again.
        Ok(Tidied::default())
    }

    async fn snapshot(&self, to: &Path) -> Result<()> {
        let Some(readers) = &self.readers else {
            return Err(StoreError::Unsupported { place: self.location.to_string(), what: "a copy in a file" });
        };
        let (view, path, to) = (readers.view().clone(), self.path().to_owned(), to.to_owned());
        let run = move || snapshot::snapshot(&view, &to).map_err(|fault| fault.into_store_error(&path));
        tokio::task::spawn_blocking(run).await.map_err(|_| StoreError::Closed)?
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { snapshot: true, text_index: false, instant_presence: true }
    }
}

/// The ledgers of pipelines `p` of which a condition holds.
pub(super) fn ledgers(conn: &Connection, which: &str) -> Result<Vec<(i64, PipelineName, Ledger)>, Fault> {
    let mut select = conn.prepare_cached(&format!("SELECT {LEDGER_COLUMNS} FROM pipeline p WHERE {which}"))?;
    let rows = select.query_map([], |row| rows::ledger(row))?;
    Ok(rows.collect::<RowResult<_>>()?)
}

/// Bytes of the database.
pub(super) fn size_bytes(conn: &Connection) -> Result<u64, Fault> {
    let sql = "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size";
    Ok(conn.query_row(sql, [], |row| row.get(0))?)
}

/// Bytes that are free on the disk of a file, where that can be told.
pub(super) fn free_bytes(path: &Path) -> Option<u64> {
    let folder = path.parent().map(|p| if p.as_os_str().is_empty() { ".".into() } else { p.to_owned() })?;
    rustix::fs::statvfs(&folder).ok().map(|fs| fs.f_bavail * fs.f_frsize)
}

fn health(conn: &Connection, location: &Location) -> Result<Health, Fault> {
    Ok(Health {
        location: location.to_string(),
        engine: format!("SQLite {}", rusqlite::version()),
        schema_version: schema::newest_version(),
        size_bytes: size_bytes(conn)?,
        free_bytes: location.file().and_then(free_bytes),
        server: None,
        problems: audit::damage(conn)?.into_iter().collect(),
    })
}
