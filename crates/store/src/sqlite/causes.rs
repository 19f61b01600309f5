//! Causes: recognising what a job died of, listing by impact, and what people do to them.

use std::collections::{HashMap, HashSet};

use async_trait::async_trait;
use redrive_core::causes::{ALIKE_MIN, CauseId, Standing, TREND_HOURS, Trend, state};
use redrive_core::failures::Failure;
use redrive_core::fingerprint::{self, Fingerprint, similarity};
use redrive_core::ids::PipelineName;
use redrive_core::time::Timestamp;
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::SqliteStore;
use super::batch::Batch;
use super::conditions::Conditions;
use super::fault::Fault;
use super::rows::{self, RowResult};
use super::{cause_changes, dead};
use crate::contract::{
    AlikeCause, BusiestCauses, CauseDetail, CauseHour, CauseKey, CauseNote, CauseStore, CauseView, ChangeCause,
    DeadFilter, ListCauses, ListDead, Recognise,
};
use crate::error::{Result, StoreError};

/// Letters that are shown with a cause.
const SAMPLES: u32 = 3;

/// Targets that are named with a cause.
const TARGETS: u32 = 3;

/// Causes that are named because they look alike.
const ALIKE: usize = 5;

/// The digits of a cause's id, unless another has them already.
const ID_DIGITS: usize = 8;

#[async_trait]
impl CauseStore for SqliteStore {
    async fn list_causes(&self, params: ListCauses) -> Result<Vec<CauseView>> {
        self.read(move |conn| list(conn, &params)).await
    }

    async fn get_cause(&self, id: CauseId, now: Timestamp) -> Result<CauseDetail> {
        self.read(move |conn| get(conn, &id, now)).await
    }

    async fn recognise(&self, failures: Vec<Recognise>) -> Result<Vec<Option<CauseId>>> {
        self.read(move |conn| failures.iter().map(|failure| cause_of(conn, failure)).collect()).await
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
        self.write(move |batch| cause_changes::change(batch, &params)).await
    }
}

/// Finds, or makes, the key that a failure is recognised by, and counts it.
pub(super) fn recognise(
    batch: &mut Batch<'_>,
    pipeline: i64,
    target: Option<&str>,
    failure: &Failure,
    now: Timestamp,
) -> Result<i64, Fault> {
    let name = batch.pipeline_name(pipeline)?;
    let print = fingerprint::of_failure(&name, target, failure);
    let known = match find_key(batch.connection(), &print.key)? {
        Some(key) => Some(key),
        None => adopt(batch, &print, failure, now)?,
    };
    let key = match known {
        Some(key) => split_off(batch.connection(), key, target, &failure.message)?,
        None => make(batch, pipeline, &print, failure, now)?,
    };
    batch.tallies.killed(key, target, now);
    Ok(key)
}

/// The cause that a failure would belong to, if it is known.
fn cause_of(conn: &Connection, failure: &Recognise) -> Result<Option<CauseId>, Fault> {
    let Some(key) = find_key(conn, &failure.key)? else { return Ok(None) };
    let key = split_off(conn, key, failure.target.as_deref(), &failure.message)?;
    let mut select =
        conn.prepare_cached("SELECT c.name FROM cause_key k JOIN cause c ON c.id = k.cause WHERE k.id = ?1")?;
    Ok(select.query_row([key], |row| rows::parsed(row, 0)).optional()?)
}

/// Recognises the dead letters of a store that knew no causes.
pub(super) fn recognise_all(conn: &Connection) -> Result<(), Fault> {
    let mut pipelines = HashMap::new();
    let mut batch = Batch::new(conn, &mut pipelines);
    let mut select = conn.prepare("SELECT id, pipeline, target, died_at FROM dead WHERE cause_key IS NULL")?;
    let rows = select.query_map([], |row| {
        Ok((rows::job_id(row, 0)?, row.get::<_, i64>(1)?, row.get::<_, Option<String>>(2)?, rows::time(row, 3)?))
    })?;
    for (id, pipeline, target, died_at) in rows.collect::<RowResult<Vec<_>>>()? {
        let Some(last) = rows::failures(conn, id)?.pop() else { continue };
        let key = recognise(&mut batch, pipeline, target.as_deref(), &last, died_at)?;
        batch.statement("UPDATE dead SET cause_key = ?2 WHERE id = ?1")?.execute(params![id.as_bytes(), key])?;
    }
    batch.finish()
}

fn find_key(conn: &Connection, key: &str) -> Result<Option<i64>, Fault> {
    let mut select = conn.prepare_cached("SELECT id FROM cause_key WHERE key = ?1")?;
    Ok(select.query_row([key], |row| row.get(0)).optional()?)
}

/// A key that former rules made of the same failure: the new one joins its cause.
fn adopt(batch: &Batch<'_>, print: &Fingerprint, failure: &Failure, now: Timestamp) -> Result<Option<i64>, Fault> {
    for former in &print.former {
        let mut select = batch.statement("SELECT cause FROM cause_key WHERE key = ?1")?;
        if let Some(cause) = select.query_row([former], |row| row.get(0)).optional()? {
            return insert_key(batch, cause, print, failure, now).map(Some);
        }
    }
    Ok(None)
}

/// The key that a person split off for failures like this one, if any.
fn split_off(conn: &Connection, mut key: i64, target: Option<&str>, message: &str) -> Result<i64, Fault> {
    let mut select = conn.prepare_cached(
        "SELECT into_key FROM cause_split WHERE key = ?1 AND (target = ?2 OR instr(lower(?3), lower(text)) > 0)",
    )?;
    // Part of a part is split off again; a key is never split into one that is older.
    while let Some(into) = select.query_row(params![key, target, message], |row| row.get(0)).optional()? {
        key = into;
    }
    Ok(key)
}

fn make(
    batch: &Batch<'_>,
    pipeline: i64,
    print: &Fingerprint,
    failure: &Failure,
    now: Timestamp,
) -> Result<i64, Fault> {
    let cause = make_cause(batch, pipeline, &print.key)?;
    insert_key(batch, cause, print, failure, now)
}

/// Makes a cause that is called after a key.
pub(super) fn make_cause(batch: &Batch<'_>, pipeline: i64, key: &str) -> Result<i64, Fault> {
    let hash = blake3::hash(key.as_bytes()).to_hex();
    let own = key.split_once('-').map_or("", |(_, digits)| digits);
    let digits = if own.len() >= ID_DIGITS && own.bytes().all(|b| b.is_ascii_hexdigit()) { own } else { hash.as_str() };
    let mut taken = batch.statement("SELECT 1 FROM cause WHERE name = ?1")?;
    let mut length = ID_DIGITS;
    while length < digits.len() && taken.exists([&digits[..length]])? {
        length += 1;
    }
    let mut insert = batch.statement("INSERT INTO cause (name, pipeline) VALUES (?1, ?2)")?;
    insert.execute(params![&digits[..length], pipeline])?;
    Ok(batch.connection().last_insert_rowid())
}

fn insert_key(
    batch: &Batch<'_>,
    cause: i64,
    print: &Fingerprint,
    failure: &Failure,
    now: Timestamp,
) -> Result<i64, Fault> {
    let mut insert = batch.statement(
        "INSERT INTO cause_key (key, cause, origin, template, reason, code, status, parts, sample, first_seen, last_seen)
         VALUES (?1, ?2, ?2, ?3, ?4, ?5, ?9, ?6, ?7, ?8, ?8)",
    )?;
    insert.execute(params![
        print.key,
        cause,
        print.template,
        failure.reason.as_str(),
        failure.code,
        serde_json::to_string(&print.parts)?,
        failure.message,
        now.as_millis(),
        failure.http_status
    ])?;
    Ok(batch.connection().last_insert_rowid())
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

/// The rows of a cause's keys.
pub(super) fn keys_of(conn: &Connection, id: &CauseId) -> Result<Vec<i64>, Fault> {
    let (cause, _) = find(conn, id)?;
    let mut select = conn.prepare_cached("SELECT id FROM cause_key WHERE cause = ?1 ORDER BY id")?;
    let rows = select.query_map([cause], |row| row.get(0))?;
    Ok(rows.collect::<RowResult<_>>()?)
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

#[cfg(test)]
mod tests {
    use super::*;
    use redrive_core::failures::Reason;

    /// Rules that change make other keys of the same failures: their cause goes on.
    #[test]
    fn a_new_version_of_the_rules_finds_the_old_cause() {
        let mut conn = Connection::open_in_memory().expect("opened");
        super::super::schema::migrate(&mut conn, std::path::Path::new("memory:")).expect("made");
        let mut pipelines = HashMap::new();
        let mut batch = Batch::new(&conn, &mut pipelines);
        let pipeline = batch.pipeline(&"p".parse().expect("a name")).expect("made");
        let failure: Failure = serde_json::from_value(serde_json::json!({
            "at": "2026-11-15T14:02:00Z", "attempt": 1, "replay": 0, "reason": Reason::HandlerError, "message": "x",
        }))
        .expect("a failure");
        let print = |key: &str, former: &[&str]| Fingerprint {
            key: key.to_owned(),
            former: former.iter().map(ToString::to_string).collect(),
            template: "x".to_owned(),
            parts: Vec::new(),
            masked: Vec::new(),
        };
        let now = Timestamp::from_millis(0);
        let old = make(&batch, pipeline, &print("1-aaaaaaaaaa", &[]), &failure, now).expect("made");
        let newer = print("2-bbbbbbbbbb", &["1-0000000000", "1-aaaaaaaaaa"]);
        let adopted = adopt(&batch, &newer, &failure, now).expect("asked").expect("adopted");
        assert_ne!(old, adopted, "it is a key of its own");
        assert_eq!(find_key(&conn, "2-bbbbbbbbbb").expect("asked"), Some(adopted));
        let causes: i64 =
            conn.query_row("SELECT count(DISTINCT cause) FROM cause_key", [], |row| row.get(0)).expect("one");
        assert_eq!(causes, 1);
        assert_eq!(adopt(&batch, &print("2-c", &["1-zz"]), &failure, now).expect("asked"), None);
    }
}
