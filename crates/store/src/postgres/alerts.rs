//! Alerts, their notices and the sinks. Nothing here is on the way of a job.

use std::collections::BTreeMap;

use async_trait::async_trait;
use redrive_core::alerts::{AlertCare, Notice};
use redrive_core::ids::PipelineName;
use redrive_core::time::Timestamp;

use super::batch::Batch;
use super::fault::Fault;
use super::sql::{Conn, Row, args};
use super::{PostgresStore, activity, rows, run};
use crate::contract::{
    AlertChange, AlertStore, AlertView, CareForAlert, ExpiringLetters, ForgetAlerts, PostNotices, SettleNotice,
    SinkView, TakeNotice, TakenNotice, Told, Topic, Watch, Watched,
};
use crate::error::Result;

#[async_trait]
impl AlertStore for PostgresStore {
    async fn list_alerts(&self) -> Result<Vec<AlertView>> {
        self.read((), run!(list)).await
    }

    async fn change_alerts(&self, changes: Vec<AlertChange>) -> Result<Vec<bool>> {
        self.write_about(Topic::Alerts, changes, run!(change)).await
    }

    async fn care_for_alert(&self, params: CareForAlert) -> Result<bool> {
        self.write_about(Topic::Alerts, params, run!(care_for)).await
    }

    async fn post_notices(&self, params: PostNotices) -> Result<u64> {
        self.write_about(Topic::Alerts, params, run!(post_all)).await
    }

    async fn take_notice(&self, params: TakeNotice) -> Result<Option<TakenNotice>> {
        self.write(params, run!(take)).await
    }

    async fn settle_notice(&self, params: SettleNotice) -> Result<bool> {
        self.write_about(Topic::Alerts, params, run!(settle)).await
    }

    async fn list_sinks(&self) -> Result<Vec<SinkView>> {
        self.read((), run!(sinks)).await
    }

    async fn watch(&self, params: Watch) -> Result<Watched> {
        self.read(params, run!(watch)).await
    }

    async fn forget_alerts(&self, params: ForgetAlerts) -> Result<bool> {
        self.write(params, run!(forget)).await
    }
}

async fn list(conn: &Conn, (): &()) -> Result<Vec<AlertView>, Fault> {
    let sql = "SELECT DISTINCT ON (a.over_at IS NOT NULL, a.incident, a.key, n.sink)
                      a.version, a.alert, n.sink, n.number, n.posted_at, n.tries, n.ended_at, n.error, c.version, c.care
               FROM alert a LEFT JOIN alert_care c ON c.key = a.key
               LEFT JOIN alert_notice n ON n.key = a.key AND n.incident = a.incident
               ORDER BY a.over_at IS NOT NULL, a.incident DESC, a.key, n.sink, n.number DESC";
    Ok(rows::alerts_told(conn.query(sql, args![], |row| rows::alert_told(row)).await?))
}

async fn change(batch: &mut Batch, changes: &[AlertChange]) -> Result<Vec<bool>, Fault> {
    let mut changed = Vec::with_capacity(changes.len());
    for AlertChange { was, alert, care } in changes {
        let (key, text) = (alert.key.as_str(), serde_json::to_string(alert)?);
        let rows = match was {
            Some(was) => {
                let sql = "UPDATE alert SET version = version + 1, incident = $3, over_at = $4, alert = $5
                           WHERE key = $1 AND version = $2
                             AND ($6::bigint IS NULL OR EXISTS
                                  (SELECT 1 FROM alert_care c WHERE c.key = $1 AND c.version = $6))";
                let judged_on = care.as_ref().map(|(was, _)| *was);
                batch.conn().execute(sql, args![key, was, alert.since, alert.over_at, text, judged_on]).await?
            }
            None => {
                let sql = "INSERT INTO alert (key, version, incident, over_at, alert) VALUES ($1, 1, $2, $3, $4)
                           ON CONFLICT DO NOTHING";
                batch.conn().execute(sql, args![key, alert.since, alert.over_at, text]).await?
            }
        };
        if let (1, Some((was, care))) = (rows, care) {
            set_care(batch, key, *was, care).await?;
        }
        changed.push(rows == 1);
    }
    Ok(changed)
}

/// Writes what is said about an alert, if it is still of a version.
async fn set_care(batch: &Batch, key: &str, was: u64, care: &AlertCare) -> Result<bool, Fault> {
    let until = care.snoozed.as_ref().map(|snoozed| snoozed.until);
    let text = serde_json::to_string(care)?;
    let written = if was == 0 {
        let sql =
            "INSERT INTO alert_care (key, version, snoozed_until, care) VALUES ($1, 1, $2, $3) ON CONFLICT DO NOTHING";
        batch.conn().execute(sql, args![key, until, text]).await?
    } else {
        let sql = "UPDATE alert_care SET version = version + 1, snoozed_until = $2, care = $3 WHERE key = $1 AND version = $4";
        batch.conn().execute(sql, args![key, until, text, was]).await?
    };
    Ok(written == 1)
}

async fn care_for(batch: &mut Batch, params: &CareForAlert) -> Result<bool, Fault> {
    if !set_care(batch, params.key.as_str(), params.was, &params.care).await? {
        return Ok(false);
    }
    let what = (params.change.verb(), params.object());
    activity::note(batch, &params.by, (what.0, &what.1), &params.detail(), params.now).await?;
    Ok(true)
}

async fn post_all(batch: &mut Batch, params: &PostNotices) -> Result<u64, Fault> {
    let mut posted = 0;
    for (sink, notice) in &params.notices {
        posted += post(batch, sink, notice, params.now).await?;
    }
    Ok(posted)
}

async fn post(batch: &Batch, sink: &str, notice: &Notice, now: Timestamp) -> Result<u64, Fault> {
    let sql =
        "INSERT INTO alert_notice (key, incident, sink, number, notice, posted_at) VALUES ($1, $2, $3, $4, $5, $6)
               ON CONFLICT DO NOTHING";
    let text = serde_json::to_string(notice)?;
    batch.conn().execute(sql, args![notice.key.as_str(), notice.since, sink, notice.number, text, now]).await
}

async fn take(batch: &mut Batch, params: &TakeNotice) -> Result<Option<TakenNotice>, Fault> {
    let sql = "SELECT failures, next_try FROM alert_sink WHERE name = $1";
    let fares: Option<(u32, Option<Timestamp>)> =
        batch.conn().query_opt(sql, args![params.sink], |row| Ok((row.get(0)?, rows::time_opt(row, 1)?))).await?;
    let (failures, next_try) = fares.unwrap_or_default();
    if next_try.is_some_and(|next_try| params.now < next_try && next_try <= params.believed_until) {
        return Ok(None);
    }
    let sql = "UPDATE alert_notice SET tries = tries + 1, taken_until = $4 WHERE id =
                  (SELECT n.id FROM alert_notice n
                   WHERE n.sink = $1 AND n.ended_at IS NULL AND (n.taken_until <= $2 OR n.taken_until > $3)
                     AND NOT EXISTS (SELECT 1 FROM alert_notice e
                                     WHERE e.sink = $1 AND e.ended_at IS NULL AND e.key = n.key AND e.id < n.id
                                       AND (e.notice::json ->> 'kind' = 'over' OR (e.taken_until > $2 AND e.taken_until <= $3)
                                            OR NOT EXISTS (SELECT 1 FROM alert_care c
                                                           WHERE c.key = e.key AND c.snoozed_until > $2)))
                     AND (n.notice::json ->> 'kind' = 'over'
                          OR NOT EXISTS (SELECT 1 FROM alert_care c WHERE c.key = n.key AND c.snoozed_until > $2))
                   ORDER BY n.tries, n.id LIMIT 1)
               RETURNING id, notice, posted_at, tries";
    let taken = args![params.sink, params.now, params.believed_until, params.until];
    let read = |row: &Row<'_>| {
        let (id, tries) = (row.get(0)?, row.get(3)?);
        Ok(TakenNotice { id, notice: rows::json(row, 1)?, posted_at: rows::time(row, 2)?, tries, failures })
    };
    batch.conn().query_opt(sql, taken, read).await
}

async fn settle(batch: &mut Batch, params: &SettleNotice) -> Result<bool, Fault> {
    let SettleNotice { id, tries, outcome, now } = params;
    let ended_at = match outcome {
        Told::Yes | Told::No { give_up: true, .. } => Some(*now),
        Told::No { .. } => None,
    };
    let sql = "UPDATE alert_notice SET ended_at = $3, taken_until = 0, error = $4
               WHERE id = $1 AND tries = $2 AND ended_at IS NULL RETURNING sink, key";
    let written = args![id, tries, ended_at, outcome.error()];
    let settled: Option<(String, String)> =
        batch.conn().query_opt(sql, written, |row| Ok((row.get(0)?, row.get(1)?))).await?;
    let Some((sink, key)) = settled else { return Ok(false) };
    if ended_at.is_some() {
        // What was snoozed before it is not told after it.
        let sql = "UPDATE alert_notice SET ended_at = $4 WHERE sink = $1 AND key = $2 AND id < $3 AND ended_at IS NULL";
        batch.conn().execute(sql, args![sink, key, id, now]).await?;
    }
    match outcome {
        Told::Yes => {
            let sql = "INSERT INTO alert_sink (name, told_at, seen_at) VALUES ($1, $2, $2)
                       ON CONFLICT (name) DO UPDATE SET told_at = $2, seen_at = $2, failing_since = NULL, failures = 0,
                           error = NULL, next_try = NULL";
            batch.conn().execute(sql, args![sink, now]).await?
        }
        Told::No { error, next_try, give_up } => {
            let sql = "INSERT INTO alert_sink (name, failing_since, failures, error, next_try, given_up, seen_at)
                       VALUES ($1, $2, 1, $3, $4, $5, $2)
                       ON CONFLICT (name) DO UPDATE SET failing_since = coalesce(alert_sink.failing_since, $2),
                           failures = alert_sink.failures + 1, error = $3, next_try = $4,
                           given_up = alert_sink.given_up + $5, seen_at = $2";
            batch.conn().execute(sql, args![sink, now, error, next_try, i64::from(*give_up)]).await?
        }
    };
    Ok(true)
}

async fn sinks(conn: &Conn, (): &()) -> Result<Vec<SinkView>, Fault> {
    let sql =
        "SELECT names.name, (SELECT count(*) FROM alert_notice n WHERE n.sink = names.name AND n.ended_at IS NULL),
                      s.told_at, s.failing_since, coalesce(s.failures, 0), s.error, s.next_try, coalesce(s.given_up, 0)
               FROM (SELECT name FROM alert_sink UNION SELECT sink FROM alert_notice WHERE ended_at IS NULL) names
               LEFT JOIN alert_sink s ON s.name = names.name ORDER BY names.name";
    let views = conn.query(sql, args![], |row| {
        Ok(SinkView {
            name: row.get(0)?,
            waiting: row.get(1)?,
            told_at: rows::time_opt(row, 2)?,
            failing_since: rows::time_opt(row, 3)?,
            failures: row.get(4)?,
            error: row.get(5)?,
            next_try: rows::time_opt(row, 6)?,
            given_up: row.get(7)?,
        })
    });
    views.await
}

async fn watch(conn: &Conn, params: &Watch) -> Result<Watched, Fault> {
    // The queue of a pipeline has its number.
    let sql = "SELECT name, due FROM
                  (SELECT p.name, (SELECT min(due_at) FROM place q WHERE q.lane = p.id) AS due
                   FROM pipeline p WHERE p.queued > 0) q
               WHERE due <= $1";
    let due = conn
        .query(sql, args![params.now], |row| Ok((rows::parsed::<PipelineName, _>(row, 0)?, rows::time(row, 1)?)))
        .await?;
    let mut expiring = BTreeMap::new();
    for (pipeline, before) in &params.expiring {
        let letters = expiring_of(conn, pipeline, *before, params.limit).await?;
        expiring.extend(letters.map(|letters| (pipeline.clone(), letters)));
    }
    // The disk of a server is its own business.
    let defined = conn.query("SELECT DISTINCT pipeline FROM definition", args![], |row| rows::parsed(row, 0)).await?;
    let (due_since, defined) = (due.into_iter().collect(), defined.into_iter().collect());
    Ok(Watched { free_bytes: None, due_since, expiring, defined })
}

/// The letters of a pipeline that are too old soon, as far as their causes are not resolved, or came back: causes are gone through,
/// not letters, of which there may be any number in causes that are resolved.
async fn expiring_of(
    conn: &Conn,
    pipeline: &PipelineName,
    before: Timestamp,
    limit: u32,
) -> Result<Option<ExpiringLetters>, Fault> {
    let sql = "WITH open AS MATERIALIZED (
                   SELECT k.id FROM cause c JOIN cause_key k ON k.cause = c.id
                   WHERE c.pipeline = (SELECT id FROM pipeline WHERE name = $1) AND k.dead > 0
                     AND (c.resolved_at IS NULL OR k.last_seen > c.resolved_at))
               SELECT (SELECT min(oldest) FROM
                          (SELECT (SELECT min(d.kept_from) FROM dead d WHERE d.cause_key = open.id) AS oldest FROM open) o
                       WHERE oldest < $2),
                      (SELECT count(*) FROM (SELECT 1 FROM open JOIN dead d ON d.cause_key = open.id AND d.kept_from < $2
                                             LIMIT $3) l)";
    let of = args![pipeline.as_str(), before, limit];
    let (oldest, letters): (Option<Timestamp>, u64) =
        conn.query_one(sql, of, |row| Ok((rows::time_opt(row, 0)?, row.get(1)?))).await?;
    let more = letters == u64::from(limit);
    Ok(oldest.map(|oldest| ExpiringLetters { letters, more, oldest }))
}

async fn forget(batch: &mut Batch, params: &ForgetAlerts) -> Result<bool, Fault> {
    let ForgetAlerts { before, limit } = params;
    let statements = [
        "DELETE FROM alert WHERE key IN (SELECT key FROM alert WHERE over_at < $1 LIMIT $2)",
        "DELETE FROM alert_care WHERE key IN
            (SELECT c.key FROM alert_care c WHERE coalesce(c.snoozed_until, 0) < $1 AND NOT EXISTS
                (SELECT 1 FROM alert a WHERE a.key = c.key) LIMIT $2)",
        // Of an alert that is kept, what was told of its present incident is, too: it would be told again otherwise.
        "DELETE FROM alert_notice WHERE id IN
            (SELECT n.id FROM alert_notice n WHERE n.posted_at < $1 AND NOT EXISTS
                (SELECT 1 FROM alert a WHERE a.key = n.key AND a.incident = n.incident) LIMIT $2)",
        "DELETE FROM alert_sink WHERE name IN
            (SELECT s.name FROM alert_sink s WHERE s.seen_at < $1 AND NOT EXISTS
                (SELECT 1 FROM alert_notice n WHERE n.sink = s.name AND n.ended_at IS NULL) LIMIT $2)",
    ];
    let mut most = 0;
    for sql in statements {
        most = most.max(batch.conn().execute(sql, args![before, limit]).await?);
    }
    Ok(most == u64::from(*limit))
}
