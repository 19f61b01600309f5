//! Dead letters: listing, showing, discarding and expiring them.

use std::collections::BTreeSet;

use async_trait::async_trait;
use redrive_core::counts::{Delta, Event};
use redrive_core::dead::DeadLetter;
use redrive_core::dead::import::Arrival;
use redrive_core::failures::Reason;
use redrive_core::ids::JobId;
use redrive_core::jobs::json_bytes;
use redrive_core::state::{JobState, Move};
use redrive_core::time::Timestamp;
use serde_json::json;

use super::batch::Batch;
use super::conditions::Conditions;
use super::fault::Fault;
use super::rows::DEAD_COLUMNS;
use super::sql::{Conn, Row, args};
use super::{PostgresStore, activity, cause_keys, dead_imports, job_cancels, leader, payloads, rows, run, tidying};
use crate::contract::{
    DeadFilter, DeadStore, DiscardDead, ExpireDead, ImportDead, ListDead, Page, Room, SearchDead, SearchedDead,
};
use crate::error::Result;
use crate::lists;

#[async_trait]
impl DeadStore for PostgresStore {
    async fn list_dead(&self, params: ListDead) -> Result<Page<DeadLetter>> {
        self.read(params, run!(list)).await
    }

    async fn search_dead(&self, params: SearchDead) -> Result<SearchedDead> {
        self.read(params, run!(search)).await
    }

    async fn get_dead(&self, id: JobId) -> Result<Option<DeadLetter>> {
        self.read(id, |conn, id| Box::pin(get(conn, *id))).await
    }

    async fn discard_dead(&self, params: DiscardDead) -> Result<Vec<JobId>> {
        self.write(params, run!(discard_named)).await
    }

    async fn expire_dead(&self, params: ExpireDead) -> Result<u64> {
        self.write(params, run!(expire)).await
    }

    async fn import_dead(&self, params: ImportDead) -> Result<Vec<Arrival>> {
        self.write(params, run!(import)).await
    }
}

pub(super) async fn list(conn: &Conn, params: &ListDead) -> Result<Page<DeadLetter>, Fault> {
    let (limit, order) = (params.limit.saturating_add(1), lists::letter_order(params.sort));
    let mut found = Vec::new();
    for mut conditions in conditions_by_key(conn, &params.filter).await? {
        if let Some(cursor) = &params.cursor {
            conditions.after_letter(lists::letter_after(cursor, params.sort)?, params.sort);
        }
        let sql = format!(
            "SELECT {DEAD_COLUMNS} FROM dead d JOIN pipeline p ON p.id = d.pipeline
             {conditions} ORDER BY {order} LIMIT {limit}"
        );
        found.extend(letters(conn, &sql, &conditions).await?);
    }
    lists::first_letters(&mut found, |(seq, letter)| (letter.died_at.as_millis(), *seq), (params.sort, limit));
    if params.with_failures {
        let mut room = Room::default();
        for (_, letter) in &mut found {
            letter.failures = Some(rows::failures(conn, letter.id).await?);
            if !room.take(json_bytes(letter)) {
                break;
            }
        }
    }
    let page = Page::fit(found, params.limit, bytes, |(seq, letter)| {
        lists::letter_cursor((letter.died_at.as_millis(), *seq), params.sort)
    });
    Ok(Page { items: page.items.into_iter().map(|(_, letter)| letter).collect(), next: page.next })
}

/// Reads letters with their numbers, as many as fit on a page and one more.
async fn letters(conn: &Conn, sql: &str, conditions: &Conditions) -> Result<Vec<(i64, DeadLetter)>, Fault> {
    let mut room = Room::default();
    let read = |row: &Row<'_>| {
        let letter = (row.get::<i64>(0)?, rows::dead_letter(row)?);
        let fits = room.take(bytes(&letter));
        Ok((letter, fits))
    };
    conn.query_until(sql, conditions.values(), read).await
}

fn bytes((_, letter): &(i64, DeadLetter)) -> u64 {
    json_bytes(letter)
}

/// Looks through the next letters: which they are is found by an index, and only in those is the rest looked for.
async fn search(conn: &Conn, params: &SearchDead) -> Result<SearchedDead, Fault> {
    let (look_at, order) = (params.look_at.max(1), lists::letter_order(params.sort));
    let mut keys: Vec<(i64, i64)> = Vec::new();
    for mut conditions in conditions_by_key(conn, &params.filter.indexed()).await? {
        if let Some(cursor) = &params.cursor {
            conditions.after_letter(lists::letter_after(cursor, params.sort)?, params.sort);
        }
        let sql = format!("SELECT d.died_at, d.seq FROM dead d {conditions} ORDER BY {order} LIMIT {look_at}");
        keys.extend(conn.query(&sql, conditions.values(), |row| Ok((row.get(0)?, row.get(1)?))).await?);
    }
    lists::first_letters(&mut keys, |key| *key, (params.sort, look_at));
    // Of a cause they are by now.
    let mut conditions = of_keys(conn, &params.filter, None).await?;
    conditions.one_of_numbers("d.seq", &keys.iter().map(|(_, seq)| *seq).collect::<Vec<_>>());
    let sql = format!(
        "SELECT {DEAD_COLUMNS} FROM dead d JOIN pipeline p ON p.id = d.pipeline
         {conditions} ORDER BY {order} LIMIT {}",
        params.limit.max(1)
    );
    let found = letters(conn, &sql, &conditions).await?;
    Ok(lists::searched(found, &keys, (params.limit.max(1), look_at, params.sort)))
}

/// The conditions of a filter, on `dead d`, for each key of its cause apart: the letters of each are found in their order, so that a
/// page need not be sorted out of all of them.
pub(super) async fn conditions_by_key(conn: &Conn, filter: &DeadFilter) -> Result<Vec<Conditions>, Fault> {
    let Some(cause) = &filter.cause else { return Ok(vec![of_keys(conn, filter, None).await?]) };
    let mut all = Vec::new();
    for key in cause_keys::keys_of(conn, cause).await? {
        all.push(of_keys(conn, filter, Some(&[key])).await?);
    }
    Ok(all)
}

/// The conditions of a filter, on `dead d`.
pub(super) async fn conditions(conn: &Conn, filter: &DeadFilter) -> Result<Conditions, Fault> {
    let keys = match &filter.cause {
        Some(cause) => Some(cause_keys::keys_of(conn, cause).await?),
        None => None,
    };
    of_keys(conn, filter, keys.as_deref()).await
}

/// The conditions of a filter whose cause has these keys.
async fn of_keys(conn: &Conn, filter: &DeadFilter, keys: Option<&[i64]>) -> Result<Conditions, Fault> {
    let mut conditions = Conditions::default();
    if let Some(name) = &filter.pipeline {
        let sql = "SELECT id FROM pipeline WHERE name = $1";
        let id: Option<i64> = conn.query_opt(sql, args![name.as_str()], |row| row.get(0)).await?;
        // No pipeline has the row 0.
        conditions.equal("d.pipeline", Some(id.unwrap_or(0)));
    }
    if !filter.within.is_empty() {
        let mut named = Conditions::default();
        named.within("name", &filter.within);
        let sql = format!("SELECT id FROM pipeline {named}");
        let ids: Vec<i64> = conn.query(&sql, named.values(), |row| row.get(0)).await?;
        conditions.one_of_numbers("d.pipeline", &ids);
    }
    if let Some(keys) = keys {
        conditions.one_of_numbers("d.cause_key", keys);
    }
    conditions.equal("d.round", filter.round.as_ref().map(|round| round.as_str()));
    conditions.equal("d.reason", filter.reason.map(Reason::as_str));
    conditions.equal("d.code", filter.code.as_deref());
    conditions.equal("d.target", filter.target.as_deref());
    conditions.equal("d.proxy", filter.proxy.as_deref());
    conditions.equal("d.gate", filter.gate.map(|gate| gate.as_str()));
    conditions.at_least("d.died_at", filter.since);
    conditions.less_than("d.died_at", filter.until);
    conditions.contains(&["d.message", "d.key", "d.target", "d.input"], filter.text.as_deref());
    Ok(conditions)
}

pub(super) async fn get(conn: &Conn, id: JobId) -> Result<Option<DeadLetter>, Fault> {
    let sql = format!("SELECT {DEAD_COLUMNS} FROM dead d JOIN pipeline p ON p.id = d.pipeline WHERE d.id = $1");
    match conn.query_opt(&sql, args![id], |row| rows::dead_letter(row)).await? {
        Some(letter) => Ok(Some(DeadLetter { failures: Some(rows::failures(conn, id).await?), ..letter })),
        None => Ok(None),
    }
}

/// Who discards, when and why.
#[derive(Clone, Copy)]
struct Record<'a> {
    actor: &'a str,
    why: &'a str,
    now: Timestamp,
}

async fn discard_named(batch: &mut Batch, params: &DiscardDead) -> Result<Vec<JobId>, Fault> {
    job_cancels::check_count(&params.ids)?;
    let record = Record { actor: &params.by.name, why: &params.why, now: params.now };
    let gone = discard(batch, &params.ids, record).await?;
    let named: BTreeSet<JobId> = gone.iter().copied().collect();
    let mut seen = BTreeSet::new();
    let discarded: Vec<JobId> =
        params.ids.iter().filter(|id| named.contains(id) && seen.insert(**id)).copied().collect();
    if let [first, ..] = discarded.as_slice() {
        let object = if discarded.len() == 1 { format!("letter {first}") } else { "letters".to_owned() };
        let pipelines = activity::pipelines_of(batch, &discarded).await?;
        let detail = json!({"letters": discarded.len(), "why": params.why, "pipelines": pipelines});
        activity::note(batch, &params.by, ("discard", &object), &detail, params.now).await?;
    }
    Ok(discarded)
}

/// Discards letters, as far as they are dead; says which.
async fn discard(batch: &mut Batch, ids: &[JobId], record: Record<'_>) -> Result<Vec<JobId>, Fault> {
    let sql = "WITH gone AS (DELETE FROM dead WHERE id = ANY($1) RETURNING *), noted AS (
                   INSERT INTO discarded (job, pipeline, key, target, was, reason, code, attempts, crashes, replays, accepted_at,
                                          died_at, discarded_at, actor, why, number, round, origin)
                   SELECT id, pipeline, key, target, 'dead', reason, code, attempts, crashes, replays, accepted_at, died_at,
                          $2, $3, $4, seq, round, origin FROM gone)
               SELECT id, pipeline, reason, cause_key, round FROM gone";
    let gone = batch.conn().query(sql, args![ids, record.now, record.actor, record.why], |row| {
        let of: (i64, Reason, Option<i64>, String) = (row.get(1)?, rows::parsed(row, 2)?, row.get(3)?, row.get(4)?);
        Ok((rows::job_id(row, 0)?, of))
    });
    let mut discarded = Vec::new();
    for (id, (pipeline, reason, key, round)) in gone.await? {
        if let Some(key) = key {
            let change = batch.tallies.key(key);
            change.dead -= 1;
            change.discarded += 1;
        }
        batch.shift((pipeline, &round), JobState::Dead, Move::Discard)?;
        batch.count(pipeline, record.now, Delta::because(Event::Discarded, reason));
        discarded.push(id);
    }
    batch.conn().execute("DELETE FROM failure WHERE job = ANY($1)", args![discarded]).await?;
    payloads::let_go(batch, &discarded).await?;
    Ok(discarded)
}

async fn expire(batch: &mut Batch, params: &ExpireDead) -> Result<u64, Fault> {
    leader::check(batch, params.led.as_ref()).await?;
    let Some(pipeline) = batch.find_pipeline(&params.pipeline).await? else { return Ok(0) };
    let sql = "SELECT id FROM dead WHERE pipeline = $1 AND kept_from < $2 ORDER BY kept_from LIMIT $3";
    let old = args![pipeline, params.before, params.limit];
    let old = batch.conn().query(sql, old, |row| rows::job_id(row, 0)).await?;
    let record = Record { actor: "retention", why: "older than the pipeline keeps dead letters", now: params.now };
    Ok(discard(batch, &old, record).await?.len() as u64)
}

/// At most so many counts are folded with an import.
const FOLDED_MAX: u32 = 20_000;

async fn import(batch: &mut Batch, params: &ImportDead) -> Result<Vec<Arrival>, Fault> {
    let mut arrivals = Vec::with_capacity(params.letters.len());
    for letter in params.letters.iter() {
        arrivals.push(dead_imports::import(batch, letter, params.now).await?);
    }
    let came =
        |arrival: &Arrival| matches!(arrival, Arrival::New | Arrival::FailedAgain(_) | Arrival::FailedBesides(_));
    let imported = params.letters.iter().zip(&arrivals).filter(|(_, arrival)| came(arrival));
    let pipelines: Vec<_> = imported.map(|(letter, _)| &letter.letter.pipeline).collect();
    if !pipelines.is_empty() {
        let names: BTreeSet<_> = pipelines.iter().collect();
        let detail = json!({"letters": pipelines.len(), "pipelines": names});
        activity::note(batch, &params.by, ("import", "letters"), &detail, params.now).await?;
        // There may be nobody whose chore it is, and many more letters to come.
        tidying::fold(batch, FOLDED_MAX).await?;
    }
    Ok(arrivals)
}
