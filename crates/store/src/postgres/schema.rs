//! The schema and its versions. A store of an older version is brought forward; one of a newer version is refused.

use super::connect::Target;
use super::fault::Fault;
use super::sql::{Conn, args};
use crate::error::StoreError;

/// Each entry brings the schema forward by one version.
const MIGRATIONS: &[&[&str]] = &[&[
    include_str!("schema/001_jobs.sql"),
    include_str!("schema/001_dead.sql"),
    include_str!("schema/001_rest.sql"),
    include_str!("schema/001_serve.sql"),
]];

/// The version this build writes.
pub(super) fn newest_version() -> i64 {
    i64::try_from(MIGRATIONS.len()).unwrap_or(i64::MAX)
}

/// Refuses a database that cannot keep every text as it is.
pub(super) async fn check_encoding(conn: &Conn, target: &Target) -> Result<(), Fault> {
    let encoding: String =
        conn.query_one("SELECT current_setting('server_encoding')", args![], |row| row.get(0)).await?;
    if encoding == "UTF8" {
        return Ok(());
    }
    let why =
        format!("its database keeps text as {encoding}, and a store needs one that was made with ENCODING 'UTF8'");
    Err(StoreError::NotAStore { place: target.place.clone(), why }.into())
}

/// Checks that the schema is a store this build understands, and brings it to the newest version. Makes one if asked to.
pub(super) async fn migrate(conn: &Conn, target: &Target, create: bool) -> Result<(), Fault> {
    if check(conn, target).await? == Some(newest_version()) {
        return Ok(());
    }
    // One process brings it forward; the others wait and find it done.
    conn.script(&format!("BEGIN; SELECT pg_advisory_xact_lock({})", target.lock().wrapping_add(1))).await?;
    let migrated = migrate_alone(conn, target, create).await;
    let end = if migrated.is_ok() { "COMMIT" } else { "ROLLBACK" };
    conn.script(end).await?;
    migrated
}

async fn migrate_alone(conn: &Conn, target: &Target, create: bool) -> Result<(), Fault> {
    let found = check(conn, target).await?;
    if found.is_none() && !create {
        return Err(StoreError::Missing { place: target.place.clone() }.into());
    }
    let schema = &target.schema;
    if found.is_none() {
        conn.script(&format!("CREATE SCHEMA IF NOT EXISTS {schema}")).await?;
    }
    conn.script(&format!("SET LOCAL search_path = {schema}, pg_temp; SET LOCAL client_min_messages = warning")).await?;
    let from = usize::try_from(found.unwrap_or(0)).unwrap_or(0);
    for migration in &MIGRATIONS[from..] {
        for part in *migration {
            conn.script(part).await?;
        }
    }
    conn.script(&format!("UPDATE meta SET version = {}", newest_version())).await
}

/// The version of the store, if there is one; an error if what is there is none, or a newer one than this build understands.
pub(super) async fn check(conn: &Conn, target: &Target) -> Result<Option<i64>, Fault> {
    let schema = &target.schema;
    let tables = "SELECT count(*), count(*) FILTER (WHERE c.relname = 'meta') FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
                  WHERE n.nspname = $1 AND c.relkind IN ('r', 'p')";
    let (tables, metas): (i64, i64) =
        conn.query_one(tables, args![schema], |row| Ok((row.get(0)?, row.get(1)?))).await?;
    let place = target.place.clone();
    if tables == 0 {
        return Ok(None);
    }
    if metas == 0 {
        let why = "its schema has the tables of another program".to_owned();
        return Err(StoreError::NotAStore { place, why }.into());
    }
    let found: i64 = conn.query_one(&format!("SELECT version FROM {schema}.meta"), args![], |row| row.get(0)).await?;
    match found > newest_version() {
        true => Err(StoreError::NewerSchema { place, found, known: newest_version() }.into()),
        false => Ok(Some(found)),
    }
}
