//! Breakers, and the jobs they hold. Rows exist only for targets that gave trouble.

use std::collections::BTreeMap;

use async_trait::async_trait;
use redrive_core::breakers::{Breaker, BreakerPolicy, BreakerState, Signal};
use redrive_core::failures::Failure;
use redrive_core::time::Timestamp;
use rusqlite::{OptionalExtension, params};

use super::SqliteStore;
use super::batch::Batch;
use super::fault::Fault;
use super::lanes;
use super::rows::{self, RowResult};
use crate::contract::{BreakerStore, BreakerView, SweepBreakers, Topic};
use crate::error::Result;

#[async_trait]
impl BreakerStore for SqliteStore {
    async fn list_breakers(&self) -> Result<Vec<BreakerView>> {
        self.read(|conn| {
            let mut select = conn.prepare_cached(
                "SELECT p.name, b.target, b.held, b.breaker FROM breaker b JOIN pipeline p ON p.id = b.pipeline
                 WHERE b.waiting = 1 ORDER BY p.name, b.target",
            )?;
            let rows = select.query_map([], |row| {
                Ok(BreakerView {
                    pipeline: rows::parsed(row, 0)?,
                    target: row.get(1)?,
                    held: row.get(2)?,
                    breaker: rows::json(row, 3)?,
                })
            })?;
            Ok(rows.collect::<RowResult<_>>()?)
        })
        .await
    }

    async fn sweep_breakers(&self, params: SweepBreakers) -> Result<u64> {
        self.write_about(Topic::Breakers, move |batch| sweep(batch, &params)).await
    }
}

/// Forgets breakers that have nothing more to say.
fn sweep(batch: &mut Batch<'_>, params: &SweepBreakers) -> Result<u64, Fault> {
    let Some(pipeline) = batch.find_pipeline(&params.pipeline)? else { return Ok(0) };
    let mut select = batch.statement("SELECT target, breaker FROM breaker WHERE pipeline = ?1 AND waiting = 0")?;
    let closed = select.query_map([pipeline], |row| Ok((row.get::<_, String>(0)?, rows::json::<Breaker>(row, 1)?)))?;
    let mut swept = 0;
    for (target, breaker) in closed.collect::<RowResult<Vec<_>>>()? {
        if breaker.is_stale(&params.policy, params.now) {
            forget(batch, pipeline, &target)?;
            swept += 1;
        }
    }
    Ok(swept)
}

fn forget(batch: &Batch<'_>, pipeline: i64, target: &str) -> Result<(), Fault> {
    let mut delete = batch.statement("DELETE FROM breaker WHERE pipeline = ?1 AND target = ?2")?;
    delete.execute(params![pipeline, target])?;
    Ok(())
}

/// A breaker and how many jobs it holds.
#[derive(Clone, Debug)]
pub(super) struct Kept {
    pub(super) breaker: Breaker,
    pub(super) held: i64,
}

/// The breakers of a pipeline that are not closed, or hold jobs still, by target.
pub(super) fn waiting(batch: &mut Batch<'_>, pipeline: i64, now: Timestamp) -> Result<BTreeMap<String, Kept>, Fault> {
    if !batch.is_troubled(pipeline)? {
        return Ok(BTreeMap::new());
    }
    let mut select = batch.statement(
        "SELECT target, held, breaker FROM breaker INDEXED BY breaker_waiting WHERE pipeline = ?1 AND waiting = 1",
    )?;
    let rows = select
        .query_map([pipeline], |row| Ok((row.get(0)?, Kept { held: row.get(1)?, breaker: rows::json(row, 2)? })))?;
    let mut waiting = rows.collect::<RowResult<BTreeMap<String, Kept>>>()?;
    for (target, kept) in &mut waiting {
        if kept.breaker.rewind(now) {
            keep(batch, pipeline, target, kept)?;
        }
    }
    Ok(waiting)
}

/// Takes in what a settled attempt says about its target.
pub(super) fn record(
    batch: &mut Batch<'_>,
    (pipeline, target): (i64, &str),
    (signal, failure): (Signal, Option<&Failure>),
    policy: &BreakerPolicy,
    now: Timestamp,
) -> Result<(), Fault> {
    let kept = if batch.is_troubled(pipeline)? { find(batch, pipeline, target, now)? } else { None };
    // A target without a row has given no trouble: nothing to note as long as it answers, or nothing is said of it.
    let mut kept = match (kept, signal) {
        (None, Signal::Answered | Signal::WentOn | Signal::Silent) => return Ok(()),
        (None, _) => Kept { breaker: Breaker::closed(now), held: 0 },
        (Some(kept), _) => kept,
    };
    kept.breaker.record(signal, policy, now);
    if let Some(failure) = failure {
        kept.breaker.explain(signal, failure);
    }
    if kept.held == 0 && kept.breaker.is_idle(policy, now) {
        return forget(batch, pipeline, target);
    }
    keep(batch, pipeline, target, &kept)
}

/// The breaker of a target, as it is now.
pub(super) fn find(batch: &Batch<'_>, pipeline: i64, target: &str, now: Timestamp) -> Result<Option<Kept>, Fault> {
    let mut select = batch.statement("SELECT held, breaker FROM breaker WHERE pipeline = ?1 AND target = ?2")?;
    let row =
        select.query_row(params![pipeline, target], |row| Ok(Kept { held: row.get(0)?, breaker: rows::json(row, 1)? }));
    let mut found: Option<Kept> = row.optional()?;
    if let Some(kept) = &mut found {
        kept.breaker.rewind(now);
    }
    Ok(found)
}

/// Writes a breaker back.
pub(super) fn keep(batch: &mut Batch<'_>, pipeline: i64, target: &str, kept: &Kept) -> Result<(), Fault> {
    batch.set_troubled(pipeline);
    batch.touch(Topic::Breakers);
    let waiting = kept.held > 0 || kept.breaker.state != BreakerState::Closed;
    let mut upsert = batch.statement(
        "INSERT INTO breaker (pipeline, target, held, waiting, breaker) VALUES (?1, ?2, ?3, ?4, ?5)
         ON CONFLICT DO UPDATE SET held = excluded.held, waiting = excluded.waiting, breaker = excluded.breaker",
    )?;
    upsert.execute(params![pipeline, target, kept.held, waiting, serde_json::to_string(&kept.breaker)?])?;
    Ok(())
}

/// Removes a held job, wherever it goes then.
pub(super) fn let_go(batch: &Batch<'_>, pipeline: i64, target: &str, due_at: Timestamp, seq: i64) -> Result<(), Fault> {
    lanes::pull(batch, pipeline, &lanes::held(target), due_at, seq)?;
    let mut update = batch.statement(
        "UPDATE breaker SET held = held - 1, waiting = held > 1 OR breaker ->> 'state' <> 'closed'
         WHERE pipeline = ?1 AND target = ?2",
    )?;
    update.execute(params![pipeline, target])?;
    Ok(())
}
