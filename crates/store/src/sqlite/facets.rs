//! What those who died of a cause have in common: counts as they were written, and adding those of a transaction.

use async_trait::async_trait;
use redrive_core::causes::CauseId;
use redrive_core::facets::{FacetCount, OTHERS, VALUES_MAX};
use rusqlite::{Connection, Row, params};

use super::SqliteStore;
use super::batch::Batch;
use super::causes;
use super::fault::Fault;
use super::rows::RowResult;
use crate::contract::{DoneIn, FacetStore};
use crate::error::Result;
use crate::tallies::Tallies;

#[async_trait]
impl FacetStore for SqliteStore {
    async fn cause_facets(&self, cause: CauseId) -> Result<Vec<FacetCount>> {
        self.read(move |conn| {
            let (cause, _) = causes::find(conn, &cause)?;
            let mut select = conn.prepare_cached(
                "SELECT f.kind, f.value, sum(f.count) FROM cause_key k JOIN cause_facet f ON f.key = k.id
                 WHERE k.cause = ?1 AND f.count > 0 GROUP BY 1, 2 ORDER BY 1, 2",
            )?;
            Ok(select.query_map([cause], count)?.collect::<RowResult<_>>()?)
        })
        .await
    }

    async fn done_facets(&self, params: DoneIn) -> Result<Vec<FacetCount>> {
        self.read(move |conn| done_in(conn, &params)).await
    }
}

fn count(row: &Row<'_>) -> RowResult<FacetCount> {
    Ok(FacetCount { kind: row.get(0)?, value: row.get(1)?, count: row.get(2)? })
}

fn done_in(conn: &Connection, params: &DoneIn) -> Result<Vec<FacetCount>, Fault> {
    let mut select = conn.prepare_cached(
        "WITH way AS (SELECT t.target, t.proxy, t.ended FROM pipeline p CROSS JOIN json_each(?2) h
                      CROSS JOIN traffic t ON t.pipeline = p.id AND t.hour = h.value AND t.reason = '' WHERE p.name = ?1)
         SELECT 'target', target, sum(ended) FROM way WHERE ended > 0 GROUP BY 2
         UNION ALL SELECT 'proxy', proxy, sum(ended) FROM way WHERE ended > 0 GROUP BY 2
         UNION ALL SELECT f.kind, f.value, sum(f.count) FROM pipeline p CROSS JOIN json_each(?2) h
         CROSS JOIN done_facet f ON f.pipeline = p.id AND f.hour = h.value WHERE p.name = ?1 GROUP BY 1, 2
         ORDER BY 1, 2",
    )?;
    let hours = serde_json::to_string(&params.hours)?;
    Ok(select.query_map(params![params.pipeline.as_str(), hours], count)?.collect::<RowResult<_>>()?)
}

/// Adds what a transaction counted.
pub(super) fn write(tallies: &Tallies, conn: &Connection) -> Result<(), Fault> {
    for ((key, kind, value), count) in &tallies.key_facets {
        let mut upsert = conn.prepare_cached(
            "INSERT INTO cause_facet (key, kind, value, count)
             SELECT ?1, ?2, iif(EXISTS (SELECT 1 FROM cause_facet WHERE key = ?1 AND kind = ?2 AND value = ?3)
                                OR (SELECT count(*) FROM cause_facet WHERE key = ?1 AND kind = ?2 AND value <> ?5) < ?6, ?3, ?5), ?4
             WHERE true ON CONFLICT DO UPDATE SET count = count + excluded.count",
        )?;
        upsert.execute(params![key, kind, value, count, OTHERS, VALUES_MAX])?;
    }
    for ((pipeline, hour, kind, value), count) in &tallies.done_facets {
        let mut upsert = conn.prepare_cached(
            "INSERT INTO done_facet (pipeline, hour, kind, value, count)
             SELECT ?1, ?2, ?3, iif(EXISTS (SELECT 1 FROM done_facet WHERE pipeline = ?1 AND hour = ?2 AND kind = ?3 AND value = ?4)
                                    OR (SELECT count(*) FROM done_facet
                                        WHERE pipeline = ?1 AND hour = ?2 AND kind = ?3 AND value <> ?6) < ?7, ?4, ?6), ?5
             WHERE true ON CONFLICT DO UPDATE SET count = count + excluded.count",
        )?;
        upsert.execute(params![pipeline, hour, kind, value, count, OTHERS, VALUES_MAX])?;
    }
    Ok(())
}

/// Moves one that was counted of a key to another, by what its letter says.
pub(super) fn bring(batch: &Batch<'_>, (from, into): (i64, i64), facets: &[(&str, String)]) -> Result<(), Fault> {
    for (kind, value) in facets {
        let mut take = batch.statement(
            "UPDATE cause_facet SET count = count - 1 WHERE key = ?1 AND kind = ?2 AND value = ?3 AND count > 0",
        )?;
        if take.execute(params![from, kind, value])? == 1 {
            batch
                .statement(
                    "INSERT INTO cause_facet (key, kind, value, count) VALUES (?1, ?2, ?3, 1)
                     ON CONFLICT DO UPDATE SET count = count + 1",
                )?
                .execute(params![into, kind, value])?;
        }
    }
    Ok(())
}
