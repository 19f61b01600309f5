//! Giving space back: the file is written anew, without the pages that are not used any more.

use std::path::Path;

use rusqlite::Connection;

use super::connect::{self, Patience, Place};
use super::copies;
use super::fault::Fault;
use super::ledger::{free_bytes, size_bytes};
use crate::contract::Compacted;
use crate::error::StoreError;
use crate::location::Location;

/// Compacts the store in a file. It has a connection of its own: nothing may be under way on one that is compacted.
pub(super) fn compact(path: &Path) -> Result<Compacted, Fault> {
    let conn = connect::writer(Place::File(path), &Patience::default())?;
    // Rows that have no other number than SQLite's are given new ones.
    copies::check(&conn, &Location::sqlite(path))?;
    let before_bytes = size_bytes(&conn)?;
    let unused: u64 =
        conn.query_row("SELECT freelist_count * page_size FROM pragma_freelist_count, pragma_page_size", [], |r| {
            r.get(0)
        })?;
    // The new copy is written to a file of its own, and from there to the log.
    let needed_bytes = (before_bytes - unused) * 2;
    if let Some(free_bytes) = free_bytes(path).filter(|free| *free < needed_bytes) {
        return Err(StoreError::NoRoom { place: path.display().to_string(), needed_bytes, free_bytes }.into());
    }
    // In memory it would need as much of that as the store is large.
    conn.execute_batch("PRAGMA temp_store = FILE; VACUUM;")?;
    truncate_log(&conn)?;
    Ok(Compacted { before_bytes, after_bytes: size_bytes(&conn)? })
}

/// Copies the log into the file, so that the file shrinks now. Somebody who reads meanwhile puts that off.
fn truncate_log(conn: &Connection) -> Result<(), Fault> {
    conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
    Ok(())
}
