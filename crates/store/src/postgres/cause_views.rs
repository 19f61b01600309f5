//! Causes as they are shown: listed by impact, or one with all that is known of it.

use std::collections::{HashMap, HashSet};

use redrive_core::actors::Actor;
use redrive_core::causes::{ALIKE_MIN, CauseId, Narrowed, TREND_HOURS, Trend, narrowed, state};
use redrive_core::fingerprint::similarity;
use redrive_core::ids::PipelineName;
use redrive_core::time::Timestamp;

use super::causes::find;
use super::conditions::Conditions;
use super::fault::Fault;
use super::rows::Found;
use super::sql::{Conn, args};
use super::{dead, rows};
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

/// Of several keys the one that killed most names the cause.
const COLUMNS: &str = "c.id, c.name, p.name, (array_agg(k.reason ORDER BY k.total + k.refailed DESC, k.id))[1],
    (array_agg(k.code ORDER BY k.total + k.refailed DESC, k.id))[1],
    (array_agg(k.template ORDER BY k.total + k.refailed DESC, k.id))[1], sum(k.dead)::bigint, sum(k.total)::bigint,
    sum(k.recovered)::bigint, sum(k.discarded)::bigint, min(k.first_seen), max(k.last_seen), c.owner, c.resolved_at, c.mute,
    (array_agg(k.status ORDER BY k.total + k.refailed DESC, k.id))[1], sum(k.refailed)::bigint,
    coalesce(sum(s.count), 0)::bigint";

async fn select(
    conn: &Conn,
    conditions: &Conditions,
    (having, order): (&str, &str),
    limit: Option<u32>,
) -> Result<Vec<Found>, Fault> {
    let limit = limit.map_or_else(String::new, |limit| format!("LIMIT {limit}"));
    let sql = format!(
        "SELECT {COLUMNS} FROM cause c JOIN pipeline p ON p.id = c.pipeline JOIN cause_key k ON k.cause = c.id
         LEFT JOIN LATERAL (SELECT sum(count) AS count FROM cause_saved_sum WHERE key = k.id) s ON true
         {conditions} GROUP BY c.id, p.name {having} ORDER BY {order} {limit}"
    );
    conn.query(&sql, conditions.values(), |row| rows::found_cause(row)).await
}

fn list_of(found: &[Found]) -> Vec<i64> {
    found.iter().map(|found| found.row).collect()
}

/// Adds the trends, and the states that follow from them: one statement for all.
async fn add_states(conn: &Conn, causes: &mut [Found], now: Timestamp) -> Result<(), Fault> {
    let sql = "SELECT k.cause, h.hour, sum(h.count - h.imported)::bigint FROM cause_key k JOIN cause_hour h ON h.key = k.id AND h.hour > $2
               WHERE k.cause = ANY($1) GROUP BY k.cause, h.hour";
    let before = now.hour() - TREND_HOURS as i64;
    let mut trends = HashMap::<i64, Trend>::new();
    let hours: Vec<(i64, i64, i64)> =
        conn.query(sql, args![list_of(causes), before], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).await?;
    for (cause, hour, count) in hours {
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
async fn with_examples(conn: &Conn, causes: &mut [Found]) -> Result<(), Fault> {
    let sql = "SELECT k.cause, left(input_field(d.input, '{url}'), ($2::bigint)::int) FROM
                  (SELECT DISTINCT ON (cause) cause, id FROM cause_key WHERE cause = ANY($1) AND dead > 0
                   ORDER BY cause, last_seen DESC, id) k
               JOIN LATERAL (SELECT input FROM dead WHERE cause_key = k.id ORDER BY died_at DESC, seq DESC LIMIT 1) d ON true";
    let found: Vec<(i64, Option<String>)> =
        conn.query(sql, args![list_of(causes), EXAMPLE_CHARS_MAX], |row| Ok((row.get(0)?, row.get(1)?))).await?;
    let mut examples: HashMap<i64, Option<String>> = found.into_iter().collect();
    for found in causes {
        found.view.example = examples.remove(&found.row).flatten();
    }
    Ok(())
}

/// Takes letters whose payloads were found to be gone from those that can be worked on from them: one statement for all.
async fn without_unreadable(conn: &Conn, causes: &mut [Found]) -> Result<(), Fault> {
    let sql = "SELECT k.cause, count(*) FROM payload y JOIN payload_use u ON u.hash = y.hash
               JOIN dead d ON d.id = u.job AND d.payload = y.hash AND d.payload_cut = 0 JOIN cause_key k ON k.id = d.cause_key
               WHERE y.unreadable IS NOT NULL AND k.cause = ANY($1) GROUP BY k.cause";
    let counted: Vec<(i64, u64)> =
        conn.query(sql, args![list_of(causes)], |row| Ok((row.get(0)?, row.get(1)?))).await?;
    let unreadable: HashMap<i64, u64> = counted.into_iter().collect();
    for found in causes {
        found.view.saved -= unreadable.get(&found.row).copied().unwrap_or_default().min(found.view.saved);
    }
    Ok(())
}

/// Adds the targets that causes hit most: one statement for all.
async fn with_targets(conn: &Conn, mut causes: Vec<Found>) -> Result<Vec<CauseView>, Fault> {
    without_unreadable(conn, &mut causes).await?;
    let sql = "SELECT cause, target, targets FROM
                  (SELECT k.cause, t.target, count(*) OVER (PARTITION BY k.cause) AS targets,
                          row_number() OVER (PARTITION BY k.cause ORDER BY sum(t.count) DESC, t.target) AS place
                   FROM cause_key k JOIN cause_target t ON t.key = k.id WHERE k.cause = ANY($1)
                   GROUP BY k.cause, t.target) t
               WHERE place <= $2 ORDER BY cause, place";
    let mut targets = HashMap::<i64, (Vec<String>, u64)>::new();
    let found: Vec<(i64, String, u64)> =
        conn.query(sql, args![list_of(&causes), TARGETS], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).await?;
    for (cause, target, all) in found {
        let (named, count) = targets.entry(cause).or_default();
        named.push(target);
        *count = all;
    }
    for found in &mut causes {
        (found.view.targets, found.view.targets_count) = targets.remove(&found.row).unwrap_or_default();
    }
    Ok(causes.into_iter().map(|found| found.view).collect())
}

/// Five statements, however many causes there are, unless most of the first ones are in other states than those that are wanted.
pub(super) async fn list(conn: &Conn, params: &ListCauses) -> Result<Vec<CauseView>, Fault> {
    let mut conditions = Conditions::default();
    if !params.pipelines.is_empty() {
        let place = conditions.bind(params.pipelines.iter().map(PipelineName::as_str).collect::<Vec<_>>());
        conditions.holds(&format!("p.name = ANY({place})"));
    }
    conditions.equal("c.owner", params.owner.as_deref());
    if !params.ids.is_empty() {
        let place = conditions.bind(params.ids.iter().map(CauseId::as_str).collect::<Vec<_>>());
        conditions.holds(&format!("c.name = ANY({place})"));
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
    let limit = (!params.is_by_state()).then_some(params.limit);
    let having = having(params, &narrowed);
    let (mut rest, mut found) =
        (select(conn, &conditions, (&having, lists::cause_order(params.sort)), limit).await?, Vec::new());
    let wanted = usize::try_from(params.limit).unwrap_or(usize::MAX);
    // Trends are read of as many as are looked at, not of all that there are.
    while !rest.is_empty() && found.len() < wanted {
        let mut piece = rest;
        rest = piece.split_off(wanted.max(PIECE).min(piece.len()));
        add_states(conn, &mut piece, params.now).await?;
        found.extend(piece.into_iter().filter(|one| params.wants(&one.view)));
    }
    found.truncate(wanted);
    with_examples(conn, &mut found).await?;
    with_targets(conn, found).await
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

pub(super) async fn get(conn: &Conn, (id, now): &(CauseId, Timestamp)) -> Result<CauseDetail, Fault> {
    let (row, id) = find(conn, id).await?;
    let mut conditions = Conditions::default();
    conditions.equal("c.id", Some(row));
    let mut found = select(conn, &conditions, ("", "c.id"), Some(1)).await?;
    add_states(conn, &mut found, *now).await?;
    let mute = found.first().and_then(|found| found.standing.mute);
    let cause = with_targets(conn, found).await?.pop().ok_or_else(|| StoreError::NoCause(id.to_string()))?;
    let filter = DeadFilter { cause: Some(id), ..DeadFilter::default() };
    let newest = ListDead::newest(filter, SAMPLES);
    Ok(CauseDetail {
        keys: keys(conn, row).await?,
        mute,
        samples: dead::list(conn, &newest).await?.items,
        notes: notes(conn, row).await?,
        alike: alike(conn, row, &cause).await?,
        cause,
    })
}

async fn keys(conn: &Conn, cause: i64) -> Result<Vec<CauseKey>, Fault> {
    let sql = "SELECT key, parts, sample, dead, total FROM cause_key WHERE cause = $1 AND (NOT retired OR dead > 0)
               ORDER BY total DESC, id";
    let keys = conn.query(sql, args![cause], |row| {
        Ok(CauseKey {
            key: row.get(0)?,
            parts: rows::json(row, 1)?,
            sample: row.get(2)?,
            dead: row.get(3)?,
            total: row.get(4)?,
        })
    });
    keys.await
}

async fn notes(conn: &Conn, cause: i64) -> Result<Vec<CauseNote>, Fault> {
    let sql = "SELECT at, actor, text, via FROM cause_note
               WHERE cause = $1 OR cause IN (SELECT id FROM cause WHERE merged_into = $1) ORDER BY at, id";
    let notes = conn.query(sql, args![cause], |row| {
        let by = Actor::new(row.get::<String>(1)?, rows::parsed(row, 3)?);
        Ok(CauseNote { at: rows::time(row, 0)?, by, text: row.get(2)? })
    });
    notes.await
}

/// Causes of the same pipeline whose messages look alike.
async fn alike(conn: &Conn, row: i64, cause: &CauseView) -> Result<Vec<AlikeCause>, Fault> {
    let sql = "SELECT c.name, k.template FROM cause c JOIN cause_key k ON k.cause = c.id
               WHERE c.pipeline = (SELECT pipeline FROM cause WHERE id = $1) AND c.id <> $1 AND strpos(k.key, '/') = 0
               ORDER BY c.id, k.id";
    let others: Vec<(CauseId, String)> =
        conn.query(sql, args![row], |row| Ok((rows::parsed(row, 0)?, row.get(1)?))).await?;
    let mut alike = Vec::new();
    for (id, title) in others {
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
