//! Pages that worked: finding them, writing those of a transaction, and letting go of those that nothing holds on to.

use async_trait::async_trait;
use redrive_core::good::{GoodPage, PAGES_MAX, REFRESH, SHAPES_MAX};
use rusqlite::{Connection, OptionalExtension, params};

use super::SqliteStore;
use super::batch::Batch;
use super::fault::Fault;
use super::rows::{self, RowResult};
use super::{causes, leader};
use crate::contract::{FindGood, GoodStore, ReleaseGood};
use crate::error::Result;
use crate::tallies::Tallies;

#[async_trait]
impl GoodStore for SqliteStore {
    async fn good_pages(&self, params: FindGood) -> Result<Vec<GoodPage>> {
        self.read(move |conn| find(conn, &params)).await
    }

    async fn release_good(&self, params: ReleaseGood) -> Result<bool> {
        self.write(move |batch| release(batch, &params)).await
    }
}

fn find(conn: &Connection, params: &FindGood) -> Result<Vec<GoodPage>, Fault> {
    let cause = params.cause.as_ref().map(|id| causes::find(conn, id)).transpose()?.map(|(row, _)| row);
    let mut select = conn.prepare_cached(
        "SELECT g.target, g.shape, g.url, g.payload, g.at, g.rules FROM good g JOIN pipeline p ON p.id = g.pipeline
         LEFT JOIN (SELECT DISTINCT n.good FROM good_pin n JOIN cause_key k ON k.id = n.key WHERE k.cause = ?3) n ON n.good = g.id
         WHERE p.name = ?1 AND (?2 IS NULL OR g.target = ?2) AND (g.current = 1 OR n.good IS NOT NULL)
         ORDER BY n.good IS NULL, g.at DESC, g.id DESC LIMIT ?4",
    )?;
    let pages = select
        .query_map(params![params.pipeline.as_str(), params.target, cause, params.limit], |row| rows::good_page(row))?;
    Ok(pages.collect::<RowResult<_>>()?)
}

/// Writes the pages that worked, and has keys hold on to the pages of the letters that died.
pub(super) fn write(tallies: &Tallies, conn: &Connection) -> Result<(), Fault> {
    for (key, (pipeline, target, shape)) in &tallies.pins {
        let mut pin = conn.prepare_cached(
            "INSERT OR IGNORE INTO good_pin (key, good) SELECT ?1, id FROM good
             WHERE pipeline = ?2 AND target = ?3 AND shape = ?4 AND current = 1",
        )?;
        pin.execute(params![key, pipeline, target, shape])?;
    }
    for (pipeline, page) in &tallies.good {
        keep(conn, *pipeline, page)?;
    }
    Ok(())
}

/// Keeps a page, unless one of its shape is new enough, or its payload is not registered any more.
fn keep(conn: &Connection, pipeline: i64, page: &GoodPage) -> Result<(), Fault> {
    let place = params![pipeline, page.target, page.shape];
    let mut select = conn
        .prepare_cached("SELECT id, at FROM good WHERE pipeline = ?1 AND target = ?2 AND shape = ?3 AND current = 1")?;
    let former = select.query_row(place, |row| Ok((row.get::<_, i64>(0)?, rows::time(row, 1)?))).optional()?;
    let is_new = former.is_some_and(|(_, at)| at <= page.at && page.at < at + REFRESH);
    let hash = page.payload.hash.as_bytes();
    if is_new || !conn.prepare_cached("SELECT 1 FROM payload WHERE hash = ?1")?.exists([hash])? {
        return Ok(());
    }
    if let Some((former, _)) = former {
        conn.prepare_cached("UPDATE good SET current = 0 WHERE id = ?1")?.execute([former])?;
        conn.prepare_cached("DELETE FROM good WHERE id = ?1 AND NOT EXISTS (SELECT 1 FROM good_pin WHERE good = ?1)")?
            .execute([former])?;
    }
    conn.prepare_cached(
        "INSERT INTO good (pipeline, target, shape, current, url, hash, payload, at, rules)
         VALUES (?1, ?2, ?3, 1, ?4, ?5, ?6, ?7, ?8)",
    )?
    .execute(params![
        pipeline,
        page.target,
        page.shape,
        page.url,
        hash,
        serde_json::to_string(&page.payload)?,
        page.at.as_millis(),
        page.rules
    ])?;
    make_room(conn, pipeline, &page.target)
}

/// Lets go of the oldest pages where there are too many, those that a cause holds on to last.
fn make_room(conn: &Connection, pipeline: i64, target: &str) -> Result<(), Fault> {
    for (scope, most) in
        [("pipeline = ?1 AND target = ?2 AND current = 1", SHAPES_MAX), ("pipeline = ?1 AND ?2 = ?2", PAGES_MAX)]
    {
        let sql = format!(
            "DELETE FROM good WHERE id IN
                (SELECT id FROM good g WHERE {scope}
                 ORDER BY EXISTS (SELECT 1 FROM good_pin n WHERE n.good = g.id) DESC, at DESC, id DESC LIMIT -1 OFFSET ?3)
             RETURNING id"
        );
        let mut delete = conn.prepare_cached(&sql)?;
        let gone = delete.query_map(params![pipeline, target, most], |row| row.get::<_, i64>(0))?;
        for gone in gone.collect::<RowResult<Vec<_>>>()? {
            conn.prepare_cached("DELETE FROM good_pin WHERE good = ?1")?.execute([gone])?;
        }
    }
    Ok(())
}

fn release(batch: &mut Batch<'_>, params: &ReleaseGood) -> Result<bool, Fault> {
    leader::check(batch, params.led.as_ref())?;
    let mut pins = batch.statement(
        "DELETE FROM good_pin WHERE key IN
            (SELECT n.key FROM good_pin n LEFT JOIN cause_key k ON k.id = n.key LEFT JOIN cause c ON c.id = k.cause
             WHERE k.id IS NULL OR (c.resolved_at IS NOT NULL AND k.last_seen <= c.resolved_at)
                OR (k.dead = 0 AND k.last_seen < ?1) LIMIT ?2)",
    )?;
    let released = pins.execute(params![params.before.as_millis(), params.limit])?;
    batch
        .statement(
            "DELETE FROM good WHERE current = 0 AND NOT EXISTS (SELECT 1 FROM good_pin n WHERE n.good = good.id)",
        )?
        .execute([])?;
    Ok(released == params.limit as usize)
}
