//! The ledger and the roll-ups, read as they were written; the health of the file.

use std::collections::BTreeMap;
use std::path::Path;

use async_trait::async_trait;
use redrive_core::ids::PipelineName;
use redrive_core::ledger::Ledger;
use rusqlite::{Connection, Row};

use super::fault::Fault;
use super::rows::{self, RowResult};
use super::{SqliteStore, audit, schema};
use crate::contract::{Audit, Capabilities, Health, LedgerStore};
use crate::error::Result;
use crate::location::Location;

#[async_trait]
impl LedgerStore for SqliteStore {
    async fn ledgers(&self) -> Result<BTreeMap<PipelineName, Ledger>> {
        self.read(|conn| Ok(ledgers(conn)?.into_iter().map(|(_, name, ledger)| (name, ledger)).collect())).await
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

    fn capabilities(&self) -> Capabilities {
        Capabilities { snapshot: true, text_index: false, instant_presence: true }
    }
}

/// Every pipeline's row, name and ledger.
pub(super) fn ledgers(conn: &Connection) -> Result<Vec<(i64, PipelineName, Ledger)>, Fault> {
    let mut select = conn.prepare_cached(
        "SELECT id, name, accepted, queued, leased, done, dead, discarded, retrying, recovered, replaying FROM pipeline",
    )?;
    let rows = select.query_map([], |row| Ok((row.get(0)?, rows::parsed(row, 1)?, ledger(row)?)))?;
    Ok(rows.collect::<RowResult<_>>()?)
}

fn ledger(row: &Row<'_>) -> RowResult<Ledger> {
    Ok(Ledger {
        accepted: row.get(2)?,
        queued: row.get(3)?,
        leased: row.get(4)?,
        done: row.get(5)?,
        dead: row.get(6)?,
        discarded: row.get(7)?,
        retrying: row.get(8)?,
        recovered: row.get(9)?,
        replaying: row.get(10)?,
    })
}

fn health(conn: &Connection, location: &Location) -> Result<Health, Fault> {
    let pages: u64 =
        conn.query_row("SELECT page_count * page_size FROM pragma_page_count, pragma_page_size", [], |r| r.get(0))?;
    let of = |path: &Path| path.parent().map(|p| if p.as_os_str().is_empty() { ".".into() } else { p.to_owned() });
    let folder = location.file().and_then(of);
    let free_bytes = folder.and_then(|folder| rustix::fs::statvfs(&folder).ok()).map(|fs| fs.f_bavail * fs.f_frsize);
    Ok(Health {
        location: location.to_string(),
        engine: format!("SQLite {}", rusqlite::version()),
        schema_version: schema::newest_version(),
        size_bytes: pages,
        free_bytes,
        problems: audit::damage(conn)?.into_iter().collect(),
    })
}
