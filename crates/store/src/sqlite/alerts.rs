//! Alerts, their notices and the sinks. Nothing here is on the way of a job.

use std::collections::BTreeMap;

use async_trait::async_trait;
use redrive_core::alerts::{AlertCare, Notice};
use redrive_core::ids::PipelineName;
use redrive_core::time::Timestamp;
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::SqliteStore;
use super::activity;
use super::batch::Batch;
use super::fault::Fault;
use super::ledger::free_bytes;
use super::rows::{self, RowResult};
use crate::contract::{
    AlertChange, AlertStore, AlertView, CareForAlert, ExpiringLetters, ForgetAlerts, PostNotices, SettleNotice,
    SinkView, TakeNotice, TakenNotice, Told, Topic, Watch, Watched,
};
use crate::error::Result;

#[async_trait]
impl AlertStore for SqliteStore {
    async fn list_alerts(&self) -> Result<Vec<AlertView>> {
        self.read(list).await
    }

    async fn change_alerts(&self, changes: Vec<AlertChange>) -> Result<Vec<bool>> {
        self.write_about(Topic::Alerts, move |batch| changes.iter().map(|change| change_one(batch, change)).collect())
            .await
    }

    async fn care_for_alert(&self, params: CareForAlert) -> Result<bool> {
        self.write_about(Topic::Alerts, move |batch| care_for(batch, &params)).await
    }

    async fn post_notices(&self, params: PostNotices) -> Result<u64> {
        self.write_about(Topic::Alerts, move |batch| {
            let mut posted = 0;
            for (sink, notice) in &params.notices {
                posted += post(batch, sink, notice, params.now)?;
            }
            Ok(posted)
        })
        .await
    }

    async fn take_notice(&self, params: TakeNotice) -> Result<Option<TakenNotice>> {
        self.write(move |batch| take(batch, &params)).await
    }

    async fn settle_notice(&self, params: SettleNotice) -> Result<bool> {
        self.write_about(Topic::Alerts, move |batch| settle(batch, &params)).await
    }

    async fn list_sinks(&self) -> Result<Vec<SinkView>> {
        self.read(sinks).await
    }

    async fn watch(&self, params: Watch) -> Result<Watched> {
        let free_bytes = self.location.file().and_then(free_bytes);
        let watched = self.read(move |conn| watch(conn, &params)).await?;
        Ok(Watched { free_bytes, ..watched })
    }

    async fn forget_alerts(&self, params: ForgetAlerts) -> Result<bool> {
        self.write(move |batch| forget(batch, params)).await
    }
}

fn list(conn: &Connection) -> Result<Vec<AlertView>, Fault> {
    // Of a sink's notices, the columns are those of the one with the highest number.
    let mut select = conn.prepare_cached(
        "SELECT a.version, a.alert, n.sink, max(n.number), n.posted_at, n.tries, n.ended_at, n.error, c.version, c.care
         FROM alert a LEFT JOIN alert_care c ON c.key = a.key
         LEFT JOIN alert_notice n ON n.key = a.key AND n.incident = a.incident
         GROUP BY a.key, n.sink ORDER BY a.over_at IS NOT NULL, a.incident DESC, a.key, n.sink",
    )?;
    let rows = select.query_map([], |row| rows::alert_told(row))?;
    Ok(rows::alerts_told(rows.collect::<RowResult<Vec<_>>>()?))
}

fn change_one(batch: &Batch<'_>, AlertChange { was, alert, care }: &AlertChange) -> Result<bool, Fault> {
    let (key, incident) = (alert.key.as_str(), alert.since.as_millis());
    let (over_at, text) = (alert.over_at.map(Timestamp::as_millis), serde_json::to_string(alert)?);
    let changed = match was {
        Some(was) => batch
            .statement(
                "UPDATE alert SET version = version + 1, incident = ?3, over_at = ?4, alert = ?5
                 WHERE key = ?1 AND version = ?2
                   AND (?6 IS NULL OR EXISTS (SELECT 1 FROM alert_care c WHERE c.key = ?1 AND c.version = ?6))",
            )?
            .execute(params![key, was, incident, over_at, text, care.as_ref().map(|(was, _)| was)])?,
        None => batch
            .statement(
                "INSERT OR IGNORE INTO alert (key, version, incident, over_at, alert) VALUES (?1, 1, ?2, ?3, ?4)",
            )?
            .execute(params![key, incident, over_at, text])?,
    };
    if let (1, Some((was, care))) = (changed, care) {
        set_care(batch, key, *was, care)?;
    }
    Ok(changed == 1)
}

/// Writes what is said about an alert, if it is still of a version.
fn set_care(batch: &Batch<'_>, key: &str, was: u64, care: &AlertCare) -> Result<bool, Fault> {
    let until = care.snoozed.as_ref().map(|snoozed| snoozed.until.as_millis());
    let text = serde_json::to_string(care)?;
    let written = match was {
        0 => batch
            .statement("INSERT OR IGNORE INTO alert_care (key, version, snoozed_until, care) VALUES (?1, 1, ?2, ?3)")?
            .execute(params![key, until, text])?,
        _ => batch
            .statement(
                "UPDATE alert_care SET version = version + 1, snoozed_until = ?2, care = ?3 WHERE key = ?1 AND version = ?4",
            )?
            .execute(params![key, until, text, was])?,
    };
    Ok(written == 1)
}

fn care_for(batch: &Batch<'_>, params: &CareForAlert) -> Result<bool, Fault> {
    if !set_care(batch, params.key.as_str(), params.was, &params.care)? {
        return Ok(false);
    }
    let what = (params.change.verb(), params.object());
    activity::note(batch, &params.by, (what.0, &what.1), &params.detail(), params.now)?;
    Ok(true)
}

fn post(batch: &Batch<'_>, sink: &str, notice: &Notice, now: Timestamp) -> Result<u64, Fault> {
    let (key, incident, text) = (notice.key.as_str(), notice.since.as_millis(), serde_json::to_string(notice)?);
    let posted = batch
        .statement(
            "INSERT OR IGNORE INTO alert_notice (key, incident, sink, number, notice, posted_at)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        )?
        .execute(params![key, incident, sink, notice.number, text, now.as_millis()])?;
    Ok(posted as u64)
}

fn take(batch: &Batch<'_>, params: &TakeNotice) -> Result<Option<TakenNotice>, Fault> {
    let [now, until, believed] = [params.now, params.until, params.believed_until].map(Timestamp::as_millis);
    let mut select = batch.statement("SELECT failures, next_try FROM alert_sink WHERE name = ?1")?;
    let fares = select.query_row([&params.sink], |row| Ok((row.get::<_, u32>(0)?, row.get::<_, Option<i64>>(1)?)));
    let (failures, next_try) = fares.optional()?.unwrap_or_default();
    if next_try.is_some_and(|next_try| now < next_try && next_try <= believed) {
        return Ok(None);
    }
    let mut update = batch.statement(
        "UPDATE alert_notice SET tries = tries + 1, taken_until = ?4 WHERE id =
            (SELECT n.id FROM alert_notice n
             WHERE n.sink = ?1 AND n.ended_at IS NULL AND (n.taken_until <= ?2 OR n.taken_until > ?3)
               AND NOT EXISTS (SELECT 1 FROM alert_notice e INDEXED BY alert_notice_order
                               WHERE e.sink = ?1 AND e.ended_at IS NULL AND e.key = n.key AND e.id < n.id
                                 AND (e.notice ->> 'kind' = 'over' OR (e.taken_until > ?2 AND e.taken_until <= ?3)
                                      OR NOT EXISTS (SELECT 1 FROM alert_care c WHERE c.key = e.key AND c.snoozed_until > ?2)))
               AND (n.notice ->> 'kind' = 'over'
                    OR NOT EXISTS (SELECT 1 FROM alert_care c WHERE c.key = n.key AND c.snoozed_until > ?2))
             ORDER BY n.tries, n.id LIMIT 1)
         RETURNING id, notice, posted_at, tries",
    )?;
    let taken = update.query_row(params![params.sink, now, believed, until], |row| {
        let (id, tries) = (row.get(0)?, row.get(3)?);
        Ok(TakenNotice { id, notice: rows::json(row, 1)?, posted_at: rows::time(row, 2)?, tries, failures })
    });
    Ok(taken.optional()?)
}

fn settle(batch: &Batch<'_>, SettleNotice { id, tries, outcome, now }: &SettleNotice) -> Result<bool, Fault> {
    let now = now.as_millis();
    let ended_at = match outcome {
        Told::Yes | Told::No { give_up: true, .. } => Some(now),
        Told::No { .. } => None,
    };
    let mut update = batch.statement(
        "UPDATE alert_notice SET ended_at = ?3, taken_until = 0, error = ?4
         WHERE id = ?1 AND tries = ?2 AND ended_at IS NULL RETURNING sink, key",
    )?;
    let written = params![id, tries, ended_at, outcome.error()];
    let settled =
        update.query_row(written, |row| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?))).optional()?;
    let Some((sink, key)) = settled else { return Ok(false) };
    if ended_at.is_some() {
        // What was snoozed before it is not told after it.
        batch
            .statement(
                "UPDATE alert_notice SET ended_at = ?4 WHERE sink = ?1 AND key = ?2 AND id < ?3 AND ended_at IS NULL",
            )?
            .execute(params![sink, key, id, now])?;
    }
    match outcome {
        Told::Yes => batch
            .statement(
                "INSERT INTO alert_sink (name, told_at, seen_at) VALUES (?1, ?2, ?2)
                 ON CONFLICT DO UPDATE SET told_at = ?2, seen_at = ?2, failing_since = NULL, failures = 0, error = NULL,
                     next_try = NULL",
            )?
            .execute(params![sink, now])?,
        Told::No { error, next_try, give_up } => batch
            .statement(
                "INSERT INTO alert_sink (name, failing_since, failures, error, next_try, given_up, seen_at)
                 VALUES (?1, ?2, 1, ?3, ?4, ?5, ?2)
                 ON CONFLICT DO UPDATE SET failing_since = ifnull(failing_since, ?2), failures = failures + 1, error = ?3,
                     next_try = ?4, given_up = given_up + ?5, seen_at = ?2",
            )?
            .execute(params![sink, now, error, next_try.as_millis(), give_up])?,
    };
    Ok(true)
}

fn sinks(conn: &Connection) -> Result<Vec<SinkView>, Fault> {
    let mut select = conn.prepare_cached(
        "SELECT names.name, (SELECT count(*) FROM alert_notice n WHERE n.sink = names.name AND n.ended_at IS NULL),
                s.told_at, s.failing_since, ifnull(s.failures, 0), s.error, s.next_try, ifnull(s.given_up, 0)
         FROM (SELECT name FROM alert_sink UNION SELECT sink FROM alert_notice WHERE ended_at IS NULL) names
         LEFT JOIN alert_sink s ON s.name = names.name ORDER BY names.name",
    )?;
    let rows = select.query_map([], |row: &Row<'_>| {
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
    })?;
    Ok(rows.collect::<RowResult<_>>()?)
}

fn watch(conn: &Connection, params: &Watch) -> Result<Watched, Fault> {
    // The queue of a pipeline has its number.
    let mut select = conn.prepare_cached(
        "SELECT name, due FROM
            (SELECT p.name, (SELECT min(due_at) FROM place q WHERE q.lane = p.id) AS due
             FROM pipeline p WHERE p.queued > 0)
         WHERE due <= ?1",
    )?;
    let due = select.query_map([params.now.as_millis()], |row| {
        Ok((rows::parsed::<PipelineName, _>(row, 0)?, rows::time(row, 1)?))
    })?;
    let due_since = due.collect::<RowResult<_>>()?;
    let mut expiring = BTreeMap::new();
    for (pipeline, before) in &params.expiring {
        let letters = expiring_of(conn, pipeline, *before, params.limit)?;
        expiring.extend(letters.map(|letters| (pipeline.clone(), letters)));
    }
    let mut select = conn.prepare_cached("SELECT DISTINCT pipeline FROM definition")?;
    let defined = select.query_map([], |row| rows::parsed(row, 0))?.collect::<RowResult<_>>()?;
    Ok(Watched { free_bytes: None, due_since, expiring, defined })
}

/// The letters of a pipeline that are too old soon, as far as their causes are not resolved, or came back: causes are gone through,
/// not letters, of which there may be any number in causes that are resolved. Who died before a time may have been imported after
/// it, but nobody was kept since before he died.
fn expiring_of(
    conn: &Connection,
    pipeline: &PipelineName,
    before: Timestamp,
    limit: u32,
) -> Result<Option<ExpiringLetters>, Fault> {
    // Mostly none is that old, of whatever cause.
    let any = "SELECT 1 FROM dead WHERE pipeline = (SELECT id FROM pipeline WHERE name = ?1) AND kept_from < ?2";
    if !conn.prepare_cached(any)?.exists(params![pipeline.as_str(), before.as_millis()])? {
        return Ok(None);
    }
    let open = "cause c CROSS JOIN cause_key k ON k.cause = c.id
                WHERE c.pipeline = (SELECT id FROM pipeline WHERE name = ?1) AND k.dead > 0
                  AND (c.resolved_at IS NULL OR k.last_seen > c.resolved_at)";
    let mut select = conn.prepare_cached(&format!(
        "SELECT min(oldest), sum(letters) FROM
            (SELECT min(kept_from) AS oldest, count(*) AS letters FROM
                (SELECT d.kept_from FROM (SELECT k.id FROM {open}) open CROSS JOIN dead d INDEXED BY dead_by_cause
                 ON d.cause_key = open.id AND d.died_at < ?2 AND d.kept_from < ?2 LIMIT ?3)
             UNION ALL SELECT min(first), 0 FROM
                (SELECT (SELECT kept_from FROM dead INDEXED BY dead_by_cause
                         WHERE cause_key = k.id AND died_at < ?2 AND kept_from < ?2 ORDER BY died_at LIMIT 1) AS first
                 FROM {open}))"
    ))?;
    let (oldest, letters): (Option<i64>, u64) = select
        .query_row(params![pipeline.as_str(), before.as_millis(), limit], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let more = letters == u64::from(limit);
    Ok(oldest.map(|oldest| ExpiringLetters { letters, more, oldest: Timestamp::from_millis(oldest) }))
}

fn forget(batch: &Batch<'_>, ForgetAlerts { before, limit }: ForgetAlerts) -> Result<bool, Fault> {
    let statements = [
        "DELETE FROM alert WHERE key IN (SELECT key FROM alert WHERE over_at < ?1 LIMIT ?2)",
        "DELETE FROM alert_care WHERE key IN
            (SELECT c.key FROM alert_care c WHERE ifnull(c.snoozed_until, 0) < ?1 AND NOT EXISTS
                (SELECT 1 FROM alert a WHERE a.key = c.key) LIMIT ?2)",
        // Of an alert that is kept, what was told of its present incident is, too: it would be told again otherwise.
        "DELETE FROM alert_notice WHERE id IN
            (SELECT n.id FROM alert_notice n WHERE n.posted_at < ?1 AND NOT EXISTS
                (SELECT 1 FROM alert a WHERE a.key = n.key AND a.incident = n.incident) LIMIT ?2)",
        "DELETE FROM alert_sink WHERE name IN
            (SELECT s.name FROM alert_sink s WHERE s.seen_at < ?1 AND NOT EXISTS
                (SELECT 1 FROM alert_notice n WHERE n.sink = s.name AND n.ended_at IS NULL) LIMIT ?2)",
    ];
    let mut most = 0;
    for sql in statements {
        most = most.max(batch.statement(sql)?.execute(params![before.as_millis(), limit])?);
    }
    Ok(most == limit as usize)
}
