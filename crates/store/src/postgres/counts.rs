//! Events by the minute and by the hour. Both tables are read together, so that folding the one into the other shows nowhere.

use async_trait::async_trait;
use redrive_core::ids::PipelineName;

use super::batch::Batch;
use super::fault::Fault;
use super::rows::is_listed;
use super::sql::{Conn, args};
use super::{PostgresStore, leader, rows, run};
use crate::contract::{CountEvents, CountStore, EventCount, EventTotal, FoldCounts, Span};
use crate::error::Result;

#[async_trait]
impl CountStore for PostgresStore {
    async fn counts(&self, params: CountEvents) -> Result<Vec<EventCount>> {
        self.read(params, run!(counts)).await
    }

    async fn event_totals(&self) -> Result<Vec<EventTotal>> {
        self.read((), run!(totals)).await
    }

    async fn fold_counts(&self, params: FoldCounts) -> Result<bool> {
        self.write(params, run!(fold)).await
    }
}

async fn counts(conn: &Conn, params: &CountEvents) -> Result<Vec<EventCount>, Fault> {
    let sql = match params.by {
        Span::Minute => {
            "SELECT m.minute * 60000, p.name, m.event, nullif(m.reason, ''), m.count
             FROM pipeline p JOIN minutely m ON m.pipeline = p.id AND m.minute >= $1 AND m.minute < $2
             WHERE $3::text IS NULL OR p.name = $3 ORDER BY m.minute, p.name, m.event, m.reason"
        }
        Span::Hour => {
            "SELECT hour * 3600000, name, event, nullif(reason, ''), sum(count)::bigint FROM
                (SELECT h.hour, p.name, h.event, h.reason, h.count
                 FROM pipeline p JOIN hourly_count h ON h.pipeline = p.id AND h.hour >= $1 AND h.hour < $2
                 WHERE $3::text IS NULL OR p.name = $3
                 UNION ALL
                 SELECT m.minute / 60, p.name, m.event, m.reason, m.count
                 FROM pipeline p JOIN minutely m ON m.pipeline = p.id AND m.minute >= $1::bigint * 60 AND m.minute < $2::bigint * 60
                 WHERE $3::text IS NULL OR p.name = $3) c
             GROUP BY hour, name, event, reason ORDER BY hour, name, event, reason"
        }
    };
    let ((first, end), name) = (params.spans(), params.pipeline.as_ref().map(PipelineName::as_str));
    let counts = conn.query(sql, args![first, end, name], |row| {
        Ok(EventCount {
            at: rows::time(row, 0)?,
            pipeline: rows::parsed(row, 1)?,
            event: rows::parsed(row, 2)?,
            reason: rows::parsed_opt(row, 3)?,
            count: row.get(4)?,
        })
    });
    counts.await
}

async fn totals(conn: &Conn, (): &()) -> Result<Vec<EventTotal>, Fault> {
    let sql = format!(
        "SELECT p.name, c.event, nullif(c.reason, ''), sum(c.count)::bigint
               FROM (SELECT pipeline, event, reason, count FROM event_total
                     UNION ALL SELECT pipeline, event, reason, count FROM minutely) c
               JOIN pipeline p ON p.id = c.pipeline WHERE {}
               GROUP BY p.name, c.event, c.reason ORDER BY p.name, c.event, c.reason",
        is_listed()
    );
    conn.query(&sql, args![], |row| {
        Ok(EventTotal {
            pipeline: rows::parsed(row, 0)?,
            event: rows::parsed(row, 1)?,
            reason: rows::parsed_opt(row, 2)?,
            count: row.get(3)?,
        })
    })
    .await
}

async fn fold(batch: &mut Batch, params: &FoldCounts) -> Result<bool, Fault> {
    let FoldCounts { before, limit, led } = params;
    leader::check(batch, led.as_ref()).await?;
    let sql = "WITH old AS (
                   DELETE FROM minutely WHERE (pipeline, minute, event, reason) IN
                       (SELECT m.pipeline, m.minute, m.event, m.reason FROM pipeline p
                        JOIN minutely m ON m.pipeline = p.id AND m.minute < $1 LIMIT $2)
                   RETURNING pipeline, minute, event, reason, count),
               folded AS (
                   INSERT INTO hourly_count (pipeline, hour, event, reason, count)
                   SELECT pipeline, minute / 60, event, reason, sum(count)::bigint FROM old GROUP BY 1, 2, 3, 4
                   ON CONFLICT (pipeline, hour, event, reason) DO UPDATE SET count = hourly_count.count + excluded.count)
               SELECT count(*) FROM old";
    let old: u64 = batch.conn().query_one(sql, args![before.hour() * 60, limit], |row| row.get(0)).await?;
    Ok(old == u64::from(*limit))
}
