//! The schema and its versions. A store of an older version is brought forward; one of a newer version is refused.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use rusqlite::{Connection, TransactionBehavior};

use super::cause_keys;
use super::fault::Fault;
use crate::error::StoreError;

/// Marks a file as a Redrive store: "RDRV".
const APPLICATION_ID: i64 = 0x5244_5256;

/// Each entry brings the schema forward by one version.
const MIGRATIONS: &[&str] = &[
    include_str!("schema/001_jobs.sql"),
    include_str!("schema/002_payloads.sql"),
    include_str!("schema/003_progress.sql"),
    include_str!("schema/004_causes.sql"),
    include_str!("schema/005_mended.sql"),
    include_str!("schema/006_seam.sql"),
];

/// The version that brought causes: letters of older stores are recognised once.
const CAUSES_SINCE: usize = 4;

/// The version this build writes.
pub(super) fn newest_version() -> i64 {
    i64::try_from(MIGRATIONS.len()).unwrap_or(i64::MAX)
}

/// Checks that the file is a store this build understands and brings it to the newest version.
pub(super) fn migrate(conn: &mut Connection, path: &Path) -> Result<(), Fault> {
    // One view of the file: another process may be making it at this moment.
    if check(&*conn.transaction()?, path)? == newest_version() {
        return Ok(());
    }
    let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Another process may have been faster.
    let from = usize::try_from(check(&tx, path)?).unwrap_or(0);
    for migration in &MIGRATIONS[from..] {
        tx.execute_batch(migration)?;
    }
    if from > 0 && from < CAUSES_SINCE {
        cause_keys::recognise_all(&tx)?;
    }
    tx.pragma_update(None, "application_id", APPLICATION_ID)?;
    tx.pragma_update(None, "user_version", newest_version())?;
    Ok(tx.commit()?)
}

/// Whether a file is marked as a store, as far as its first page says. It is not opened as a database: that would leave traces.
pub(super) fn is_marked(path: &Path) -> bool {
    let mut header = [0; 72];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut header));
    // The format has the id there, as a big-endian number.
    read.is_ok() && header.starts_with(b"SQLite format 3\0") && header[68..] == (APPLICATION_ID as u32).to_be_bytes()
}

/// Checks that a store that cannot be written is one that this build can read as it is.
pub(super) fn check_unwritable(conn: &Connection, path: &Path, why: StoreError) -> Result<(), Fault> {
    let (found, known) = (check(conn, path)?, newest_version());
    match found == known {
        true => Ok(()),
        false => {
            Err(StoreError::CannotMigrate { place: path.display().to_string(), found, known, why: Box::new(why) }
                .into())
        }
    }
}

/// The version of a store; an error if it is none, or a newer one than this build understands.
pub(super) fn check(conn: &Connection, path: &Path) -> Result<i64, Fault> {
    let pragma = |name: &str| conn.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let (application, found) = (pragma("application_id")?, pragma("user_version")?);
    let tables: i64 = conn.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    if application != APPLICATION_ID && (tables > 0 || found != 0) {
        let why = "it is a database of another program".to_owned();
        return Err(StoreError::NotAStore { place: path.display().to_string(), why }.into());
    }
    if found > newest_version() {
        return Err(
            StoreError::NewerSchema { place: path.display().to_string(), found, known: newest_version() }.into()
        );
    }
    Ok(found)
}
