//! Counts for analysis: most are read as they were written; dead letters are counted through an index where there is one.

use async_trait::async_trait;
use redrive_core::failures::Reason;
use redrive_core::ids::PipelineName;
use redrive_core::time::Timestamp;

use super::conditions::Conditions;
use super::fault::Fault;
use super::sql::{Conn, args};
use super::{PostgresStore, dead, rows, run};
use crate::contract::{
    CountDead, CountTraffic, CoverageCount, DeadBy, DeadCount, DeadFilter, ListTracked, TrackedCount, TrafficBy,
    TrafficCount, TrafficStore,
};
use crate::error::Result;

#[async_trait]
impl TrafficStore for PostgresStore {
    async fn traffic(&self, params: CountTraffic) -> Result<Vec<TrafficCount>> {
        self.read(params, run!(traffic)).await
    }

    async fn count_dead(&self, params: CountDead) -> Result<Vec<DeadCount>> {
        self.read(params, run!(count_dead)).await
    }

    async fn coverage(&self, pipeline: Option<PipelineName>, since: Timestamp) -> Result<Vec<CoverageCount>> {
        self.read((pipeline, since), run!(coverage)).await
    }

    async fn tracked(&self, params: ListTracked) -> Result<Vec<TrackedCount>> {
        self.read(params, run!(tracked)).await
    }

    async fn oldest_dead(&self) -> Result<Vec<(PipelineName, Timestamp)>> {
        self.read((), run!(oldest)).await
    }
}

async fn oldest(conn: &Conn, (): &()) -> Result<Vec<(PipelineName, Timestamp)>, Fault> {
    let sql = "SELECT name, oldest FROM
                  (SELECT p.name, (SELECT min(d.died_at) FROM dead d WHERE d.pipeline = p.id) AS oldest FROM pipeline p) o
               WHERE oldest IS NOT NULL ORDER BY name";
    conn.query(sql, args![], |row| Ok((rows::parsed(row, 0)?, rows::time(row, 1)?))).await
}

async fn coverage(
    conn: &Conn,
    (pipeline, since): &(Option<PipelineName>, Timestamp),
) -> Result<Vec<CoverageCount>, Fault> {
    // From one version of a pipeline to the next, and to the hours of each: what was counted long ago is not looked at.
    let sql = "WITH RECURSIVE known(pipeline, version) AS (
            SELECT p.id, (SELECT min(c.version) FROM coverage c WHERE c.pipeline = p.id) FROM pipeline p
            WHERE $2::text IS NULL OR p.name = $2
            UNION ALL SELECT k.pipeline, (SELECT min(c.version) FROM coverage c
                                          WHERE c.pipeline = k.pipeline AND c.version > k.version)
            FROM known k WHERE k.version IS NOT NULL)
         SELECT p.name, c.version, c.hour * 3600000, c.field, c.found, c.missing
         FROM known k JOIN coverage c ON c.pipeline = k.pipeline AND c.version = k.version
         JOIN pipeline p ON p.id = c.pipeline WHERE c.hour >= $1
         ORDER BY c.pipeline, c.version, c.hour, c.field";
    let counts = conn.query(sql, args![since.hour(), pipeline.as_ref().map(PipelineName::as_str)], |row| {
        Ok(CoverageCount {
            pipeline: rows::parsed(row, 0)?,
            version: row.get(1)?,
            hour: rows::time(row, 2)?,
            field: row.get(3)?,
            found: row.get(4)?,
            missing: row.get(5)?,
        })
    });
    counts.await
}

async fn traffic(conn: &Conn, params: &CountTraffic) -> Result<Vec<TrafficCount>, Fault> {
    let value = match params.by {
        TrafficBy::Target => "t.target",
        TrafficBy::Proxy => "t.proxy",
        TrafficBy::Hour => "lpad((t.hour % 24)::text, 2, '0')",
    };
    let mut conditions = Conditions::default();
    conditions.at_least("t.hour", Some(params.since.hour()));
    conditions.equal("p.name", params.pipeline.as_ref().map(PipelineName::as_str));
    let sql = format!(
        "SELECT value, nullif(reason, ''), sum(count)::bigint, sum(ended)::bigint FROM
            (SELECT {value} AS value, t.reason, t.count, t.ended
             FROM pipeline p JOIN traffic_sum t ON t.pipeline = p.id {conditions}) t
         WHERE value <> '' GROUP BY value, reason ORDER BY value, reason"
    );
    let counts = conn.query(&sql, conditions.values(), |row| {
        Ok(TrafficCount {
            value: row.get(0)?,
            reason: rows::parsed_opt(row, 1)?,
            count: row.get(2)?,
            ended: row.get(3)?,
        })
    });
    counts.await
}

async fn tracked(conn: &Conn, params: &ListTracked) -> Result<Vec<TrackedCount>, Fault> {
    let mut conditions = Conditions::default();
    conditions.equal("p.name", params.pipeline.as_ref().map(PipelineName::as_str));
    conditions.equal("t.field", Some(params.field.as_str()));
    let sql = format!(
        "SELECT p.name, t.value, t.ok, t.failed FROM tracked t JOIN pipeline p ON p.id = t.pipeline {conditions}
         ORDER BY t.failed DESC, t.value LIMIT {}",
        params.limit
    );
    let counts = conn.query(&sql, conditions.values(), |row| {
        Ok(TrackedCount { pipeline: rows::parsed(row, 0)?, value: row.get(1)?, ok: row.get(2)?, failed: row.get(3)? })
    });
    counts.await
}

async fn count_dead(conn: &Conn, params: &CountDead) -> Result<Vec<DeadCount>, Fault> {
    if let Some(counts) = count_by_causes(conn, params).await? {
        return Ok(counts);
    }
    if let Some(counts) = count_kept(conn, params).await? {
        return Ok(counts);
    }
    let conditions = dead::conditions(conn, &params.filter).await?;
    let (value, reason) = match &params.by {
        DeadBy::Pipeline => ("d.pipeline", "NULL::text"),
        DeadBy::Reason => ("d.reason", "NULL::text"),
        DeadBy::Code => ("d.code", "NULL::text"),
        DeadBy::Status => ("d.http_status", "NULL::text"),
        DeadBy::Target => ("d.target", "NULL::text"),
        DeadBy::Proxy => ("d.proxy", "NULL::text"),
        DeadBy::Cause => ("d.cause_key", "NULL::text"),
        DeadBy::Hour => ("(d.died_at / 3600000) % 24", "d.reason"),
        DeadBy::Input(field) => return count_inputs(conn, conditions, field, params.limit).await,
    };
    let named = match &params.by {
        DeadBy::Pipeline => "(SELECT name FROM pipeline WHERE id = v)",
        DeadBy::Cause => "(SELECT c.name FROM cause_key k JOIN cause c ON c.id = k.cause WHERE k.id = v)",
        DeadBy::Hour => "lpad(v::text, 2, '0')",
        _ => "v",
    };
    let sql = format!(
        "SELECT name, r, sum(n)::bigint, (sum(sum(n)) OVER ())::bigint FROM
            (SELECT {named}::text COLLATE \"C\" AS name, r, n FROM
                (SELECT {value} AS v, {reason} AS r, count(*) AS n FROM dead d {conditions} GROUP BY 1, 2) c) named
         GROUP BY 1, 2 ORDER BY 3 DESC, 1 NULLS FIRST, 2 LIMIT {}",
        params.limit
    );
    rows_of(conn, &sql, &conditions).await
}

/// What causes count already need not be counted again: whole pipelines by reason, code or cause.
async fn count_by_causes(conn: &Conn, params: &CountDead) -> Result<Option<Vec<DeadCount>>, Fault> {
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
    conditions.equal("p.name", pipeline.as_ref().map(PipelineName::as_str));
    let sql = format!(
        "SELECT {value}, NULL::text, sum(k.dead)::bigint, (sum(sum(k.dead)) OVER ())::bigint
         FROM cause_key k JOIN cause c ON c.id = k.cause JOIN pipeline p ON p.id = c.pipeline
         {conditions} GROUP BY 1 HAVING sum(k.dead) > 0 ORDER BY 3 DESC, 1 NULLS FIRST LIMIT {}",
        params.limit
    );
    rows_of(conn, &sql, &conditions).await.map(Some)
}

/// What is kept count of with every change need not be counted again: letters by target or by hour, of whole pipelines, reasons and
/// (by hour) whole hours.
async fn count_kept(conn: &Conn, params: &CountDead) -> Result<Option<Vec<DeadCount>>, Fault> {
    let (by, value, reason) = match params.by {
        DeadBy::Target => ("target", "nullif(c.value, '')", "NULL::text"),
        DeadBy::Hour => ("hour", "lpad((c.value::bigint % 24)::text, 2, '0') COLLATE \"C\"", "c.reason"),
        _ => return Ok(None),
    };
    let DeadFilter { pipeline, reason: died_of, since, until, .. } = params.filter.clone();
    let within = [since, until].into_iter().flatten().all(|time| by == "hour" && time.is_hour());
    if !within || params.filter != (DeadFilter { pipeline, reason: died_of, since, until, ..DeadFilter::default() }) {
        return Ok(None);
    }
    let mut conditions = Conditions::default();
    conditions.equal("p.name", params.filter.pipeline.as_ref().map(PipelineName::as_str));
    conditions.equal("c.by", Some(by));
    conditions.equal("c.reason", died_of.map(Reason::as_str));
    // Only hours are numbers.
    let hour = "(CASE c.by WHEN 'hour' THEN c.value END)::bigint";
    conditions.at_least(hour, since.map(Timestamp::hour));
    conditions.less_than(hour, until.map(Timestamp::hour));
    let value = if by == "hour" { value.replace("c.value::bigint", hour) } else { value.to_owned() };
    let sql = format!(
        "SELECT {value}, {reason}, sum(c.count)::bigint, (sum(sum(c.count)) OVER ())::bigint
         FROM pipeline p JOIN dead_sum c ON c.pipeline = p.id {conditions}
         GROUP BY 1, 2 HAVING sum(c.count) > 0 ORDER BY 3 DESC, 1 NULLS FIRST, 2 LIMIT {}",
        params.limit
    );
    rows_of(conn, &sql, &conditions).await.map(Some)
}

/// Counts by a field of the input: by its name, or `a.b` for one inside another.
async fn count_inputs(
    conn: &Conn,
    mut conditions: Conditions,
    field: &str,
    limit: u32,
) -> Result<Vec<DeadCount>, Fault> {
    let path: Vec<&str> = field.split('.').collect();
    let place = conditions.bind(path);
    let sql = format!(
        "SELECT value COLLATE \"C\", NULL::text, count(*), (sum(count(*)) OVER ())::bigint FROM
            (SELECT input_field(d.input, {place}) AS value FROM dead d {conditions}) f
         GROUP BY 1 ORDER BY 3 DESC, 1 NULLS FIRST LIMIT {limit}"
    );
    rows_of(conn, &sql, &conditions).await
}

async fn rows_of(conn: &Conn, sql: &str, conditions: &Conditions) -> Result<Vec<DeadCount>, Fault> {
    let counts = conn.query(sql, conditions.values(), |row| {
        Ok(DeadCount { value: row.get(0)?, reason: rows::parsed_opt(row, 1)?, count: row.get(2)?, of: row.get(3)? })
    });
    counts.await
}
