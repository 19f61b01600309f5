//! The schema and its versions. A store of an older version is brought forward.
//!
//! Old and new workers work side by side while a fleet is upgraded: what a version adds, the one before it does not miss, and what is
//! no longer used is removed two versions later. Each version says which is the oldest that can work with it; only a build that is
//! older than that is refused.

use super::conn::Conn;
use super::connect::Target;
use super::fault::Fault;
use super::sql::args;
use crate::error::StoreError;

/// Brings the schema forward by one version.
struct Migration {
    parts: &'static [&'static str],
    /// The oldest version whose builds can work with the store from then on.
    oldest: i64,
}

const MIGRATIONS: &[Migration] = &[
    Migration {
        parts: &[
            include_str!("schema/001_jobs.sql"),
            include_str!("schema/001_dead.sql"),
            include_str!("schema/001_rest.sql"),
            include_str!("schema/001_serve.sql"),
        ],
        oldest: 1,
    },
    Migration { parts: &[include_str!("schema/002_serving.sql"), include_str!("schema/002_fleet.sql")], oldest: 1 },
    Migration { parts: &[include_str!("schema/003_dashboard.sql")], oldest: 1 },
    Migration { parts: &[include_str!("schema/004_on_call.sql")], oldest: 1 },
    Migration { parts: &[include_str!("schema/005_results.sql")], oldest: 1 },
    Migration { parts: &[include_str!("schema/006_payloads.sql")], oldest: 1 },
    Migration { parts: &[include_str!("schema/007_claims.sql")], oldest: 1 },
    Migration { parts: &[include_str!("schema/008_forgotten.sql")], oldest: 1 },
];

/// The oldest server that is understood.
const SERVER_MIN: i64 = 13;

/// The version this build writes.
pub(super) fn newest_version() -> i64 {
    i64::try_from(MIGRATIONS.len()).unwrap_or(i64::MAX)
}

/// Refuses a server that is too old, and a database that cannot keep every text as it is.
pub(super) async fn check_server(conn: &Conn, target: &Target) -> Result<(), Fault> {
    let sql = "SELECT current_setting('server_encoding'), current_setting('server_version_num')::bigint";
    let (encoding, version): (String, i64) = conn.query_one(sql, args![], |row| Ok((row.get(0)?, row.get(1)?))).await?;
    Ok(check_facts(version, &encoding, &target.place)?)
}

fn check_facts(version: i64, encoding: &str, place: &str) -> Result<(), StoreError> {
    let place = place.to_owned();
    if version < SERVER_MIN * 10_000 {
        let why = format!("it is PostgreSQL {}, and a store needs {SERVER_MIN} or later", version / 10_000);
        return Err(StoreError::Refused { place, why });
    }
    if encoding != "UTF8" {
        let why =
            format!("its database keeps text as {encoding}, and a store needs one that was made with ENCODING 'UTF8'");
        return Err(StoreError::NotAStore { place, why });
    }
    Ok(())
}

/// Checks that the schema is a store this build understands, and brings it to the newest version. Makes one if asked to.
pub(super) async fn migrate(conn: &Conn, target: &Target, create: bool) -> Result<(), Fault> {
    if check(conn, target).await? >= Some(newest_version()) {
        return Ok(());
    }
    // Whatever the role is used to: who waited for the others has to see what they did.
    conn.script(&format!("BEGIN ISOLATION LEVEL READ COMMITTED; {}", alone(target))).await?;
    let migrated = migrate_alone(conn, target, create).await;
    let end = if migrated.is_ok() { "COMMIT" } else { "ROLLBACK" };
    conn.script(end).await?;
    migrated
}

/// One process brings the store forward; the others find it done. Who cannot have a lock soon lets go of all and tries again, so that
/// nobody queues up behind it.
fn alone(target: &Target) -> String {
    let lock = target.lock().wrapping_add(1);
    format!(
        "SET LOCAL lock_timeout = '2s'; SET LOCAL statement_timeout = 0; SET LOCAL client_min_messages = warning;
SET LOCAL idle_in_transaction_session_timeout = '60s';
SELECT pg_advisory_xact_lock({lock})"
    )
}

async fn migrate_alone(conn: &Conn, target: &Target, create: bool) -> Result<(), Fault> {
    let found = check(conn, target).await?;
    if found.is_none() && !create {
        return Err(StoreError::Missing { place: target.place.clone() }.into());
    }
    for part in steps(target, found) {
        conn.script(&part).await?;
    }
    Ok(())
}

/// What brings the store from a version to the newest, or makes it.
fn steps(target: &Target, found: Option<i64>) -> Vec<String> {
    let schema = &target.schema;
    let from = usize::try_from(found.unwrap_or(0)).unwrap_or(0);
    let missing = MIGRATIONS.get(from..).unwrap_or_default();
    let Some(last) = missing.last() else { return Vec::new() };
    let mut steps = Vec::new();
    if found.is_none() {
        steps.push(format!("CREATE SCHEMA IF NOT EXISTS {schema}"));
    }
    steps.push(format!("SET LOCAL search_path = {schema}, pg_temp"));
    steps.extend(missing.iter().flat_map(|migration| migration.parts).map(|part| (*part).to_owned()));
    steps.push(format!("UPDATE meta SET version = {}, oldest = {}", newest_version(), last.oldest));
    steps
}

/// The same as one script for somebody else to run, who owns the schema then; `role` may work with it, and no more.
pub(super) fn script(target: &Target, found: Option<i64>, role: &str) -> String {
    let steps = steps(target, found);
    if steps.is_empty() {
        return String::new();
    }
    let (schema, role) = (&target.schema, format!("\"{}\"", role.replace('"', "\"\"")));
    let steps: String = steps.iter().map(|step| format!("{};\n", step.trim().trim_end_matches(';'))).collect();
    format!(
        "BEGIN;
{};
{steps}
-- The role that redrive connects as may work with the tables, and change none of them.
GRANT USAGE ON SCHEMA {schema} TO {role};
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {schema} TO {role};
GRANT SELECT, USAGE, UPDATE ON ALL SEQUENCES IN SCHEMA {schema} TO {role};
COMMIT;
",
        alone(target)
    )
}

/// The version of the store, if there is one; an error if what is there is none, or one that this build is too old for.
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
    let sql = format!("SELECT version, oldest FROM {schema}.meta");
    let (found, oldest): (i64, i64) = conn.query_one(&sql, args![], |row| Ok((row.get(0)?, row.get(1)?))).await?;
    match oldest > newest_version() {
        true => Err(StoreError::NewerSchema { place, found, known: newest_version() }.into()),
        false => Ok(Some(found)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_that_are_too_old_are_refused_by_their_version() {
        let said = |version, encoding| check_facts(version, encoding, "db").err().map(|error| error.to_string());
        assert!(
            said(120_022, "UTF8").is_some_and(|said| said.contains("PostgreSQL 12, and a store needs 13 or later"))
        );
        assert!(said(90_624, "UTF8").is_some_and(|said| said.contains("PostgreSQL 9,")));
        assert_eq!((said(130_000, "UTF8"), said(180_001, "UTF8")), (None, None));
        assert!(said(150_000, "LATIN1").is_some_and(|said| said.contains("ENCODING 'UTF8'")));
    }
}
