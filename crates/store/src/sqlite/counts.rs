//! Events by the minute and by the hour. Both tables are read together, so that folding the one into the other shows nowhere.

use async_trait::async_trait;
use redrive_core::failures::Reason;
use redrive_core::ids::PipelineName;
use redrive_core::time::Timestamp;
use rusqlite::{Connection, params};

use super::SqliteStore;
use super::batch::Batch;
use super::fault::Fault;
use super::leader;
use super::rows::{self, RowResult, is_listed};
use crate::contract::{CountEvents, CountStore, EventCount, EventTotal, FoldCounts, Span};
use crate::error::Result;

#[async_trait]
impl CountStore for SqliteStore {
    async fn counts(&self, params: CountEvents) -> Result<Vec<EventCount>> {
        self.read(move |conn| counts(conn, &params)).await
    }

    async fn event_totals(&self) -> Result<Vec<EventTotal>> {
        self.read(totals).await
    }

    async fn fold_counts(&self, params: FoldCounts) -> Result<bool> {
        self.write(move |batch| fold(batch, &params)).await
    }
}

fn counts(conn: &Connection, params: &CountEvents) -> Result<Vec<EventCount>, Fault> {
    let sql = match params.by {
        Span::Minute => {
            "SELECT m.minute * 60000, p.name, m.event, nullif(m.reason, ''), m.count
             FROM pipeline p CROSS JOIN minutely m ON m.pipeline = p.id AND m.minute >= ?1 AND m.minute < ?2
             WHERE ?3 IS NULL OR p.name = ?3 ORDER BY m.minute, p.name, m.event, m.reason"
        }
        Span::Hour => {
            "SELECT h.hour * 3600000, p.name, h.event, nullif(h.reason, ''), h.count
             FROM pipeline p CROSS JOIN hourly_count h ON h.pipeline = p.id AND h.hour >= ?1 AND h.hour < ?2
             WHERE ?3 IS NULL OR p.name = ?3
             UNION ALL
             SELECT m.minute / 60 * 3600000, p.name, m.event, nullif(m.reason, ''), m.count
             FROM pipeline p CROSS JOIN minutely m ON m.pipeline = p.id AND m.minute >= ?1 * 60 AND m.minute < ?2 * 60
             WHERE ?3 IS NULL OR p.name = ?3"
        }
    };
    let (first, end) = params.spans();
    let mut select = conn.prepare_cached(sql)?;
    let rows = select.query_map(params![first, end, params.pipeline.as_ref().map(PipelineName::as_str)], |row| {
        Ok(EventCount {
            at: rows::time(row, 0)?,
            pipeline: rows::parsed(row, 1)?,
            event: rows::parsed(row, 2)?,
            reason: rows::parsed_opt(row, 3)?,
            count: row.get(4)?,
        })
    })?;
    let mut counts = rows.collect::<RowResult<Vec<_>>>()?;
    if params.by == Span::Hour {
        add_up(&mut counts);
    }
    Ok(counts)
}

/// Puts counts in their order, and those of the same into one. They come in a few runs that are in order, which is far less work here
/// than for SQLite.
fn add_up(counts: &mut Vec<EventCount>) {
    fn place(count: &EventCount) -> (Timestamp, &str, &str, Option<&str>) {
        (count.at, count.pipeline.as_str(), count.event.as_str(), count.reason.map(Reason::as_str))
    }
    counts.sort_by(|a, b| place(a).cmp(&place(b)));
    counts.dedup_by(|next, first| {
        let is_same = place(next) == place(first);
        if is_same {
            first.count += next.count;
        }
        is_same
    });
}

fn totals(conn: &Connection) -> Result<Vec<EventTotal>, Fault> {
    let mut select = conn.prepare_cached(&format!(
        "SELECT p.name, c.event, nullif(c.reason, ''), sum(c.count)
         FROM (SELECT pipeline, event, reason, count FROM event_total
               UNION ALL SELECT pipeline, event, reason, count FROM minutely) c
         -- The limit has the condition looked at once for each pipeline, not for each count.
         JOIN (SELECT id, name FROM pipeline p WHERE {} LIMIT -1) p ON p.id = c.pipeline
         GROUP BY p.name, c.event, c.reason ORDER BY p.name, c.event, c.reason",
        is_listed()
    ))?;
    let rows = select.query_map([], |row| {
        Ok(EventTotal {
            pipeline: rows::parsed(row, 0)?,
            event: rows::parsed(row, 1)?,
            reason: rows::parsed_opt(row, 2)?,
            count: row.get(3)?,
        })
    })?;
    Ok(rows.collect::<RowResult<_>>()?)
}

fn fold(batch: &mut Batch<'_>, params: &FoldCounts) -> Result<bool, Fault> {
    let FoldCounts { before, limit, led } = params;
    leader::check(batch, led.as_ref())?;
    let mut select = batch.statement(
        "SELECT m.pipeline, m.minute, m.event, m.reason, m.count
         FROM pipeline p CROSS JOIN minutely m ON m.pipeline = p.id AND m.minute < ?1",
    )?;
    let rows = select.query_map([before.hour() * 60], |row| {
        let (event, reason): (String, String) = (row.get(2)?, row.get(3)?);
        Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?, event, reason, row.get::<_, i64>(4)?))
    })?;
    let old = rows.take(*limit as usize).collect::<RowResult<Vec<_>>>()?;
    for (pipeline, minute, event, reason, count) in &old {
        batch
            .statement(
                "INSERT INTO hourly_count (pipeline, hour, event, reason, count) VALUES (?1, ?2, ?3, ?4, ?5)
                 ON CONFLICT DO UPDATE SET count = count + excluded.count",
            )?
            .execute(params![pipeline, minute.div_euclid(60), event, reason, count])?;
        batch
            .statement("DELETE FROM minutely WHERE pipeline = ?1 AND minute = ?2 AND event = ?3 AND reason = ?4")?
            .execute(params![pipeline, minute, event, reason])?;
    }
    Ok(old.len() == *limit as usize)
}
