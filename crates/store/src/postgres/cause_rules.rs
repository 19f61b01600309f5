//! Rules that people made by splitting causes, and bringing letters to the keys that they say.

use redrive_core::causes::CauseRules;
use redrive_core::counts::Death;
use redrive_core::ids::JobId;
use redrive_core::time::Timestamp;

use super::batch::Batch;
use super::facets;
use super::fault::Fault;
use super::rows;
use super::sql::{Conn, args};
use crate::contract::{ResolveLetters, Unresolved, UnresolvedLetter};
use crate::lists;

/// All rules there are.
pub(super) async fn all(conn: &Conn) -> Result<CauseRules, Fault> {
    let sql = "SELECT k.key, r.target, r.text, i.key FROM cause_rule r JOIN cause_key k ON k.id = r.key
               JOIN cause_key i ON i.id = r.into_key ORDER BY r.id";
    let rules = conn.query(sql, args![], |row| rows::cause_rule(row)).await?;
    Ok(CauseRules { version: version(conn).await?, rules })
}

/// The version of the rules.
pub(super) async fn version(conn: &Conn) -> Result<u64, Fault> {
    conn.query_one("SELECT version FROM cause_rules", args![], |row| row.get(0)).await
}

/// Has the letters of a key looked through, from the beginning.
pub(super) async fn begin(batch: &Batch, key: i64) -> Result<(), Fault> {
    batch.conn().execute("UPDATE cause_key SET resolving = '' WHERE id = $1 AND rules > 0", args![key]).await?;
    Ok(())
}

/// The next letters that are to be looked at, of one key.
pub(super) async fn unresolved(conn: &Conn, limit: &u32) -> Result<Option<Unresolved>, Fault> {
    let sql = "SELECT id, key, resolving FROM cause_key WHERE resolving IS NOT NULL ORDER BY id LIMIT 1";
    let found: Option<(i64, String, String)> =
        conn.query_opt(sql, args![], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).await?;
    let Some((row, key, was)) = found else { return Ok(None) };
    let (died_at, seq) = if was.is_empty() { (i64::MIN, i64::MIN) } else { lists::keyset(&was)? };
    let sql = "SELECT id, target, message, died_at, seq FROM dead WHERE cause_key = $1 AND (died_at, seq) > ($2, $3)
               ORDER BY died_at, seq LIMIT $4";
    let found = conn.query(sql, args![row, died_at, seq, limit], |row| {
        let place = format!("{}-{}", row.get::<i64>(3)?, row.get::<i64>(4)?);
        Ok((UnresolvedLetter { id: rows::job_id(row, 0)?, target: row.get(1)?, message: row.get(2)? }, place))
    });
    let (letters, places): (Vec<_>, Vec<_>) = found.await?.into_iter().unzip();
    Ok(Some(Unresolved { key, was, next: places.into_iter().next_back(), letters }))
}

/// Notes that letters were looked at, and brings those elsewhere that belong there. If the rules or the key have changed since
/// they were read, nothing happens.
pub(super) async fn resolve(batch: &mut Batch, params: &ResolveLetters) -> Result<bool, Fault> {
    if version(batch.conn()).await? != params.rules {
        return Ok(false);
    }
    let sql = "UPDATE cause_key SET resolving = $3 WHERE key = $1 AND resolving = $2";
    if batch.conn().execute(sql, args![params.key, params.was, params.next]).await? == 0 {
        return Ok(false);
    }
    let key = row_of(batch, &params.key).await?;
    // What is counted in this transaction is moved, too.
    batch.settle_tallies().await?;
    facets::fold_all(batch.conn()).await?;
    for letter in &params.letters {
        let Some(into) = &letter.into else { continue };
        let into = row_of(batch, into).await?;
        if into != key {
            bring(batch, letter.id, (key, into)).await?;
        }
    }
    if params.next.is_none() {
        batch.settle_tallies().await?;
        facets::fold_all(batch.conn()).await?;
        give_back(batch, key).await?;
    }
    Ok(true)
}

/// Adds what a part that was brought back counted to the key that it was split from, once it has no letters.
async fn give_back(batch: &Batch, part: i64) -> Result<(), Fault> {
    let conn = batch.conn();
    let sql = "SELECT parent FROM cause_key WHERE id = $1 AND retired AND dead = 0 AND parent IS NOT NULL";
    let Some(mut parent) = conn.query_opt(sql, args![part], |row| row.get::<i64>(0)).await? else { return Ok(()) };
    // A part of a part that was brought back itself counts where that one does.
    let sql = "SELECT parent FROM cause_key WHERE id = $1 AND retired AND parent IS NOT NULL";
    while let Some(further) = conn.query_opt(sql, args![parent], |row| row.get::<i64>(0)).await? {
        parent = further;
    }
    for sql in [
        "UPDATE cause_key k SET total = k.total + q.total, recovered = k.recovered + q.recovered,
                discarded = k.discarded + q.discarded, refailed = k.refailed + q.refailed,
                last_seen = greatest(k.last_seen, q.last_seen)
         FROM cause_key q WHERE k.id = $2 AND q.id = $1",
        "INSERT INTO cause_hour (key, hour, count, imported)
         SELECT $2, hour, count, imported FROM cause_hour WHERE key = $1
         ON CONFLICT (key, hour)
            DO UPDATE SET count = cause_hour.count + excluded.count, imported = cause_hour.imported + excluded.imported",
        "INSERT INTO cause_target (key, target, count, last_seen)
         SELECT $2, target, count, last_seen FROM cause_target WHERE key = $1
         ON CONFLICT (key, target) DO UPDATE SET count = cause_target.count + excluded.count,
            last_seen = greatest(cause_target.last_seen, excluded.last_seen)",
    ] {
        conn.execute(sql, args![part, parent]).await?;
    }
    let sql = "INSERT INTO cause_facet AS f (key, kind, value, count)
               SELECT $2::bigint, kind, value, count FROM cause_facet WHERE key = $1
               ON CONFLICT (key, kind, value) DO UPDATE SET count = f.count + excluded.count";
    conn.execute(sql, args![part, parent]).await?;
    let sql = "INSERT INTO good_pin (key, good) SELECT $2::bigint, good FROM good_pin WHERE key = $1 ON CONFLICT (key) DO NOTHING";
    conn.execute(sql, args![part, parent]).await?;
    for sql in [
        "DELETE FROM cause_facet WHERE key = $1",
        "DELETE FROM good_pin WHERE key = $1",
        "UPDATE cause_key SET total = 0, recovered = 0, discarded = 0, refailed = 0 WHERE id = $1",
        "DELETE FROM cause_hour WHERE key = $1",
        "DELETE FROM cause_target WHERE key = $1",
    ] {
        conn.execute(sql, args![part]).await?;
    }
    Ok(())
}

async fn row_of(batch: &Batch, key: &str) -> Result<i64, Fault> {
    batch.conn().query_one("SELECT id FROM cause_key WHERE key = $1", args![key], |row| row.get(0)).await
}

/// Brings a letter from one key to another, with what is counted of it.
async fn bring(batch: &mut Batch, id: JobId, (from, into): (i64, i64)) -> Result<(), Fault> {
    let sql = "UPDATE dead SET cause_key = $3 WHERE id = $1 AND cause_key = $2
               RETURNING target, died_at, refailed, kept_from > died_at, proxy, http_status, definition";
    let found = batch.conn().query_opt(sql, args![id, from, into], |row| {
        let death = if row.get(2)? { Death::Again } else { Death::First };
        let facets = rows::letter_facets(row, [0, 4, 5, 6])?;
        Ok((row.get::<Option<String>>(0)?, (death, rows::time(row, 1)?), row.get::<bool>(3)?, facets))
    });
    let Some((target, (death, died_at), is_imported, counted)) = found.await? else { return Ok(()) };
    batch.tallies.key(into).add(death, died_at);
    batch.tallies.key(from).take_away(death);
    if death == Death::First {
        move_hour(batch.conn(), (from, into), (died_at, i64::from(is_imported))).await?;
        facets::bring(batch.conn(), (from, into), &counted).await?;
    }
    match target {
        Some(target) => move_target(batch.conn(), (from, into), &target, died_at).await,
        None => Ok(()),
    }
}

/// Moves one that was counted in an hour, unless that was forgotten.
async fn move_hour(conn: &Conn, (from, into): (i64, i64), (at, imported): (Timestamp, i64)) -> Result<(), Fault> {
    let take = "UPDATE cause_hour SET count = count - 1, imported = greatest(imported - $3, 0)
                WHERE key = $1 AND hour = $2 AND count > 0";
    if conn.execute(take, args![from, at.hour(), imported]).await? == 1 {
        let put = "INSERT INTO cause_hour (key, hour, count, imported) VALUES ($1, $2, 1, $3)
                   ON CONFLICT (key, hour) DO UPDATE SET count = cause_hour.count + 1, imported = cause_hour.imported + $3";
        conn.execute(put, args![into, at.hour(), imported]).await?;
        let empty = "DELETE FROM cause_hour WHERE key = $1 AND hour = $2 AND count = 0";
        conn.execute(empty, args![from, at.hour()]).await?;
    }
    Ok(())
}

/// Moves one that was counted for a target, unless that was forgotten.
async fn move_target(conn: &Conn, (from, into): (i64, i64), target: &str, at: Timestamp) -> Result<(), Fault> {
    let take = "UPDATE cause_target SET count = count - 1 WHERE key = $1 AND target = $2 AND count > 0";
    if conn.execute(take, args![from, target]).await? == 1 {
        let put = "INSERT INTO cause_target (key, target, count, last_seen) VALUES ($1, $2, 1, $3)
                   ON CONFLICT (key, target) DO UPDATE SET count = cause_target.count + 1,
                       last_seen = greatest(cause_target.last_seen, excluded.last_seen)";
        conn.execute(put, args![into, target, at]).await?;
        let empty = "DELETE FROM cause_target WHERE key = $1 AND target = $2 AND count = 0";
        conn.execute(empty, args![from, target]).await?;
    }
    Ok(())
}
