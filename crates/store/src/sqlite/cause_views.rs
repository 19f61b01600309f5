//! Causes as they are shown: listed by impact, or one with all that is known of it.

use std::collections::{HashMap, HashSet};

use redrive_core::actors::Actor;
use redrive_core::causes::{ALIKE_MIN, CauseId, Narrowed, TREND_HOURS, Trend, narrowed, state};
use redrive_core::fingerprint::similarity;
use redrive_core::time::Timestamp;
use rusqlite::{Connection, params};

use super::causes::find;
use super::conditions::Conditions;
use super::dead;
use super::fault::Fault;
use super::rows::{self, Found, RowResult};
use crate::contract::{AlikeCause, CauseDetail, CauseKey, CauseNote, CauseView, DeadFilter, ListCauses, ListDead};
use crate::error::StoreError;
use crate::lists;

/// Letters that are shown with a cause.
const SAMPLES: u32 = 3;

/// Targets that are named with a cause.
const TARGETS: u32 = 3;

/// The most that is shown of an address, in characters.
const EXAMPLE_CHARS_MAX: u32 = 500;

/// Causes whose states are found at once, at least.
const PIECE: usize = 100;

/// Causes that are named because they look alike.
const ALIKE: usize = 5;

const COLUMNS: &str = "c.id, c.name, p.name, k.reason, k.code, k.template, sum(k.dead), sum(k.total), sum(k.recovered),
    sum(k.discarded), min(k.first_seen), max(k.last_seen), c.owner, c.resolved_at, c.mute, k.status,
    sum(k.refailed), ifnull(sum(s.count), 0), max(k.total + k.refailed)";

fn select(
    conn: &Connection,
    conditions: &Conditions,
    (having, order): (&str, &str),
    limit: i64,
) -> Result<Vec<Found>, Fault> {
    // Of several keys the one that killed most names the cause: SQLite takes plain columns from the row of the maximum.
    let sql = format!(
        "SELECT {COLUMNS} FROM cause c JOIN pipeline p ON p.id = c.pipeline JOIN cause_key k ON k.cause = c.id
         LEFT JOIN cause_saved s ON s.key = k.id {conditions} GROUP BY c.id {having} ORDER BY {order}
         LIMIT {limit}"
    );
    let mut select = conn.prepare_cached(&sql)?;
    let rows = select.query_map(conditions.values(), |row| rows::found_cause(row))?;
    Ok(rows.collect::<RowResult<_>>()?)
}

fn list_of(found: &[Found]) -> Result<String, Fault> {
    Ok(serde_json::to_string(&found.iter().map(|found| found.row).collect::<Vec<_>>())?)
}

/// Adds the trends, and the states that follow from them: one statement for all.
fn add_states(conn: &Connection, causes: &mut [Found], now: Timestamp) -> Result<(), Fault> {
    let mut select = conn.prepare_cached(
        "SELECT k.cause, h.hour, sum(h.count - h.imported) FROM json_each(?1) j CROSS JOIN cause_key k ON k.cause = j.value
         CROSS JOIN cause_hour h ON h.key = k.id AND h.hour > ?2 GROUP BY k.cause, h.hour",
    )?;
    let before = now.hour() - TREND_HOURS as i64;
    let mut trends = HashMap::<i64, Trend>::new();
    let rows = select.query_map(params![list_of(causes)?, before], |row| {
        Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?, row.get::<_, i64>(2)?))
    })?;
    for row in rows {
        let (cause, hour, count) = row?;
        // What the clock of another machine counts ahead of time belongs to the present hour.
        let at = usize::try_from(hour - before - 1).unwrap_or(0).min(TREND_HOURS - 1);
        trends.entry(cause).or_default().0[at] += count;
    }
    for found in causes {
        found.view.trend = trends.get(&found.row).copied().unwrap_or_default();
        found.view.state = state(&found.standing, found.view.first_seen, &found.view.trend, now);
    }
    Ok(())
}

/// Adds the addresses that their newest letters are about: one statement for all.
fn with_examples(conn: &Connection, causes: &mut [Found]) -> Result<(), Fault> {
    // Of several keys the one that was seen last: SQLite takes the other columns from the row of the maximum.
    let mut select = conn.prepare_cached(
        "SELECT k.cause, max(k.last_seen),
            (SELECT substr(CAST(d.input ->> '$.url' AS TEXT), 1, ?2) FROM dead d WHERE d.cause_key = k.id
             ORDER BY d.died_at DESC LIMIT 1)
         FROM json_each(?1) j CROSS JOIN cause_key k ON k.cause = j.value WHERE k.dead > 0 GROUP BY k.cause",
    )?;
    let rows = select.query_map(params![list_of(causes)?, EXAMPLE_CHARS_MAX], |row| Ok((row.get(0)?, row.get(2)?)))?;
    let mut examples = rows.collect::<RowResult<HashMap<i64, Option<String>>>>()?;
    for found in causes {
        found.view.example = examples.remove(&found.row).flatten();
    }
    Ok(())
}

/// Takes letters whose payloads were found to be gone from those that can be worked on from them: one statement for all.
fn without_unreadable(conn: &Connection, causes: &mut [Found]) -> Result<(), Fault> {
    let mut select = conn.prepare_cached(
        "SELECT k.cause, count(*) FROM payload y INDEXED BY payload_unreadable CROSS JOIN payload_use u ON u.hash = y.hash
         CROSS JOIN dead d ON d.id = u.job AND d.payload = y.hash AND d.payload_cut = 0
         CROSS JOIN cause_key k ON k.id = d.cause_key
         WHERE y.unreadable IS NOT NULL AND k.cause IN (SELECT value FROM json_each(?1)) GROUP BY k.cause",
    )?;
    let rows = select.query_map([list_of(causes)?], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let unreadable = rows.collect::<RowResult<HashMap<i64, u64>>>()?;
    for found in causes {
        found.view.saved -= unreadable.get(&found.row).copied().unwrap_or_default().min(found.view.saved);
    }
    Ok(())
}

/// Adds the targets that causes hit most: one statement for all.
fn with_targets(conn: &Connection, mut causes: Vec<Found>) -> Result<Vec<CauseView>, Fault> {
    without_unreadable(conn, &mut causes)?;
    let mut select = conn.prepare_cached(
        "SELECT cause, target, targets FROM
            (SELECT k.cause, t.target, count(*) OVER (PARTITION BY k.cause) AS targets,
                    row_number() OVER (PARTITION BY k.cause ORDER BY sum(t.count) DESC, t.target) AS place
             FROM json_each(?1) j CROSS JOIN cause_key k ON k.cause = j.value CROSS JOIN cause_target t ON t.key = k.id
             GROUP BY k.cause, t.target)
         WHERE place <= ?2 ORDER BY cause, place",
    )?;
    let mut targets = HashMap::<i64, (Vec<String>, u64)>::new();
    let mut rows = select.query(params![list_of(&causes)?, TARGETS])?;
    while let Some(row) = rows.next()? {
        let (named, count) = targets.entry(row.get(0)?).or_default();
        named.push(row.get(1)?);
        *count = row.get(2)?;
    }
    for found in &mut causes {
        (found.view.targets, found.view.targets_count) = targets.remove(&found.row).unwrap_or_default();
    }
    Ok(causes.into_iter().map(|found| found.view).collect())
}

/// Five statements, however many causes there are, unless most of the first ones are in other states than those that are wanted.
pub(super) fn list(conn: &Connection, params: &ListCauses) -> Result<Vec<CauseView>, Fault> {
    let mut conditions = Conditions::default();
    if !params.pipelines.is_empty() {
        let place = conditions.bind(serde_json::to_string(&params.pipelines)?);
        conditions.holds(&format!("p.name IN (SELECT value FROM json_each({place}))"));
    }
    conditions.equal("c.owner", params.owner.clone());
    if !params.ids.is_empty() {
        let place = conditions.bind(serde_json::to_string(&params.ids)?);
        conditions.holds(&format!("c.name IN (SELECT value FROM json_each({place}))"));
    }
    let narrowed = narrowed(&params.states, params.now);
    match narrowed.resolved {
        Some(true) => conditions.holds("c.resolved_at IS NOT NULL"),
        Some(false) => conditions.holds("c.resolved_at IS NULL"),
        None => {}
    }
    if narrowed.muted {
        conditions.holds("c.mute IS NOT NULL");
    }
    // Which of them are in a state is known when they were read; without one the first ones are enough.
    let limit = if params.is_by_state() { -1 } else { i64::from(params.limit) };
    let having = having(params, &narrowed);
    let (mut rest, mut found) =
        (select(conn, &conditions, (&having, lists::cause_order(params.sort)), limit)?, Vec::new());
    let wanted = usize::try_from(params.limit).unwrap_or(usize::MAX);
    // Trends are read of as many as are looked at, not of all that there are.
    while !rest.is_empty() && found.len() < wanted {
        let mut piece = rest;
        rest = piece.split_off(wanted.max(PIECE).min(piece.len()));
        add_states(conn, &mut piece, params.now)?;
        found.extend(piece.into_iter().filter(|one| params.wants(&one.view)));
    }
    found.truncate(wanted);
    with_examples(conn, &mut found)?;
    with_targets(conn, found)
}

/// What must hold of a cause as a whole.
fn having(params: &ListCauses, narrowed: &Narrowed) -> String {
    let mut all = Vec::new();
    if !params.with_empty {
        all.push("sum(k.dead) > 0".to_owned());
    }
    match narrowed.back {
        Some(true) => all.push("max(k.last_seen) > c.resolved_at".to_owned()),
        Some(false) => all.push("max(k.last_seen) <= c.resolved_at".to_owned()),
        None => {}
    }
    all.extend(narrowed.seen_after.map(|after| format!("min(k.first_seen) > {}", after.as_millis())));
    if all.is_empty() { String::new() } else { format!("HAVING {}", all.join(" AND ")) }
}

pub(super) fn get(conn: &Connection, id: &CauseId, now: Timestamp) -> Result<CauseDetail, Fault> {
    let (row, id) = find(conn, id)?;
    let mut conditions = Conditions::default();
    conditions.equal("c.id", Some(row));
    let mut found = select(conn, &conditions, ("", "c.id"), 1)?;
    add_states(conn, &mut found, now)?;
    let mute = found.first().and_then(|found| found.standing.mute);
    let cause = with_targets(conn, found)?.pop().ok_or_else(|| StoreError::NoCause(id.to_string()))?;
    let filter = DeadFilter { cause: Some(id), ..DeadFilter::default() };
    let newest = ListDead::newest(filter, SAMPLES);
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
        "SELECT key, parts, sample, dead, total FROM cause_key WHERE cause = ?1 AND (NOT retired OR dead > 0)
         ORDER BY total DESC, id",
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
    let mut select = conn.prepare_cached(
        "SELECT at, actor, text, via FROM cause_note
         WHERE cause = ?1 OR cause IN (SELECT id FROM cause WHERE merged_into = ?1) ORDER BY at, rowid",
    )?;
    let rows = select.query_map([cause], |row| {
        let by = Actor::new(row.get::<_, String>(1)?, rows::parsed(row, 3)?);
        Ok(CauseNote { at: rows::time(row, 0)?, by, text: row.get(2)? })
    })?;
    Ok(rows.collect::<RowResult<_>>()?)
}

/// Causes of the same pipeline whose messages look alike.
fn alike(conn: &Connection, row: i64, cause: &CauseView) -> Result<Vec<AlikeCause>, Fault> {
    let mut select = conn.prepare_cached(
        "SELECT c.name, k.template FROM cause c JOIN cause_key k ON k.cause = c.id
         WHERE c.pipeline = (SELECT pipeline FROM cause WHERE id = ?1) AND c.id <> ?1 AND instr(k.key, '/') = 0",
    )?;
    let rows = select.query_map([row], |row| Ok((rows::parsed::<CauseId, _>(row, 0)?, row.get::<_, String>(1)?)))?;
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
