//! A copy of the whole store as it is at one moment, made while others go on with it.

use std::path::Path;

use super::connect;
use super::fault::Fault;
use super::ledger::{free_bytes, size_bytes};
use super::view::View;
use crate::error::StoreError;

/// Writes a copy to an empty file. It has a connection of its own: nothing may be under way on the one that it is made with.
pub(super) fn snapshot(view: &View, to: &Path) -> Result<(), Fault> {
    let conn = connect::reader(view)?;
    let needed_bytes = size_bytes(&conn)?;
    if let Some(free_bytes) = free_bytes(to).filter(|free| *free < needed_bytes) {
        return Err(StoreError::NoRoom { place: to.display().to_string(), needed_bytes, free_bytes }.into());
    }
    // It writes to the copy only, which SQLite takes for writing all the same.
    conn.execute_batch("PRAGMA query_only = OFF; PRAGMA temp_store = FILE;")?;
    conn.execute("VACUUM INTO ?1", [to.display().to_string()])?;
    view.check()?;
    Ok(())
}
