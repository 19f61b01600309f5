//! Pages that worked: finding them, writing those of a transaction, and letting go of those that nothing holds on to.

use async_trait::async_trait;
use redrive_core::good::{GoodPage, PAGES_MAX, REFRESH, SHAPES_MAX};
use redrive_core::time::Timestamp;

use super::batch::Batch;
use super::fault::Fault;
use super::sql::{Conn, args};
use super::{PostgresStore, causes, leader, rows, run};
use crate::contract::{FindGood, GoodStore, ReleaseGood};
use crate::error::Result;
use crate::tallies::Tallies;

#[async_trait]
impl GoodStore for PostgresStore {
    async fn good_pages(&self, params: FindGood) -> Result<Vec<GoodPage>> {
        self.read(params, run!(find)).await
    }

    async fn release_good(&self, params: ReleaseGood) -> Result<bool> {
        self.write(params, run!(release)).await
    }
}

async fn find(conn: &Conn, params: &FindGood) -> Result<Vec<GoodPage>, Fault> {
    let cause = match &params.cause {
        Some(id) => Some(causes::find(conn, id).await?.0),
        None => None,
    };
    let sql =
        "SELECT g.target, g.shape, g.url, g.payload, g.at, g.rules FROM good g JOIN pipeline p ON p.id = g.pipeline
               LEFT JOIN (SELECT DISTINCT n.good FROM good_pin n JOIN cause_key k ON k.id = n.key WHERE k.cause = $3) n
                   ON n.good = g.id
               WHERE p.name = $1 AND ($2::text IS NULL OR g.target = $2) AND (g.current OR n.good IS NOT NULL)
               ORDER BY n.good IS NULL, g.at DESC, g.id DESC LIMIT $4";
    let found = args![params.pipeline.as_str(), params.target, cause, params.limit];
    conn.query(sql, found, |row| rows::good_page(row)).await
}

/// Writes the pages that worked, and has keys hold on to the pages of the letters that died.
pub(super) async fn write(tallies: &Tallies, conn: &Conn) -> Result<(), Fault> {
    let mut pins: Vec<_> = tallies.pins.iter().collect();
    pins.sort();
    for (key, (pipeline, target, shape)) in pins {
        let sql = "INSERT INTO good_pin (key, good) SELECT $1::bigint, id FROM good
                   WHERE pipeline = $2 AND target = $3 AND shape = $4 AND current ON CONFLICT (key) DO NOTHING";
        conn.send(sql, args![key, pipeline, target, shape]).await?;
    }
    for (pipeline, page) in &tallies.good {
        keep(conn, *pipeline, page).await?;
    }
    Ok(())
}

/// Keeps a page, unless one of its shape is new enough, or its payload is not registered any more.
async fn keep(conn: &Conn, pipeline: i64, page: &GoodPage) -> Result<(), Fault> {
    // Two workers may keep a page of one shape at once; the second finds that there is one.
    let sql = "SELECT pg_advisory_xact_lock(hashtextextended('good ' || current_schema(), $1))";
    conn.execute(sql, args![pipeline]).await?;
    let sql = "SELECT id, at FROM good WHERE pipeline = $1 AND target = $2 AND shape = $3 AND current";
    let former: Option<(i64, Timestamp)> = conn
        .query_opt(sql, args![pipeline, page.target, page.shape], |row| Ok((row.get(0)?, rows::time(row, 1)?)))
        .await?;
    let is_new = former.is_some_and(|(_, at)| at <= page.at && page.at < at + REFRESH);
    // Whoever sweeps it at this moment is waited for, or waits.
    let known = "SELECT 1 FROM payload WHERE hash = $1 FOR SHARE";
    if is_new || !conn.exists(known, args![page.payload.hash]).await? {
        return Ok(());
    }
    if let Some((former, _)) = former {
        conn.execute("UPDATE good SET current = false WHERE id = $1", args![former]).await?;
        let sql = "DELETE FROM good WHERE id = $1 AND NOT EXISTS (SELECT 1 FROM good_pin WHERE good = $1)";
        conn.execute(sql, args![former]).await?;
    }
    let sql = "INSERT INTO good (pipeline, target, shape, current, url, hash, payload, at, rules)
               VALUES ($1, $2, $3, true, $4, $5, $6, $7, $8)";
    let payload = serde_json::to_string(&page.payload)?;
    let kept = args![pipeline, page.target, page.shape, page.url, page.payload.hash, payload, page.at, page.rules];
    conn.execute(sql, kept).await?;
    make_room(conn, pipeline, &page.target).await
}

/// Lets go of the oldest pages where there are too many, those that a cause holds on to last.
async fn make_room(conn: &Conn, pipeline: i64, target: &str) -> Result<(), Fault> {
    for (scope, most) in [
        ("pipeline = $1 AND target = $2 AND current", SHAPES_MAX),
        ("pipeline = $1 AND $2::text IS NOT NULL", PAGES_MAX),
    ] {
        let sql = format!(
            "WITH gone AS (DELETE FROM good WHERE id IN
                (SELECT id FROM good g WHERE {scope}
                 ORDER BY EXISTS (SELECT 1 FROM good_pin n WHERE n.good = g.id) DESC, at DESC, id DESC OFFSET $3) RETURNING id)
             DELETE FROM good_pin WHERE good IN (SELECT id FROM gone)"
        );
        conn.execute(&sql, args![pipeline, target, most]).await?;
    }
    Ok(())
}

async fn release(batch: &mut Batch, params: &ReleaseGood) -> Result<bool, Fault> {
    leader::check(batch, params.led.as_ref()).await?;
    let sql = "DELETE FROM good_pin WHERE key IN
                  (SELECT n.key FROM good_pin n LEFT JOIN cause_key k ON k.id = n.key LEFT JOIN cause c ON c.id = k.cause
                   WHERE k.id IS NULL OR (c.resolved_at IS NOT NULL AND k.last_seen <= c.resolved_at)
                      OR (k.dead = 0 AND k.last_seen < $1) LIMIT $2)";
    let released = batch.conn().execute(sql, args![params.before, params.limit]).await?;
    let sql = "DELETE FROM good g WHERE NOT g.current AND NOT EXISTS (SELECT 1 FROM good_pin n WHERE n.good = g.id)";
    batch.conn().execute(sql, args![]).await?;
    Ok(released == u64::from(params.limit))
}
