//! Causes: recognising what a job died of, listing by impact, and what people do to them.

use std::collections::HashSet;

use async_trait::async_trait;
use redrive_core::causes::{ALIKE_MIN, CauseId, CauseRules, Standing, TREND_HOURS, Trend, state};
use redrive_core::fingerprint::similarity;
use redrive_core::ids::PipelineName;
use redrive_core::time::Timestamp;
use rusqlite::{Connection, Row, params};

use super::SqliteStore;
use super::conditions::Conditions;
use super::fault::Fault;
use super::rows::{self, RowResult};
use super::{cause_changes, cause_keys, cause_rules, dead};
use crate::contract::{
    AlikeCause, BusiestCauses, CauseDetail, CauseHour, CauseKey, CauseNote, CauseStore, CauseView, ChangeCause,
    DeadFilter, ListCauses, ListDead, ResolveLetters, Topic, Unresolved,
};
use crate::error::{Result, StoreError};

/// Letters that are shown with a cause.
const SAMPLES: u32 = 3;

/// Targets that are named with a cause.
const TARGETS: u32 = 3;

/// Causes that are named because they look alike.
const ALIKE: usize = 5;

#[async_trait]
impl CauseStore for SqliteStore {
    async fn list_causes(&self, params: ListCauses) -> Result<Vec<CauseView>> {
        self.read(move |conn| list(conn, &params)).await
    }

    async fn get_cause(&self, id: CauseId, now: Timestamp) -> Result<CauseDetail> {
        self.read(move |conn| get(conn, &id, now)).await
    }

    async fn recognise(&self, keys: Vec<String>) -> Result<Vec<Option<CauseId>>> {
        self.read(move |conn| keys.iter().map(|key| cause_keys::cause_of(conn, key)).collect()).await
    }

    async fn cause_rules(&self) -> Result<CauseRules> {
        self.read(cause_rules::all).await
    }

    async fn unresolved_letters(&self, limit: u32) -> Result<Option<Unresolved>> {
        self.read(move |conn| cause_rules::unresolved(conn, limit)).await
    }

    async fn resolve_letters(&self, params: ResolveLetters) -> Result<bool> {
        self.write_about(Topic::Causes, move |batch| cause_rules::resolve(batch, &params)).await
    }

    async fn busiest_causes(&self, params: BusiestCauses) -> Result<Vec<CauseId>> {
        self.read(move |conn| {
            let mut conditions = Conditions::default();
            conditions.at_least("h.hour", Some(params.since.hour()));
            let sql = format!(
                "SELECT c.name FROM (SELECT h.key, sum(h.count) AS count FROM cause_hour h {conditions} GROUP BY h.key) s
                 JOIN cause_key k ON k.id = s.key JOIN cause c ON c.id = k.cause JOIN pipeline p ON p.id = c.pipeline
                 WHERE ?2 IS NULL OR p.name = ?2 GROUP BY c.id ORDER BY sum(s.count) DESC, c.id DESC LIMIT {}",
                params.limit
            );
            let mut select = conn.prepare_cached(&sql)?;
            let name = params.pipeline.as_ref().map(PipelineName::as_str);
            let rows = select.query_map(params![params.since.hour(), name], |row| rows::parsed(row, 0))?;
            Ok(rows.collect::<RowResult<_>>()?)
        })
        .await
    }

    async fn cause_hours(&self, ids: Vec<CauseId>, since: Timestamp) -> Result<Vec<CauseHour>> {
        self.read(move |conn| {
            let mut select = conn.prepare_cached(
                "SELECT c.name, h.hour * 3600000, sum(h.count) FROM json_each(?1) j JOIN cause c ON c.name = j.value
                 JOIN cause_key k ON k.cause = c.id JOIN cause_hour h ON h.key = k.id WHERE h.hour >= ?2
                 GROUP BY c.id, h.hour",
            )?;
            let rows = select.query_map(params![serde_json::to_string(&ids)?, since.hour()], |row| {
                Ok(CauseHour { cause: rows::parsed(row, 0)?, hour: rows::time(row, 1)?, count: row.get(2)? })
            })?;
            Ok(rows.collect::<RowResult<_>>()?)
        })
        .await
    }

    async fn change_cause(&self, params: ChangeCause) -> Result<CauseId> {
        self.write_about(Topic::Causes, move |batch| cause_changes::change(batch, &params)).await
    }
}

/// The row and the full id of a cause, by the beginning of its id. One that became part of another is found as that one.
pub(super) fn find(conn: &Connection, id: &CauseId) -> Result<(i64, CauseId), Fault> {
    let mut select = conn.prepare_cached(
        "SELECT id, name, merged_into FROM cause WHERE name >= ?1 AND name < ?1 || 'g' ORDER BY merged_into LIMIT 3",
    )?;
    let rows = select.query_map([id.as_str()], |row| Ok((row.get(0)?, rows::parsed(row, 1)?, row.get(2)?)))?;
    let mut found = rows.collect::<RowResult<Vec<(i64, CauseId, Option<i64>)>>>()?;
    let (mut row, mut name, mut merged) =
        match found.iter().position(|(_, name, _)| name == id).or((found.len() == 1).then_some(0)) {
            Some(at) => found.swap_remove(at),
            None if found.is_empty() => return Err(StoreError::NoCause(id.to_string()).into()),
            None => return Err(StoreError::AmbiguousCause(id.to_string()).into()),
        };
    while let Some(into) = merged {
        let mut select = conn.prepare_cached("SELECT id, name, merged_into FROM cause WHERE id = ?1")?;
        (row, name, merged) = select.query_row([into], |row| Ok((row.get(0)?, rows::parsed(row, 1)?, row.get(2)?)))?;
    }
    Ok((row, name))
}

/// A cause without its trend and its targets, which are asked for only if it is shown.
struct Found {
    row: i64,
    standing: Standing,
    view: CauseView,
}

const COLUMNS: &str = "c.id, c.name, p.name, k.reason, k.code, k.template, sum(k.dead), sum(k.total), sum(k.recovered),
    sum(k.discarded), min(k.first_seen), max(k.last_seen), c.owner, c.resolved_at, c.regressed_at, c.mute, k.status, max(k.total)";

fn select(conn: &Connection, conditions: &Conditions, having: &str) -> Result<Vec<Found>, Fault> {
    // Of several keys the one that killed most names the cause: SQLite takes plain columns from the row of the maximum.
    let sql = format!(
        "SELECT {COLUMNS} FROM cause c JOIN pipeline p ON p.id = c.pipeline JOIN cause_key k ON k.cause = c.id
         {conditions} GROUP BY c.id {having} ORDER BY sum(k.dead) DESC, max(k.last_seen) DESC, c.id DESC"
    );
    let mut select = conn.prepare_cached(&sql)?;
    let rows = select.query_map(conditions.values(), found)?;
    Ok(rows.collect::<RowResult<_>>()?)
}

fn found(row: &Row<'_>) -> RowResult<Found> {
    let standing = Standing {
        resolved_at: rows::time_opt(row, 13)?,
        regressed_at: rows::time_opt(row, 14)?,
        mute: rows::json_opt(row, 15)?,
    };
    let view = CauseView {
        id: rows::parsed(row, 1)?,
        state: redrive_core::causes::CauseState::New,
        pipeline: rows::parsed(row, 2)?,
        reason: rows::parsed(row, 3)?,
        code: row.get(4)?,
        http_status: row.get(16)?,
        title: row.get(5)?,
        dead: row.get(6)?,
        total: row.get(7)?,
        recovered: row.get(8)?,
        discarded: row.get(9)?,
        trend: Trend::default(),
        targets: Vec::new(),
        targets_count: 0,
        first_seen: rows::time(row, 10)?,
        last_seen: rows::time(row, 11)?,
        owner: row.get(12)?,
    };
    Ok(Found { row: row.get(0)?, standing, view })
}

impl Found {
    /// Adds the trend, and the state that follows from it.
    fn with_state(mut self, conn: &Connection, now: Timestamp) -> Result<Self, Fault> {
        self.view.trend = trend(conn, self.row, now)?;
        self.view.state = state(&self.standing, self.view.first_seen, &self.view.trend, now);
        Ok(self)
    }

    fn with_targets(mut self, conn: &Connection) -> Result<CauseView, Fault> {
        let mut select = conn.prepare_cached(
            "SELECT t.target FROM cause_key k JOIN cause_target t ON t.key = k.id WHERE k.cause = ?1
             GROUP BY t.target ORDER BY sum(t.count) DESC, t.target LIMIT ?2",
        )?;
        let rows = select.query_map(params![self.row, TARGETS], |row| row.get(0))?;
        self.view.targets = rows.collect::<RowResult<Vec<String>>>()?;
        let mut count = conn.prepare_cached(
            "SELECT count(DISTINCT t.target) FROM cause_key k JOIN cause_target t ON t.key = k.id WHERE k.cause = ?1",
        )?;
        self.view.targets_count = count.query_row([self.row], |row| row.get(0))?;
        Ok(self.view)
    }
}

fn trend(conn: &Connection, cause: i64, now: Timestamp) -> Result<Trend, Fault> {
    let mut select = conn.prepare_cached(
        "SELECT h.hour, h.count FROM cause_key k JOIN cause_hour h ON h.key = k.id WHERE k.cause = ?1 AND h.hour > ?2",
    )?;
    let before = now.hour() - TREND_HOURS as i64;
    let mut trend = Trend::default();
    let rows = select.query_map(params![cause, before], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?)))?;
    for row in rows {
        let (hour, count) = row?;
        // What the clock of another machine counts ahead of time belongs to the present hour.
        let at = usize::try_from(hour - before - 1).unwrap_or(0).min(TREND_HOURS - 1);
        trend.0[at] += count;
    }
    Ok(trend)
}

fn list(conn: &Connection, params: &ListCauses) -> Result<Vec<CauseView>, Fault> {
    let mut conditions = Conditions::default();
    conditions.equal("p.name", params.pipeline.as_ref().map(|name| name.as_str().to_owned()));
    conditions.equal("c.owner", params.owner.clone());
    if !params.ids.is_empty() {
        let place = conditions.bind(serde_json::to_string(&params.ids)?);
        conditions.holds(&format!("c.name IN (SELECT value FROM json_each({place}))"));
    }
    let having = if params.with_empty { "" } else { "HAVING sum(k.dead) > 0" };
    let limit = usize::try_from(params.limit).unwrap_or(usize::MAX);
    let mut listed = Vec::new();
    for found in select(conn, &conditions, having)? {
        if listed.len() >= limit {
            break;
        }
        let found = found.with_state(conn, params.now)?;
        if params.states.is_empty() || params.states.contains(&found.view.state) {
            listed.push(found.with_targets(conn)?);
        }
    }
    Ok(listed)
}

fn get(conn: &Connection, id: &CauseId, now: Timestamp) -> Result<CauseDetail, Fault> {
    let (row, id) = find(conn, id)?;
    let mut conditions = Conditions::default();
    conditions.equal("c.id", Some(row));
    let found = select(conn, &conditions, "")?.pop().ok_or_else(|| StoreError::NoCause(id.to_string()))?;
    let mute = found.standing.mute;
    let cause = found.with_state(conn, now)?.with_targets(conn)?;
    let filter = DeadFilter { cause: Some(id), ..DeadFilter::default() };
    let newest = ListDead { filter, limit: SAMPLES, cursor: None, with_failures: false };
    Ok(CauseDetail {
        keys: keys(conn, row)?,
        mute,
        samples: dead::list(conn, &newest)?.items,
        notes: notes(conn, row)?,
        alike: alike(conn, row, &cause)?,
        cause,
    })
}

fn keys(conn: &Connection, cause: i64) -> Result<Vec<CauseKey>, Fault> {
    let mut select = conn.prepare_cached(
        "SELECT key, parts, sample, dead, total FROM cause_key WHERE cause = ?1 ORDER BY total DESC, id",
    )?;
    let rows = select.query_map([cause], |row| {
        Ok(CauseKey {
            key: row.get(0)?,
            parts: rows::json(row, 1)?,
            sample: row.get(2)?,
            dead: row.get(3)?,
            total: row.get(4)?,
        })
    })?;
    Ok(rows.collect::<RowResult<_>>()?)
}

fn notes(conn: &Connection, cause: i64) -> Result<Vec<CauseNote>, Fault> {
    let mut select = conn.prepare_cached("SELECT at, actor, text FROM cause_note WHERE cause = ?1 OR cause IN (SELECT id FROM cause WHERE merged_into = ?1)
         ORDER BY at, rowid",
    )?;
    let rows = select
        .query_map([cause], |row| Ok(CauseNote { at: rows::time(row, 0)?, actor: row.get(1)?, text: row.get(2)? }))?;
    Ok(rows.collect::<RowResult<_>>()?)
}

/// Causes of the same pipeline whose messages look alike.
fn alike(conn: &Connection, row: i64, cause: &CauseView) -> Result<Vec<AlikeCause>, Fault> {
    let mut select = conn.prepare_cached(
        "SELECT c.name, k.template FROM cause c JOIN cause_key k ON k.cause = c.id
         WHERE c.pipeline = (SELECT pipeline FROM cause WHERE id = ?1) AND c.id <> ?1 AND instr(k.key, '/') = 0",
    )?;
    let rows = select.query_map([row], |row| Ok((rows::parsed::<CauseId>(row, 0)?, row.get::<_, String>(1)?)))?;
    let mut alike = Vec::new();
    for row in rows {
        let (id, title) = row?;
        let similarity = similarity(&title, &cause.title);
        if similarity >= ALIKE_MIN {
            alike.push(AlikeCause { id, similarity, title });
        }
    }
    alike.sort_by(|a, b| b.similarity.total_cmp(&a.similarity));
    let mut named = HashSet::new();
    alike.retain(|alike| named.insert(alike.id.clone()));
    alike.truncate(ALIKE);
    Ok(alike)
}
