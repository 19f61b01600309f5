//! What those who died of a cause have in common: counts as they were written, and adding those of a transaction.

use async_trait::async_trait;
use redrive_core::causes::CauseId;
use redrive_core::facets::{FacetCount, OTHERS, VALUES_MAX};

use super::fault::Fault;
use super::sql::{Conn, Row, args};
use super::{PostgresStore, causes, run};
use crate::contract::{DoneIn, FacetStore};
use crate::error::Result;
use crate::tallies::Tallies;

/// At most so many rows are folded by one statement where all are.
const FOLDED_AT_ONCE: u32 = 100_000;

#[async_trait]
impl FacetStore for PostgresStore {
    async fn cause_facets(&self, cause: CauseId) -> Result<Vec<FacetCount>> {
        self.read(cause, run!(of_cause)).await
    }

    async fn done_facets(&self, params: DoneIn) -> Result<Vec<FacetCount>> {
        self.read(params, run!(done_in)).await
    }
}

fn count(row: &Row<'_>) -> Result<FacetCount, Fault> {
    Ok(FacetCount { kind: row.get(0)?, value: row.get(1)?, count: row.get(2)? })
}

async fn of_cause(conn: &Conn, cause: &CauseId) -> Result<Vec<FacetCount>, Fault> {
    let (cause, _) = causes::find(conn, cause).await?;
    let added =
        bounded(OF_CAUSES, "cause_facet_delta WHERE key = ANY(ARRAY(SELECT id FROM cause_key WHERE cause = $1))");
    let sql = format!(
        "SELECT kind, value, sum(count)::bigint FROM
             (SELECT f.kind, f.value, f.count FROM cause_key k JOIN cause_facet f ON f.key = k.id
              WHERE k.cause = $1 AND f.count > 0
              UNION ALL SELECT kind, value, count FROM ({added}) a) f
         GROUP BY 1, 2 ORDER BY 1, 2"
    );
    conn.query(&sql, args![cause], count).await
}

/// A table of counts, and by what besides their values they are kept.
type Kept = (&'static str, &'static str);

const OF_CAUSES: Kept = ("cause_facet", "key, kind");
const OF_DONE: Kept = ("done_facet", "pipeline, hour, kind");

/// Counts that were added, under the values by which they are kept: those that are known, and as many others as there is room for.
fn bounded((table, keys): Kept, added: &str) -> String {
    let of = |alias: &str| keys.split(", ").map(|key| format!("{alias}.{key}")).collect::<Vec<_>>().join(", ");
    let (kept, new) = (of("c"), of("u"));
    format!(
        "SELECT {keys}, CASE WHEN known OR there + place <= {VALUES_MAX} THEN value ELSE '{OTHERS}' END AS value, count FROM
             (SELECT u.*, row_number() OVER (PARTITION BY {keys}, known ORDER BY value) AS place FROM
                 (SELECT u.*, value = '{OTHERS}' OR EXISTS
                             (SELECT 1 FROM {table} c WHERE ({kept}, c.value) = ({new}, u.value)) AS known,
                         (SELECT count(*) FROM {table} c WHERE ({kept}) = ({new}) AND c.value <> '{OTHERS}') AS there
                  FROM (SELECT {keys}, value, sum(count)::bigint AS count FROM {added} GROUP BY {keys}, value) u) u) u"
    )
}

/// Folds at most so many counts that were added into those that are kept; says how many that were.
pub(super) async fn fold(conn: &Conn, limit: u32) -> Result<u64, Fault> {
    fold_into(conn, OF_CAUSES, limit).await
}

/// The same of tasks that are done.
pub(super) async fn fold_done(conn: &Conn, limit: u32) -> Result<u64, Fault> {
    fold_into(conn, OF_DONE, limit).await
}

async fn fold_into(conn: &Conn, (table, keys): Kept, limit: u32) -> Result<u64, Fault> {
    let old = bounded((table, keys), "old");
    let sql = format!(
        "WITH old AS (
             DELETE FROM {table}_delta WHERE ctid = ANY(ARRAY(SELECT ctid FROM {table}_delta LIMIT $1)) RETURNING *),
         folded AS (
             INSERT INTO {table} AS f ({keys}, value, count)
             SELECT {keys}, value, sum(count)::bigint FROM ({old}) o GROUP BY {keys}, value ORDER BY {keys}, value
             ON CONFLICT ({keys}, value) DO UPDATE SET count = f.count + excluded.count)
         SELECT count(*) FROM old"
    );
    conn.query_one(&sql, args![limit], |row| row.get(0)).await
}

/// The same with all of them, for who moves what is counted of a key.
pub(super) async fn fold_all(conn: &Conn) -> Result<(), Fault> {
    while fold(conn, FOLDED_AT_ONCE).await? == u64::from(FOLDED_AT_ONCE) {}
    Ok(())
}

async fn done_in(conn: &Conn, params: &DoneIn) -> Result<Vec<FacetCount>, Fault> {
    let sql = "WITH way AS (SELECT t.target, t.proxy, t.ended FROM pipeline p JOIN traffic_sum t ON t.pipeline = p.id
                            WHERE p.name = $1 AND t.hour = ANY($2) AND t.reason = ''),
               done AS (SELECT 'target' COLLATE \"C\" AS kind, target AS value, sum(ended)::bigint AS count FROM way GROUP BY 2
                        UNION ALL SELECT 'proxy', proxy, sum(ended)::bigint FROM way GROUP BY 2
                        UNION ALL SELECT f.kind, f.value, sum(f.count)::bigint FROM pipeline p
                        JOIN done_facet_sum f ON f.pipeline = p.id WHERE p.name = $1 AND f.hour = ANY($2) GROUP BY 1, 2)
               SELECT kind, value, count FROM done WHERE count > 0 ORDER BY 1, 2";
    conn.query(sql, args![params.pipeline.as_str(), params.hours], count).await
}

/// Adds who was done: nobody waits for it.
pub(super) async fn write_done(tallies: &Tallies, conn: &Conn) -> Result<(), Fault> {
    if tallies.done_facets.is_empty() {
        return Ok(());
    }
    let rows: Vec<_> = tallies.done_facets.iter().collect();
    let pipelines: Vec<i64> = rows.iter().map(|((pipeline, ..), _)| *pipeline).collect();
    let hours: Vec<i64> = rows.iter().map(|((_, hour, ..), _)| *hour).collect();
    let kinds: Vec<&str> = rows.iter().map(|((_, _, kind, _), _)| kind.as_str()).collect();
    let values: Vec<&str> = rows.iter().map(|((.., value), _)| value.as_str()).collect();
    let counts: Vec<i64> = rows.iter().map(|(_, count)| **count).collect();
    let sql = "INSERT INTO done_facet_delta (pipeline, hour, kind, value, count)
               SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::text[], $5::bigint[])";
    conn.send(sql, args![pipelines, hours, kinds, values, counts]).await
}

/// Adds who died: nobody waits for it, and a transaction that stays open does not make each count slower than the one before.
pub(super) async fn write(tallies: &Tallies, conn: &Conn) -> Result<(), Fault> {
    if tallies.key_facets.is_empty() {
        return Ok(());
    }
    let rows: Vec<_> = tallies.key_facets.iter().collect();
    let keys: Vec<i64> = rows.iter().map(|((key, ..), _)| *key).collect();
    let kinds: Vec<&str> = rows.iter().map(|((_, kind, _), _)| kind.as_str()).collect();
    let values: Vec<&str> = rows.iter().map(|((.., value), _)| value.as_str()).collect();
    let counts: Vec<i64> = rows.iter().map(|(_, count)| **count).collect();
    let sql = "INSERT INTO cause_facet_delta (key, kind, value, count)
               SELECT * FROM unnest($1::bigint[], $2::text[], $3::text[], $4::bigint[])";
    conn.send(sql, args![keys, kinds, values, counts]).await
}

/// Moves one that was counted of a key to another, by what its letter says. What was added has been folded.
pub(super) async fn bring(conn: &Conn, (from, into): (i64, i64), facets: &[(&str, String)]) -> Result<(), Fault> {
    for (kind, value) in facets {
        let take = "UPDATE cause_facet SET count = count - 1 WHERE key = $1 AND kind = $2 AND value = $3 AND count > 0";
        if conn.execute(take, args![from, kind, value]).await? == 1 {
            let put = "INSERT INTO cause_facet AS f (key, kind, value, count) VALUES ($1, $2, $3, 1)
                       ON CONFLICT (key, kind, value) DO UPDATE SET count = f.count + 1";
            conn.execute(put, args![into, kind, value]).await?;
        }
    }
    Ok(())
}
