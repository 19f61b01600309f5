//! Dead letters: listing, showing, discarding and expiring them.

use std::collections::BTreeSet;

use async_trait::async_trait;
use redrive_core::counts::{Delta, Event};
use redrive_core::dead::DeadLetter;
use redrive_core::dead::import::Arrival;
use redrive_core::ids::JobId;
use redrive_core::jobs::json_bytes;
use redrive_core::state::{JobState, Move};
use redrive_core::time::Timestamp;
use rusqlite::{Connection, OptionalExtension, params};

use serde_json::json;

use super::SqliteStore;
use super::activity;
use super::batch::Batch;
use super::conditions::Conditions;
use super::fault::Fault;
use super::rows::{self, DEAD_COLUMNS, RowResult};
use super::{cause_keys, dead_imports, job_cancels, leader, payloads};
use crate::contract::{
    DeadFilter, DeadStore, DiscardDead, ExpireDead, ImportDead, ListDead, Page, Room, SearchDead, SearchedDead,
};
use crate::error::Result;
use crate::lists;

#[async_trait]
impl DeadStore for SqliteStore {
    async fn list_dead(&self, params: ListDead) -> Result<Page<DeadLetter>> {
        self.read(move |conn| list(conn, &params)).await
    }

    async fn search_dead(&self, params: SearchDead) -> Result<SearchedDead> {
        self.read(move |conn| search(conn, &params)).await
    }

    async fn get_dead(&self, id: JobId) -> Result<Option<DeadLetter>> {
        self.read(move |conn| get(conn, id)).await
    }

    async fn discard_dead(&self, params: DiscardDead) -> Result<Vec<JobId>> {
        self.write(move |batch| {
            job_cancels::check_count(&params.ids)?;
            let record = Record { actor: &params.by.name, why: &params.why, now: params.now };
            let mut discarded = Vec::new();
            for id in &params.ids {
                if discard(batch, *id, record)? {
                    discarded.push(*id);
                }
            }
            if let [first, ..] = discarded.as_slice() {
                let object = if discarded.len() == 1 { format!("letter {first}") } else { "letters".to_owned() };
                let pipelines = activity::pipelines_of(batch, &discarded)?;
                let detail = json!({"letters": discarded.len(), "why": params.why, "pipelines": pipelines});
                activity::note(batch, &params.by, ("discard", &object), &detail, params.now)?;
            }
            Ok(discarded)
        })
        .await
    }

    async fn expire_dead(&self, params: ExpireDead) -> Result<u64> {
        self.write(move |batch| expire(batch, &params)).await
    }

    async fn import_dead(&self, params: ImportDead) -> Result<Vec<Arrival>> {
        self.write(move |batch| {
            let import = |letter| dead_imports::import(batch, letter, params.now);
            let arrivals: Vec<_> = params.letters.iter().map(import).collect::<Result<_, Fault>>()?;
            let came = |arrival: &Arrival| {
                matches!(arrival, Arrival::New | Arrival::FailedAgain(_) | Arrival::FailedBesides(_))
            };
            let imported = params.letters.iter().zip(&arrivals).filter(|(_, arrival)| came(arrival));
            let pipelines: Vec<_> = imported.map(|(letter, _)| &letter.letter.pipeline).collect();
            if !pipelines.is_empty() {
                let names: BTreeSet<_> = pipelines.iter().collect();
                let detail = json!({"letters": pipelines.len(), "pipelines": names});
                activity::note(batch, &params.by, ("import", "letters"), &detail, params.now)?;
            }
            Ok(arrivals)
        })
        .await
    }
}

/// Who discards, when and why.
#[derive(Clone, Copy)]
struct Record<'a> {
    actor: &'a str,
    why: &'a str,
    now: Timestamp,
}

pub(super) fn list(conn: &Connection, params: &ListDead) -> Result<Page<DeadLetter>, Fault> {
    let (limit, order) = (params.limit.saturating_add(1), lists::letter_order(params.sort));
    let mut found = Vec::new();
    for mut conditions in conditions_by_key(conn, &params.filter)? {
        if let Some(cursor) = &params.cursor {
            conditions.after_letter(lists::letter_after(cursor, params.sort)?, params.sort);
        }
        let sql = format!(
            "SELECT {DEAD_COLUMNS} FROM dead d JOIN pipeline p ON p.id = d.pipeline
             {conditions} ORDER BY {order} LIMIT {limit}"
        );
        let mut select = conn.prepare_cached(&sql)?;
        let rows = select.query_map(conditions.values(), |row| Ok((row.get::<_, i64>(0)?, rows::dead_letter(row)?)))?;
        found.extend(Room::fill(rows, bytes)?);
    }
    lists::first_letters(&mut found, |(seq, letter)| (letter.died_at.as_millis(), *seq), (params.sort, limit));
    if params.with_failures {
        let mut room = Room::default();
        for (_, letter) in &mut found {
            letter.failures = Some(rows::failures(conn, letter.id)?);
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

fn bytes((_, letter): &(i64, DeadLetter)) -> u64 {
    json_bytes(letter)
}

/// Looks through the next letters: which they are is found by an index, and only in those is the rest looked for.
fn search(conn: &Connection, params: &SearchDead) -> Result<SearchedDead, Fault> {
    let (look_at, order) = (params.look_at.max(1), lists::letter_order(params.sort));
    let mut keys = Vec::new();
    for mut conditions in conditions_by_key(conn, &params.filter.indexed())? {
        if let Some(cursor) = &params.cursor {
            conditions.after_letter(lists::letter_after(cursor, params.sort)?, params.sort);
        }
        let sql = format!("SELECT d.died_at, d.seq FROM dead d {conditions} ORDER BY {order} LIMIT {look_at}");
        let mut select = conn.prepare_cached(&sql)?;
        let rows = select.query_map(conditions.values(), |row| Ok((row.get(0)?, row.get(1)?)))?;
        keys.extend(rows.collect::<RowResult<Vec<(i64, i64)>>>()?);
    }
    lists::first_letters(&mut keys, |key| *key, (params.sort, look_at));
    // Of a cause they are by now.
    let mut conditions = of_keys(&params.filter, None);
    let numbers = conditions.bind(serde_json::to_string(&keys.iter().map(|(_, seq)| seq).collect::<Vec<_>>())?);
    let sql = format!(
        "SELECT {DEAD_COLUMNS} FROM json_each({numbers}) looked CROSS JOIN dead d ON d.seq = looked.value
         CROSS JOIN pipeline p ON p.id = d.pipeline {conditions} ORDER BY {order} LIMIT {}",
        params.limit.max(1)
    );
    let mut select = conn.prepare_cached(&sql)?;
    let rows = select.query_map(conditions.values(), |row| Ok((row.get::<_, i64>(0)?, rows::dead_letter(row)?)))?;
    let found = Room::fill(rows, bytes)?;
    Ok(lists::searched(found, &keys, (params.limit.max(1), look_at, params.sort)))
}

/// The conditions of a filter, on `dead d`, for each key of its cause or each pipeline apart: the letters of each are found in their order, so that a
/// page need not be sorted out of all of them.
pub(super) fn conditions_by_key(conn: &Connection, filter: &DeadFilter) -> Result<Vec<Conditions>, Fault> {
    if let Some(cause) = &filter.cause {
        let keys = cause_keys::keys_of(conn, cause)?;
        return Ok(keys.iter().map(|key| of_keys(filter, Some(std::slice::from_ref(key)))).collect());
    }
    if filter.within.is_empty() || filter.pipeline.is_some() || is_narrow(filter) {
        return Ok(vec![of_keys(filter, None)]);
    }
    let mut named = Conditions::default();
    named.within("name", &filter.within);
    let mut select = conn.prepare_cached(&format!("SELECT name FROM pipeline {named}"))?;
    let names = select.query_map(named.values(), |row| rows::parsed(row, 0))?.collect::<RowResult<Vec<_>>>()?;
    let of_pipeline = |name| DeadFilter { pipeline: Some(name), within: Vec::new(), ..filter.clone() };
    Ok(names.into_iter().map(|name| of_keys(&of_pipeline(name), None)).collect())
}

/// Whether a filter finds fewer letters than a pipeline has, by an index of its own.
const fn is_narrow(filter: &DeadFilter) -> bool {
    filter.reason.is_some()
        || filter.code.is_some()
        || filter.target.is_some()
        || filter.cause.is_some()
        || filter.proxy.is_some()
}

/// The conditions of a filter, on `dead d`.
pub(super) fn conditions(conn: &Connection, filter: &DeadFilter) -> Result<Conditions, Fault> {
    let keys = filter.cause.as_ref().map(|cause| cause_keys::keys_of(conn, cause)).transpose()?;
    Ok(of_keys(filter, keys.as_deref()))
}

/// The conditions of a filter whose cause has these keys.
fn of_keys(filter: &DeadFilter, keys: Option<&[i64]>) -> Conditions {
    let mut conditions = Conditions::default();
    if let Some(name) = &filter.pipeline {
        // Any other filter finds fewer than a pipeline has: the `+` keeps its index out of the way.
        let column = if is_narrow(filter) { "+d.pipeline" } else { "d.pipeline" };
        conditions.equal_to_query(column, "SELECT id FROM pipeline WHERE name =", name.as_str().to_owned());
    }
    conditions.within("(SELECT name FROM pipeline WHERE id = d.pipeline)", &filter.within);
    if let Some(keys) = keys {
        conditions.one_of_numbers("d.cause_key", keys);
    }
    conditions.equal("d.round", filter.round.as_ref().map(|round| round.as_str().to_owned()));
    conditions.equal("d.reason", filter.reason.map(|reason| reason.as_str().to_owned()));
    conditions.equal("d.code", filter.code.clone());
    conditions.equal("d.target", filter.target.clone());
    conditions.equal("d.proxy", filter.proxy.clone());
    conditions.equal("d.gate", filter.gate.map(|gate| gate.as_str().to_owned()));
    conditions.at_least("d.died_at", filter.since.map(Timestamp::as_millis));
    conditions.less_than("d.died_at", filter.until.map(Timestamp::as_millis));
    conditions.contains(&["d.message", "d.key", "d.target", "d.input"], filter.text.as_deref());
    conditions
}

pub(super) fn get(conn: &Connection, id: JobId) -> Result<Option<DeadLetter>, Fault> {
    let sql = format!("SELECT {DEAD_COLUMNS} FROM dead d JOIN pipeline p ON p.id = d.pipeline WHERE d.id = ?1");
    let mut select = conn.prepare_cached(&sql)?;
    let found = select.query_row([id.as_bytes()], |row| rows::dead_letter(row)).optional()?;
    match found {
        Some(letter) => Ok(Some(DeadLetter { failures: Some(rows::failures(conn, id)?), ..letter })),
        None => Ok(None),
    }
}

fn discard(batch: &mut Batch<'_>, id: JobId, record: Record<'_>) -> Result<bool, Fault> {
    let mut select = batch.statement("SELECT pipeline, reason, cause_key, round FROM dead WHERE id = ?1")?;
    let found = select
        .query_row([id.as_bytes()], |row| {
            let (key, round): (Option<i64>, String) = (row.get(2)?, row.get(3)?);
            Ok((row.get(0)?, rows::parsed(row, 1)?, key, round))
        })
        .optional()?;
    let Some((pipeline, reason, key, round)) = found else { return Ok(false) };
    if let Some(key) = key {
        let change = batch.tallies.key(key);
        change.dead -= 1;
        change.discarded += 1;
    }
    batch.shift((pipeline, &round), JobState::Dead, Move::Discard)?;
    batch.count(pipeline, record.now, Delta::because(Event::Discarded, reason));
    batch
        .statement(
            "INSERT INTO discarded (job, pipeline, key, target, was, reason, code, attempts, crashes, replays, accepted_at,
                                    died_at, discarded_at, actor, why, number, round, origin)
             SELECT id, pipeline, key, target, 'dead', reason, code, attempts, crashes, replays, accepted_at, died_at,
                    ?2, ?3, ?4, seq, round, origin
             FROM dead WHERE id = ?1",
        )?
        .execute(params![id.as_bytes(), record.now.as_millis(), record.actor, record.why])?;
    batch.statement("DELETE FROM dead WHERE id = ?1")?.execute([id.as_bytes()])?;
    batch.statement("DELETE FROM failure WHERE job = ?1")?.execute([id.as_bytes()])?;
    payloads::let_go(batch, id, None)?;
    Ok(true)
}

fn expire(batch: &mut Batch<'_>, params: &ExpireDead) -> Result<u64, Fault> {
    leader::check(batch, params.led.as_ref())?;
    let Some(pipeline) = batch.find_pipeline(&params.pipeline)? else { return Ok(0) };
    let mut select =
        batch.statement("SELECT id FROM dead WHERE pipeline = ?1 AND kept_from < ?2 ORDER BY kept_from LIMIT ?3")?;
    let old =
        select.query_map(params![pipeline, params.before.as_millis(), params.limit], |row| rows::job_id(row, 0))?;
    let old = old.collect::<RowResult<Vec<_>>>()?;
    let record = Record { actor: "retention", why: "older than the pipeline keeps dead letters", now: params.now };
    let mut expired = 0;
    for id in old {
        expired += u64::from(discard(batch, id, record)?);
    }
    Ok(expired)
}

#[cfg(test)]
mod tests {
    use super::super::replay_choices::tests::filled;
    use super::super::steps::counted;
    use super::*;
    use redrive_core::dead::LetterSort;

    /// Letters of a cause that was merged are found in their order, key by key: not by sorting all of them.
    #[test]
    fn a_search_in_a_merged_cause_costs_the_same_however_many_letters_it_has() {
        let cost = |letters: u32| {
            let mut conn = filled(letters);
            let cause = Some("c1".parse().expect("an id"));
            let filter = DeadFilter { cause, text: Some("nowhere".into()), ..DeadFilter::default() };
            let params = SearchDead { filter, sort: LetterSort::Newest, limit: 50, look_at: 500, cursor: None };
            let (found, cost) = counted(&mut conn, |conn| search(conn, &params).expect("searched"));
            assert_eq!((found.looked_at, found.letters.len(), found.next.is_some()), (500, 0, true));
            cost
        };
        let (few, many) = (cost(3_000), cost(30_000));
        assert!(many < few * 2, "{few} tens of steps for 3,000 letters, {many} for 30,000");
    }
}
