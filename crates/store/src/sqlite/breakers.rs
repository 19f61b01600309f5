//! Breakers, and what was said of their targets. Rows exist only for targets that gave trouble.

use async_trait::async_trait;
use redrive_core::breakers::{Breaker, BreakerChange, BreakerRow, BreakerState, BreakerView, Gates, NextBreaker, Said};
use redrive_core::ids::PipelineName;
use redrive_core::time::Timestamp;
use rusqlite::{Connection, OptionalExtension, params};

use super::SqliteStore;
use super::activity;
use super::batch::Batch;
use super::fault::Fault;
use super::rows::{self, RowResult};
use crate::contract::{BreakerStore, BreakersOf, Topic, TurnBreaker};
use crate::error::Result;

/// At most so much of what was said of a target is answered at once.
const PENDING_MAX: usize = 1_000;

#[async_trait]
impl BreakerStore for SqliteStore {
    async fn list_breakers(&self) -> Result<Vec<BreakerView>> {
        self.read(list).await
    }

    async fn breakers_of(&self, params: BreakersOf) -> Result<Vec<BreakerRow>> {
        self.read(move |conn| {
            let mut select = conn.prepare_cached(
                "SELECT t.target, p.id FROM pipeline p JOIN
                    (SELECT pipeline, target FROM breaker UNION SELECT pipeline, target FROM breaker_said) t
                    ON t.pipeline = p.id
                 WHERE p.name = ?1 AND t.target > ?2 ORDER BY t.target LIMIT ?3",
            )?;
            let after = params.after.as_deref().unwrap_or_default();
            let page = select.query_map(params![params.pipeline.as_str(), after, params.limit], |row| {
                Ok((row.get::<_, String>(0)?, row.get(1)?))
            })?;
            let page = page.collect::<RowResult<Vec<_>>>()?;
            page.into_iter().map(|(target, id)| find(conn, (&params.pipeline, id), &target, 0)).collect()
        })
        .await
    }

    async fn change_breakers(&self, changes: Vec<BreakerChange>) -> Result<Vec<BreakerRow>> {
        self.write(move |batch| change(batch, &changes, &[])).await
    }

    async fn get_breaker(&self, pipeline: PipelineName, target: String) -> Result<BreakerRow> {
        self.read(move |conn| {
            let mut select = conn.prepare_cached("SELECT id FROM pipeline WHERE name = ?1")?;
            let id = select.query_row([pipeline.as_str()], |row| row.get(0)).optional()?;
            // No pipeline has the row 0: nothing is found of one that is not known.
            find(conn, (&pipeline, id.unwrap_or(0)), &target, 0)
        })
        .await
    }

    async fn turn_breaker(&self, params: TurnBreaker) -> Result<bool> {
        self.write(move |batch| turn(batch, &params)).await
    }
}

fn list(conn: &Connection) -> Result<Vec<BreakerView>, Fault> {
    let mut select = conn.prepare_cached(
        "WITH waiting AS (SELECT pipeline, substr(name, instr(name, 'h') + 1) AS target, sum(jobs) AS jobs,
                                 sum(jobs) FILTER (WHERE name >= 'r') AS replayed
                          FROM lane WHERE jobs > 0 GROUP BY 1, 2)
         SELECT p.name, b.target, ifnull(w.jobs, 0), b.breaker, ifnull(w.replayed, 0)
         FROM breaker b INDEXED BY breaker_shut JOIN pipeline p ON p.id = b.pipeline
         LEFT JOIN waiting w ON w.pipeline = b.pipeline AND w.target = b.target WHERE b.shut = 1
         UNION ALL
         SELECT p.name, w.target, w.jobs, b.breaker, ifnull(w.replayed, 0)
         FROM waiting w JOIN pipeline p ON p.id = w.pipeline
         LEFT JOIN breaker b ON b.pipeline = w.pipeline AND b.target = w.target WHERE ifnull(b.shut, 0) = 0
         ORDER BY 1, 2",
    )?;
    let rows = select.query_map([], |row| {
        let closed = || Breaker::closed(Timestamp::from_millis(0));
        Ok(BreakerView {
            pipeline: rows::parsed(row, 0)?,
            target: row.get(1)?,
            held: row.get(2)?,
            held_of_replays: row.get(4)?,
            breaker: rows::json_opt(row, 3)?.unwrap_or_else(closed),
        })
    })?;
    Ok(rows.collect::<RowResult<_>>()?)
}

/// The breakers of a pipeline that are not closed.
pub(super) fn gates(batch: &mut Batch<'_>, name: &PipelineName, pipeline: i64) -> Result<Gates, Fault> {
    let version = batch.standing(pipeline)?.gates;
    let mut select =
        batch.statement("SELECT target FROM breaker INDEXED BY breaker_shut WHERE pipeline = ?1 AND shut = 1")?;
    let targets = select.query_map([pipeline], |row| row.get::<_, String>(0))?.collect::<RowResult<Vec<_>>>()?;
    let as_of = batch.standing(pipeline)?.epoch;
    let row = |target: String| find(batch.connection(), (name, pipeline), &target, as_of);
    Ok(Gates { version, rows: targets.into_iter().map(row).collect::<Result<_, _>>()? })
}

/// Changes breakers, by what was said in settlements by which jobs moved. Answers with those that there are.
pub(super) fn change(
    batch: &mut Batch<'_>,
    changes: &[BreakerChange],
    moved: &[bool],
) -> Result<Vec<BreakerRow>, Fault> {
    let mut rows = Vec::new();
    for change in changes {
        let Some(pipeline) = batch.find_pipeline(&change.pipeline)? else { continue };
        let applied = |by: usize| moved.get(by) == Some(&true);
        let heard: Vec<&Said> = change.heard.iter().filter(|h| applied(h.by)).map(|h| &h.said).collect();
        let is_whole = heard.len() == change.heard.len();
        let next = change.next.as_ref().filter(|_| is_whole);
        let idle = next.is_some_and(|next| next.was.is_none() && next.breaker.is_none());
        if idle && !batch.standing(pipeline)?.is_troubled {
            continue;
        }
        if !write(batch, (pipeline, &change.target), next)? {
            keep_said(batch, (pipeline, &change.target), &heard)?;
        }
        let as_of = batch.standing(pipeline)?.epoch;
        let row = find(batch.connection(), (&change.pipeline, pipeline), &change.target, as_of)?;
        if !idle || row.version.is_some() || !row.pending.is_empty() {
            rows.push(row);
        }
    }
    Ok(rows)
}

/// Writes a breaker that a person turned.
fn turn(batch: &mut Batch<'_>, params: &TurnBreaker) -> Result<bool, Fault> {
    let pipeline = batch.pipeline(&params.pipeline)?;
    let written = write(batch, (pipeline, &params.target), Some(&params.next))?;
    if written {
        let object = format!("breaker {}", params.target);
        activity::note(batch, &params.by, (params.verb, &object), &params.detail(), params.now)?;
    }
    Ok(written)
}

/// Writes a breaker, if it is still the one that it was made from.
fn write(batch: &mut Batch<'_>, (pipeline, target): (i64, &str), next: Option<&NextBreaker>) -> Result<bool, Fault> {
    let Some(next) = next else { return Ok(false) };
    let mut select = batch.statement("SELECT version, shut FROM breaker WHERE pipeline = ?1 AND target = ?2")?;
    let now = select.query_row(params![pipeline, target], |row| Ok((row.get::<_, u64>(0)?, row.get(1)?))).optional()?;
    if now.map(|(version, _)| version) != next.was {
        return Ok(false);
    }
    if now.is_some() || next.breaker.is_some() {
        let was_shut = now.is_some_and(|(_, shut)| shut);
        put(batch, (pipeline, target), next.breaker.as_ref(), was_shut)?;
    }
    if next.folded_to > 0 {
        batch
            .statement("DELETE FROM breaker_said WHERE pipeline = ?1 AND target = ?2 AND id <= ?3")?
            .execute(params![pipeline, target, next.folded_to])?;
    }
    Ok(true)
}

fn put(
    batch: &mut Batch<'_>,
    (pipeline, target): (i64, &str),
    breaker: Option<&Breaker>,
    was_shut: bool,
) -> Result<(), Fault> {
    let shut = breaker.is_some_and(|breaker| breaker.state != BreakerState::Closed);
    if shut || was_shut {
        // Nobody waits for one that is closed and stays so.
        batch.touch(Topic::Breakers);
    }
    let standing = batch.standing(pipeline)?;
    let version = standing.begin_epoch();
    standing.is_troubled = true;
    if shut || was_shut {
        standing.gates = version;
    }
    match breaker {
        Some(breaker) => batch
            .statement(
                "INSERT INTO breaker (pipeline, target, version, shut, breaker) VALUES (?1, ?2, ?3, ?4, ?5)
                 ON CONFLICT DO UPDATE SET version = excluded.version, shut = excluded.shut, breaker = excluded.breaker",
            )?
            .execute(params![pipeline, target, version, shut, serde_json::to_string(breaker)?])?,
        None => batch
            .statement("DELETE FROM breaker WHERE pipeline = ?1 AND target = ?2")?
            .execute(params![pipeline, target])?,
    };
    Ok(())
}

/// Keeps what was said for who changes the breaker next.
fn keep_said(batch: &mut Batch<'_>, (pipeline, target): (i64, &str), heard: &[&Said]) -> Result<(), Fault> {
    let mut insert = batch.statement("INSERT INTO breaker_said (pipeline, target, said) VALUES (?1, ?2, ?3)")?;
    for said in heard {
        insert.execute(params![pipeline, target, serde_json::to_string(said)?])?;
    }
    if !heard.is_empty() {
        let standing = batch.standing(pipeline)?;
        // Whoever is answered with this is later than who was answered without.
        standing.begin_epoch();
        standing.is_troubled = true;
    }
    Ok(())
}

/// The breaker of a target, and what is to be folded into it.
fn find(
    conn: &Connection,
    (name, pipeline): (&PipelineName, i64),
    target: &str,
    as_of: u64,
) -> Result<BreakerRow, Fault> {
    let mut select = conn.prepare_cached("SELECT version, breaker FROM breaker WHERE pipeline = ?1 AND target = ?2")?;
    let row = select.query_row(params![pipeline, target], |row| Ok((row.get(0)?, rows::json(row, 1)?)));
    let found: Option<(u64, Breaker)> = row.optional()?;
    let mut select =
        conn.prepare_cached("SELECT id, said FROM breaker_said WHERE pipeline = ?1 AND target = ?2 ORDER BY id")?;
    let said = select.query_map(params![pipeline, target], |row| Ok((row.get(0)?, rows::json(row, 1)?)))?;
    let said: Vec<(i64, Said)> = said.take(PENDING_MAX).collect::<RowResult<_>>()?;
    let pending_to = said.last().map_or(0, |(id, _)| *id);
    let (version, breaker) = found.unzip();
    Ok(BreakerRow {
        pipeline: name.clone(),
        target: target.to_owned(),
        version,
        breaker,
        pending: said.into_iter().map(|(_, said)| said).collect(),
        pending_to,
        as_of: as_of.max(version.unwrap_or_default()),
    })
}
