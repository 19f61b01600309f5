//! Keys of causes: finding the one that a letter is filed under, or making it.

use std::collections::HashMap;

use redrive_core::causes::{CauseId, CauseRules, Print};
use redrive_core::counts::Death;
use redrive_core::failures::Failure;
use redrive_core::time::Timestamp;
use rusqlite::{Connection, OptionalExtension, params};

use super::batch::Batch;
use super::fault::Fault;
use super::rows::{self, RowResult};
use super::{cause_rules, causes};

/// Files a letter that dies now under the key of its print, made if need be, and counts it. Says which key that is.
pub(super) fn file(
    batch: &mut Batch<'_>,
    (pipeline, target): (i64, Option<&str>),
    (print, failure): (&Print, &Failure),
    (death, now): (Death, Timestamp),
) -> Result<i64, Fault> {
    let found = match find(batch.connection(), print.resolved())? {
        None if print.into.is_some() => find(batch.connection(), &print.key)?,
        found => found,
    };
    let key = match found {
        Some((key, rules)) => {
            if print.rules < rules {
                cause_rules::begin(batch, key)?;
            }
            key
        }
        None => match adopt(batch, print, failure, now)? {
            Some(key) => key,
            None => make(batch, pipeline, print, failure, now)?,
        },
    };
    batch.tallies.killed(key, (target, failure), (death, now));
    Ok(key)
}

/// Files a letter by a print that is made here, where no engine could make it: when a store of a version without causes is
/// brought forward.
pub(super) fn file_here(
    batch: &mut Batch<'_>,
    (pipeline, target): (i64, Option<&str>),
    failure: &Failure,
    now: Timestamp,
) -> Result<i64, Fault> {
    let name = batch.pipeline_name(pipeline)?;
    let rules: CauseRules = cause_rules::all(batch.connection())?;
    let print = Print::of(&name, target, failure, &rules);
    file(batch, (pipeline, target), (&print, failure), (Death::First, now))
}

/// Recognises the dead letters of a store that knew no causes.
pub(super) fn recognise_all(conn: &Connection) -> Result<(), Fault> {
    let mut pipelines = HashMap::new();
    let mut batch = Batch::new(conn, &mut pipelines);
    let mut select = conn.prepare("SELECT id, pipeline, target, died_at FROM dead WHERE cause_key IS NULL")?;
    let rows = select.query_map([], |row| {
        Ok((rows::job_id(row, 0)?, row.get::<_, i64>(1)?, row.get::<_, Option<String>>(2)?, rows::time(row, 3)?))
    })?;
    for (id, pipeline, target, died_at) in rows.collect::<RowResult<Vec<_>>>()? {
        let Some(last) = rows::failures(conn, id)?.pop() else { continue };
        let key = file_here(&mut batch, (pipeline, target.as_deref()), &last, died_at)?;
        batch.statement("UPDATE dead SET cause_key = ?2 WHERE id = ?1")?.execute(params![id.as_bytes(), key])?;
    }
    batch.finish()?;
    Ok(())
}

/// The cause that has a key, if it is known.
pub(super) fn cause_of(conn: &Connection, key: &str) -> Result<Option<CauseId>, Fault> {
    let mut select =
        conn.prepare_cached("SELECT c.name FROM cause_key k JOIN cause c ON c.id = k.cause WHERE k.key = ?1")?;
    Ok(select.query_row([key], |row| rows::parsed(row, 0)).optional()?)
}

/// The rows of a cause's keys.
pub(super) fn keys_of(conn: &Connection, id: &CauseId) -> Result<Vec<i64>, Fault> {
    let (cause, _) = causes::find(conn, id)?;
    let mut select = conn.prepare_cached("SELECT id FROM cause_key WHERE cause = ?1 ORDER BY id")?;
    let rows = select.query_map([cause], |row| row.get(0))?;
    Ok(rows.collect::<RowResult<_>>()?)
}

/// The row of a key, and the version of the rules since which its letters may belong to another.
fn find(conn: &Connection, key: &str) -> Result<Option<(i64, u64)>, Fault> {
    let mut select = conn.prepare_cached("SELECT id, rules FROM cause_key WHERE key = ?1")?;
    Ok(select.query_row([key], |row| Ok((row.get(0)?, row.get(1)?))).optional()?)
}

/// A key that former rules made of the same failure: the new one joins its cause.
fn adopt(batch: &Batch<'_>, print: &Print, failure: &Failure, now: Timestamp) -> Result<Option<i64>, Fault> {
    for former in &print.former {
        let mut select = batch.statement("SELECT cause FROM cause_key WHERE key = ?1")?;
        if let Some(cause) = select.query_row([former], |row| row.get(0)).optional()? {
            return insert(batch, cause, print, failure, now).map(Some);
        }
    }
    Ok(None)
}

fn make(batch: &Batch<'_>, pipeline: i64, print: &Print, failure: &Failure, now: Timestamp) -> Result<i64, Fault> {
    let cause = make_cause(batch, pipeline, &print.key)?;
    insert(batch, cause, print, failure, now)
}

/// Makes a cause that is called after a key.
fn make_cause(batch: &Batch<'_>, pipeline: i64, key: &str) -> Result<i64, Fault> {
    let mut taken = batch.statement("SELECT 1 FROM cause WHERE name = ?1")?;
    let id = CauseId::free(key, |id| taken.exists([id.as_str()]))?;
    let mut insert = batch.statement("INSERT INTO cause (name, pipeline) VALUES (?1, ?2)")?;
    insert.execute(params![id.as_str(), pipeline])?;
    Ok(batch.connection().last_insert_rowid())
}

fn insert(batch: &Batch<'_>, cause: i64, print: &Print, failure: &Failure, now: Timestamp) -> Result<i64, Fault> {
    let mut insert = batch.statement(
        "INSERT INTO cause_key (key, cause, origin, template, reason, code, status, parts, sample, first_seen, last_seen)
         VALUES (?1, ?2, ?2, ?3, ?4, ?5, ?9, ?6, ?7, ?8, ?8)",
    )?;
    insert.execute(params![
        print.key,
        cause,
        print.template,
        failure.reason.as_str(),
        failure.code,
        serde_json::to_string(&print.parts)?,
        failure.message,
        now.as_millis(),
        failure.http_status
    ])?;
    Ok(batch.connection().last_insert_rowid())
}

#[cfg(test)]
mod tests {
    use super::*;
    use redrive_core::failures::Reason;

    /// Rules that change make other keys of the same failures: their cause goes on.
    #[test]
    fn a_new_version_of_the_rules_finds_the_old_cause() {
        let mut conn = Connection::open_in_memory().expect("opened");
        super::super::schema::migrate(&mut conn, std::path::Path::new("memory:")).expect("made");
        let mut pipelines = HashMap::new();
        let mut batch = Batch::new(&conn, &mut pipelines);
        let pipeline = batch.pipeline(&"p".parse().expect("a name")).expect("made");
        let failure: Failure = serde_json::from_value(serde_json::json!({
            "at": "2026-11-15T14:02:00Z", "attempt": 1, "replay": 0, "reason": Reason::HandlerError, "message": "x",
        }))
        .expect("a failure");
        let print = |key: &str, former: &[&str]| Print {
            key: key.to_owned(),
            into: None,
            former: former.iter().map(ToString::to_string).collect(),
            template: "x".to_owned(),
            parts: Vec::new(),
            rules: 0,
        };
        let now = Timestamp::from_millis(0);
        let file = |batch: &mut Batch<'_>, print: &Print| {
            file(batch, (pipeline, None), (print, &failure), (Death::First, now)).expect("filed")
        };
        let old = file(&mut batch, &print("1-aaaaaaaaaa", &[]));
        let adopted = file(&mut batch, &print("2-bbbbbbbbbb", &["1-0000000000", "1-aaaaaaaaaa"]));
        assert_ne!(old, adopted, "it is a key of its own");
        assert_eq!(find(&conn, "2-bbbbbbbbbb").expect("asked"), Some((adopted, 0)));
        let causes = || -> i64 {
            conn.query_row("SELECT count(DISTINCT cause) FROM cause_key", [], |row| row.get(0)).expect("counted")
        };
        assert_eq!(causes(), 1);
        file(&mut batch, &print("2-cccccccccc", &["1-zz"]));
        assert_eq!(causes(), 2, "nothing of it was known");
    }
}
