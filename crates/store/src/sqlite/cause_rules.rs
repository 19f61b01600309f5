//! Rules that people made by splitting causes, and bringing letters to the keys that they say.

use redrive_core::causes::CauseRules;
use redrive_core::counts::Death;
use redrive_core::ids::JobId;
use redrive_core::time::Timestamp;
use rusqlite::{Connection, OptionalExtension, params};

use super::batch::Batch;
use super::facets;
use super::fault::Fault;
use super::rows::{self, RowResult};
use crate::contract::{ResolveLetters, Unresolved, UnresolvedLetter};
use crate::error::StoreError;

/// All rules there are.
pub(super) fn all(conn: &Connection) -> Result<CauseRules, Fault> {
    let mut select = conn.prepare_cached(
        "SELECT k.key, r.target, r.text, i.key FROM cause_rule r JOIN cause_key k ON k.id = r.key
         JOIN cause_key i ON i.id = r.into_key ORDER BY r.rowid",
    )?;
    let rules = select.query_map([], |row| rows::cause_rule(row))?.collect::<RowResult<_>>()?;
    Ok(CauseRules { version: version(conn)?, rules })
}

/// The version of the rules.
pub(super) fn version(conn: &Connection) -> Result<u64, Fault> {
    Ok(conn.prepare_cached("SELECT version FROM cause_rules")?.query_row([], |row| row.get(0))?)
}

/// Has the letters of a key looked through, from the beginning.
pub(super) fn begin(batch: &Batch<'_>, key: i64) -> Result<(), Fault> {
    batch.statement("UPDATE cause_key SET resolving = '' WHERE id = ?1 AND rules > 0")?.execute([key])?;
    Ok(())
}

/// The next letters that are to be looked at, of one key.
pub(super) fn unresolved(conn: &Connection, limit: u32) -> Result<Option<Unresolved>, Fault> {
    let mut select = conn.prepare_cached(
        "SELECT id, key, resolving FROM cause_key INDEXED BY cause_key_resolving WHERE resolving IS NOT NULL LIMIT 1",
    )?;
    let found = select.query_row([], |row| Ok((row.get::<_, i64>(0)?, row.get(1)?, row.get::<_, String>(2)?)));
    let Some((row, key, was)) = found.optional()? else { return Ok(None) };
    let (died_at, seq) = place(&was)?;
    let mut select = conn.prepare_cached(
        "SELECT id, target, message, died_at, seq FROM dead WHERE cause_key = ?1 AND (died_at, seq) > (?2, ?3)
         ORDER BY died_at, seq LIMIT ?4",
    )?;
    let mut next = None;
    let rows = select.query_map(params![row, died_at, seq, limit], |row| {
        next = Some(format!("{}/{}", row.get::<_, i64>(3)?, row.get::<_, i64>(4)?));
        Ok(UnresolvedLetter { id: rows::job_id(row, 0)?, target: row.get(1)?, message: row.get(2)? })
    })?;
    let letters = rows.collect::<RowResult<Vec<_>>>()?;
    Ok(Some(Unresolved { key, was, next, letters }))
}

/// From where on letters are looked at.
fn place(cursor: &str) -> Result<(i64, i64), Fault> {
    if cursor.is_empty() {
        return Ok((i64::MIN, i64::MIN));
    }
    let numbers = cursor.split_once('/').and_then(|(at, seq)| Some((at.parse().ok()?, seq.parse().ok()?)));
    Ok(numbers.ok_or_else(|| StoreError::InvalidCursor(cursor.to_owned()))?)
}

/// Notes that letters were looked at, and brings those elsewhere that belong there. If the rules or the key have changed since
/// they were read, nothing happens.
pub(super) fn resolve(batch: &mut Batch<'_>, params: &ResolveLetters) -> Result<bool, Fault> {
    if version(batch.connection())? != params.rules {
        return Ok(false);
    }
    let mut update = batch.statement("UPDATE cause_key SET resolving = ?3 WHERE key = ?1 AND resolving = ?2")?;
    if update.execute(params![params.key, params.was, params.next])? == 0 {
        return Ok(false);
    }
    let key = row_of(batch, &params.key)?;
    // What is counted in this transaction is moved, too.
    batch.settle_tallies()?;
    for letter in &params.letters {
        let into = letter.into.as_deref().map(|into| row_of(batch, into)).transpose()?;
        if let Some(into) = into.filter(|into| *into != key) {
            bring(batch, letter.id, (key, into))?;
        }
    }
    if params.next.is_none() {
        batch.settle_tallies()?;
        give_back(batch, key)?;
    }
    Ok(true)
}

/// Adds what a part that was brought back counted to the key that it was split from, once it has no letters.
fn give_back(batch: &Batch<'_>, part: i64) -> Result<(), Fault> {
    let mut select = batch
        .statement("SELECT parent FROM cause_key WHERE id = ?1 AND retired AND dead = 0 AND parent IS NOT NULL")?;
    let Some(mut parent) = select.query_row([part], |row| row.get::<_, i64>(0)).optional()? else { return Ok(()) };
    // A part of a part that was brought back itself counts where that one does.
    let mut select =
        batch.statement("SELECT parent FROM cause_key WHERE id = ?1 AND retired AND parent IS NOT NULL")?;
    while let Some(further) = select.query_row([parent], |row| row.get::<_, i64>(0)).optional()? {
        parent = further;
    }
    for sql in [
        "UPDATE cause_key SET total = cause_key.total + q.total, recovered = cause_key.recovered + q.recovered,
                discarded = cause_key.discarded + q.discarded, refailed = cause_key.refailed + q.refailed, last_seen = max(cause_key.last_seen, q.last_seen)
         FROM cause_key q WHERE cause_key.id = ?2 AND q.id = ?1",
        "UPDATE cause_key SET total = 0, recovered = 0, discarded = 0, refailed = 0 WHERE id = ?1 AND ?2 = ?2",
        "INSERT INTO cause_hour (key, hour, count, imported)
         SELECT ?2, hour, count, imported FROM cause_hour WHERE key = ?1
         ON CONFLICT DO UPDATE SET count = count + excluded.count, imported = imported + excluded.imported",
        "INSERT INTO cause_target (key, target, count, last_seen)
         SELECT ?2, target, count, last_seen FROM cause_target WHERE key = ?1
         ON CONFLICT DO UPDATE SET count = count + excluded.count, last_seen = max(last_seen, excluded.last_seen)",
        "INSERT INTO cause_facet (key, kind, value, count) SELECT ?2, kind, value, count FROM cause_facet WHERE key = ?1
         ON CONFLICT DO UPDATE SET count = count + excluded.count",
        "UPDATE OR IGNORE good_pin SET key = ?2 WHERE key = ?1",
        "DELETE FROM cause_facet WHERE key = ?1 AND ?2 = ?2",
        "DELETE FROM good_pin WHERE key = ?1 AND ?2 = ?2",
        "DELETE FROM cause_hour WHERE key = ?1 AND ?2 = ?2",
        "DELETE FROM cause_target WHERE key = ?1 AND ?2 = ?2",
    ] {
        batch.statement(sql)?.execute([part, parent])?;
    }
    Ok(())
}

fn row_of(batch: &Batch<'_>, key: &str) -> Result<i64, Fault> {
    Ok(batch.statement("SELECT id FROM cause_key WHERE key = ?1")?.query_row([key], |row| row.get(0))?)
}

/// Brings a letter from one key to another, with what is counted of it.
fn bring(batch: &mut Batch<'_>, id: JobId, (from, into): (i64, i64)) -> Result<(), Fault> {
    let mut update = batch.statement(
        "UPDATE dead SET cause_key = ?3 WHERE id = ?1 AND cause_key = ?2 RETURNING target, died_at, refailed,
             kept_from > died_at, proxy, http_status, definition",
    )?;
    let found = update
        .query_row(params![id.as_bytes(), from, into], |row| {
            let death = if row.get(2)? { Death::Again } else { Death::First };
            let facets = rows::letter_facets(row, [0, 4, 5, 6])?;
            Ok((row.get::<_, Option<String>>(0)?, (death, rows::time(row, 1)?), row.get(3)?, facets))
        })
        .optional()?;
    let Some((target, (death, died_at), is_imported, counted)) = found else { return Ok(()) };
    batch.tallies.key(into).add(death, died_at);
    batch.tallies.key(from).take_away(death);
    if death == Death::First {
        move_hour(batch, (from, into), (died_at, is_imported))?;
        facets::bring(batch, (from, into), &counted)?;
    }
    target.map_or(Ok(()), |target| move_target(batch, (from, into), &target, died_at))
}

/// Moves one that was counted in an hour, unless that was forgotten.
fn move_hour(batch: &Batch<'_>, (from, into): (i64, i64), (at, is_imported): (Timestamp, bool)) -> Result<(), Fault> {
    let mut take = batch.statement(
        "UPDATE cause_hour SET count = count - 1, imported = max(imported - ?3, 0)
         WHERE key = ?1 AND hour = ?2 AND count > 0",
    )?;
    if take.execute(params![from, at.hour(), is_imported])? == 1 {
        let put = "INSERT INTO cause_hour (key, hour, count, imported) VALUES (?1, ?2, 1, ?3)
                   ON CONFLICT DO UPDATE SET count = count + 1, imported = imported + ?3";
        batch.statement(put)?.execute(params![into, at.hour(), is_imported])?;
        batch
            .statement("DELETE FROM cause_hour WHERE key = ?1 AND hour = ?2 AND count = 0")?
            .execute([from, at.hour()])?;
    }
    Ok(())
}

/// Moves one that was counted for a target, unless that was forgotten.
fn move_target(batch: &Batch<'_>, (from, into): (i64, i64), target: &str, at: Timestamp) -> Result<(), Fault> {
    let mut take =
        batch.statement("UPDATE cause_target SET count = count - 1 WHERE key = ?1 AND target = ?2 AND count > 0")?;
    if take.execute(params![from, target])? == 1 {
        batch
            .statement(
                "INSERT INTO cause_target (key, target, count, last_seen) VALUES (?1, ?2, 1, ?3)
                 ON CONFLICT DO UPDATE SET count = count + 1, last_seen = max(last_seen, excluded.last_seen)",
            )?
            .execute(params![into, target, at.as_millis()])?;
        let empty = "DELETE FROM cause_target WHERE key = ?1 AND target = ?2 AND count = 0";
        batch.statement(empty)?.execute(params![from, target])?;
    }
    Ok(())
}
