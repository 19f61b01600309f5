//! Counts for analysis: most are read as they were written; dead letters are counted through an index where there is one.

use async_trait::async_trait;
use redrive_core::ids::PipelineName;
use redrive_core::time::Timestamp;
use rusqlite::{Connection, params};

use super::SqliteStore;
use super::conditions::Conditions;
use super::dead;
use super::fault::Fault;
use super::rows::{self, RowResult};
use crate::contract::{
    CountDead, CountTraffic, CoverageCount, DeadBy, DeadCount, DeadFilter, ListTracked, TrackedCount, TrafficBy,
    TrafficCount, TrafficStore,
};
use crate::error::Result;

/// Goes from one version of a pipeline to the next, and to the hours of each: what was counted long ago is not looked at.
const COVERAGE: &str = "WITH RECURSIVE known(pipeline, version) AS (
        SELECT id, (SELECT min(version) FROM coverage WHERE pipeline = id) FROM pipeline WHERE ?2 IS NULL OR name = ?2
        UNION ALL SELECT pipeline, (SELECT min(c.version) FROM coverage c
                                    WHERE c.pipeline = known.pipeline AND c.version > known.version)
        FROM known WHERE version IS NOT NULL)
     SELECT p.name, c.version, c.hour * 3600000, c.field, c.found, c.missing
     FROM known CROSS JOIN coverage c ON c.pipeline = known.pipeline AND c.version = known.version
     JOIN pipeline p ON p.id = c.pipeline WHERE c.hour >= ?1";

#[async_trait]
impl TrafficStore for SqliteStore {
    async fn traffic(&self, params: CountTraffic) -> Result<Vec<TrafficCount>> {
        self.read(move |conn| traffic(conn, &params)).await
    }

    async fn count_dead(&self, params: CountDead) -> Result<Vec<DeadCount>> {
        self.read(move |conn| count_dead(conn, &params)).await
    }

    async fn coverage(&self, pipeline: Option<PipelineName>, since: Timestamp) -> Result<Vec<CoverageCount>> {
        self.read(move |conn| {
            let mut select = conn.prepare_cached(COVERAGE)?;
            let rows = select.query_map(params![since.hour(), pipeline.as_ref().map(PipelineName::as_str)], |row| {
                Ok(CoverageCount {
                    pipeline: rows::parsed(row, 0)?,
                    version: row.get(1)?,
                    hour: rows::time(row, 2)?,
                    field: row.get(3)?,
                    found: row.get(4)?,
                    missing: row.get(5)?,
                })
            })?;
            Ok(rows.collect::<RowResult<_>>()?)
        })
        .await
    }

    async fn tracked(&self, params: ListTracked) -> Result<Vec<TrackedCount>> {
        self.read(move |conn| tracked(conn, &params)).await
    }

    async fn oldest_dead(&self) -> Result<Vec<(PipelineName, Timestamp)>> {
        self.read(|conn| {
            let mut select = conn.prepare_cached(
                "SELECT p.name, (SELECT min(d.died_at) FROM dead d WHERE d.pipeline = p.id) AS oldest FROM pipeline p
                 WHERE oldest IS NOT NULL",
            )?;
            let rows = select.query_map([], |row| Ok((rows::parsed(row, 0)?, rows::time(row, 1)?)))?;
            Ok(rows.collect::<RowResult<_>>()?)
        })
        .await
    }
}

fn traffic(conn: &Connection, params: &CountTraffic) -> Result<Vec<TrafficCount>, Fault> {
    let value = match params.by {
        TrafficBy::Target => "t.target",
        TrafficBy::Proxy => "t.proxy",
        TrafficBy::Hour => "printf('%02d', t.hour % 24)",
    };
    let mut conditions = Conditions::default();
    conditions.at_least("t.hour", Some(params.since.hour()));
    conditions.equal("p.name", params.pipeline.as_ref().map(|name| name.as_str().to_owned()));
    let sql = format!(
        "SELECT {value} AS value, nullif(t.reason, ''), sum(t.count), sum(t.ended)
         FROM pipeline p CROSS JOIN traffic t ON t.pipeline = p.id {conditions} AND {value} <> ''
         GROUP BY value, t.reason ORDER BY value, t.reason"
    );
    let mut select = conn.prepare_cached(&sql)?;
    let rows = select.query_map(conditions.values(), |row| {
        Ok(TrafficCount {
            value: row.get(0)?,
            reason: rows::parsed_opt(row, 1)?,
            count: row.get(2)?,
            ended: row.get(3)?,
        })
    })?;
    Ok(rows.collect::<RowResult<_>>()?)
}

fn tracked(conn: &Connection, params: &ListTracked) -> Result<Vec<TrackedCount>, Fault> {
    let mut conditions = Conditions::default();
    conditions.equal("p.name", params.pipeline.as_ref().map(|name| name.as_str().to_owned()));
    conditions.equal("t.field", Some(params.field.clone()));
    let sql = format!(
        "SELECT p.name, t.value, t.ok, t.failed FROM tracked t JOIN pipeline p ON p.id = t.pipeline {conditions}
         ORDER BY t.failed DESC, t.value LIMIT {}",
        params.limit
    );
    let mut select = conn.prepare_cached(&sql)?;
    let rows = select.query_map(conditions.values(), |row| {
        Ok(TrackedCount { pipeline: rows::parsed(row, 0)?, value: row.get(1)?, ok: row.get(2)?, failed: row.get(3)? })
    })?;
    Ok(rows.collect::<RowResult<_>>()?)
}

fn count_dead(conn: &Connection, params: &CountDead) -> Result<Vec<DeadCount>, Fault> {
    if let Some(counts) = count_by_causes(conn, params)? {
        return Ok(counts);
    }
    if let Some(counts) = count_kept(conn, params)? {
        return Ok(counts);
    }
    let conditions = dead::conditions(conn, &params.filter)?;
    let (value, reason) = match &params.by {
        DeadBy::Pipeline => ("d.pipeline", "NULL"),
        DeadBy::Reason => ("d.reason", "NULL"),
        DeadBy::Code => ("d.code", "NULL"),
        DeadBy::Status => ("d.http_status", "NULL"),
        DeadBy::Target => ("d.target", "NULL"),
        DeadBy::Proxy => ("d.proxy", "NULL"),
        DeadBy::Cause => ("d.cause_key", "NULL"),
        DeadBy::Hour => ("(d.died_at / 3600000) % 24", "d.reason"),
        DeadBy::Input(field) => return count_inputs(conn, conditions, field, params.limit),
    };
    let named = match &params.by {
        DeadBy::Pipeline => "(SELECT name FROM pipeline WHERE id = v)",
        DeadBy::Cause => "(SELECT c.name FROM cause_key k JOIN cause c ON c.id = k.cause WHERE k.id = v)",
        DeadBy::Hour => "printf('%02d', v)",
        _ => "v",
    };
    let group = if reason == "NULL" { "1" } else { "1, 2" };
    let sql = format!(
        "SELECT CAST({named} AS TEXT), r, sum(n), sum(sum(n)) OVER () FROM
            (SELECT {value} AS v, {reason} AS r, count(*) AS n FROM dead d {conditions} GROUP BY {group})
         GROUP BY 1, 2 ORDER BY 3 DESC, 1, 2 LIMIT {}",
        params.limit
    );
    rows_of(conn, &sql, &conditions)
}

/// What causes count already need not be counted again: whole pipelines by reason, code or cause.
fn count_by_causes(conn: &Connection, params: &CountDead) -> Result<Option<Vec<DeadCount>>, Fault> {
    let value = match params.by {
        DeadBy::Pipeline => "p.name",
        DeadBy::Reason => "k.reason",
        DeadBy::Code => "k.code",
        DeadBy::Cause => "c.name",
        _ => return Ok(None),
    };
    let DeadFilter { pipeline, .. } = &params.filter;
    if params.filter != (DeadFilter { pipeline: pipeline.clone(), ..DeadFilter::default() }) {
        return Ok(None);
    }
    let mut conditions = Conditions::default();
    conditions.equal("p.name", pipeline.as_ref().map(|name| name.as_str().to_owned()));
    let sql = format!(
        "SELECT {value}, NULL, sum(k.dead), sum(sum(k.dead)) OVER () FROM cause_key k JOIN cause c ON c.id = k.cause JOIN pipeline p ON p.id = c.pipeline
         {conditions} GROUP BY 1 HAVING sum(k.dead) > 0 ORDER BY 3 DESC, 1 LIMIT {}",
        params.limit
    );
    rows_of(conn, &sql, &conditions).map(Some)
}

/// What is kept count of with every change need not be counted again: letters by target or by hour, of whole pipelines, reasons and
/// (by hour) whole hours.
fn count_kept(conn: &Connection, params: &CountDead) -> Result<Option<Vec<DeadCount>>, Fault> {
    let (by, value, reason) = match params.by {
        DeadBy::Target => ("target", "nullif(c.value, '')", "NULL"),
        DeadBy::Hour => ("hour", "printf('%02d', CAST(c.value AS INTEGER) % 24)", "c.reason"),
        _ => return Ok(None),
    };
    let DeadFilter { pipeline, reason: died_of, since, until, .. } = params.filter.clone();
    let within = [since, until].into_iter().flatten().all(|time| by == "hour" && time.is_hour());
    if !within || params.filter != (DeadFilter { pipeline, reason: died_of, since, until, ..DeadFilter::default() }) {
        return Ok(None);
    }
    let mut conditions = Conditions::default();
    conditions.equal("p.name", params.filter.pipeline.as_ref().map(|name| name.as_str().to_owned()));
    conditions.equal("c.by", Some(by.to_owned()));
    conditions.equal("c.reason", died_of.map(|reason| reason.as_str().to_owned()));
    conditions.at_least("CAST(c.value AS INTEGER)", since.map(Timestamp::hour));
    conditions.less_than("CAST(c.value AS INTEGER)", until.map(Timestamp::hour));
    let sql = format!(
        "SELECT {value}, {reason}, sum(c.count), sum(sum(c.count)) OVER ()
         FROM pipeline p CROSS JOIN dead_count c ON c.pipeline = p.id {conditions}
         GROUP BY 1, 2 HAVING sum(c.count) > 0 ORDER BY 3 DESC, 1, 2 LIMIT {}",
        params.limit
    );
    rows_of(conn, &sql, &conditions).map(Some)
}

/// Counts by a field of the input: by its name, or `a.b` for one inside another.
fn count_inputs(
    conn: &Connection,
    mut conditions: Conditions,
    field: &str,
    limit: u32,
) -> Result<Vec<DeadCount>, Fault> {
    let path: String = field.split('.').map(|name| format!(".\"{}\"", name.replace('"', ""))).collect();
    let place = conditions.bind(format!("${path}"));
    let sql = format!(
        "SELECT CAST(d.input ->> {place} AS TEXT), NULL, count(*), sum(count(*)) OVER () FROM dead d {conditions}
         GROUP BY 1 ORDER BY 3 DESC, 1 LIMIT {limit}"
    );
    rows_of(conn, &sql, &conditions)
}

fn rows_of(conn: &Connection, sql: &str, conditions: &Conditions) -> Result<Vec<DeadCount>, Fault> {
    let mut select = conn.prepare_cached(sql)?;
    let rows = select.query_map(conditions.values(), |row| {
        Ok(DeadCount { value: row.get(0)?, reason: rows::parsed_opt(row, 1)?, count: row.get(2)?, of: row.get(3)? })
    })?;
    Ok(rows.collect::<RowResult<_>>()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// It is read every minute, for alerts.
    #[test]
    fn the_latest_coverage_is_found_without_looking_at_all() {
        let mut conn = Connection::open_in_memory().expect("opened");
        super::super::schema::migrate(&mut conn, std::path::Path::new("memory:")).expect("made");
        let mut explain = conn.prepare(&format!("EXPLAIN QUERY PLAN {COVERAGE}")).expect("prepared");
        let steps = explain.query_map(params![0, None::<&str>], |row| row.get::<_, String>(3)).expect("explained");
        let steps: Vec<_> = steps.collect::<RowResult<_>>().expect("read");
        assert!(!steps.iter().any(|step| step.starts_with("SCAN c")), "{steps:?}");
        assert!(steps.iter().any(|step| step.contains("pipeline=? AND version=? AND hour>?")), "{steps:?}");
    }
}
