//! Pauses of pipelines, beside their ledgers: whoever leases has read the row anyway.

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;
use redrive_core::ids::PipelineName;
use redrive_core::pipelines::{Contents, Pause};
use rusqlite::{Connection, params};
use serde_json::json;

use super::SqliteStore;
use super::activity;
use super::batch::Batch;
use super::fault::Fault;
use super::rows::{self, COUNTED, LEDGER_COLUMNS, RowResult};
use crate::contract::{ForgetPipeline, PipelineStore, SetPause, Topic};
use crate::error::Result;

#[async_trait]
impl PipelineStore for SqliteStore {
    async fn pauses(&self) -> Result<BTreeMap<PipelineName, Pause>> {
        self.read(list).await
    }

    async fn set_pause(&self, params: SetPause) -> Result<bool> {
        self.write(move |batch| set(batch, &params)).await
    }

    async fn all_pipelines(&self) -> Result<BTreeSet<PipelineName>> {
        self.read(all).await
    }

    async fn forget_pipeline(&self, params: ForgetPipeline) -> Result<Contents> {
        self.write(move |batch| forget(batch, &params)).await
    }
}

fn all(conn: &Connection) -> Result<BTreeSet<PipelineName>, Fault> {
    let mut select = conn.prepare_cached("SELECT name FROM pipeline")?;
    let rows = select.query_map([], |row| rows::parsed(row, 0))?;
    Ok(rows.collect::<RowResult<_>>()?)
}

fn forget(batch: &mut Batch<'_>, ForgetPipeline { pipeline, by, now }: &ForgetPipeline) -> Result<Contents, Fault> {
    let Some(id) = batch.find_pipeline(pipeline)? else { return Ok(Contents::default()) };
    batch.settle_tallies()?;
    let mut select = batch.statement(&format!("SELECT {LEDGER_COLUMNS} FROM pipeline WHERE id = ?1"))?;
    let (_, _, ledger) = select.query_row([id], |row| rows::ledger(row))?;
    // What others of this transaction did is not written yet.
    let changed = *batch.ledger(id);
    let mut select = batch.statement("SELECT count(*) FROM breaker WHERE pipeline = ?1 AND shut = 1")?;
    let held = select.query_row([id], |row| row.get(0))?;
    let contents = Contents::new(&ledger, &changed, held, batch.standing(id)?.paused.is_some());
    if contents.is_empty() {
        batch
            .statement(&format!("UPDATE pipeline AS p SET forgotten_after = {COUNTED} + ?2 WHERE id = ?1"))?
            .execute(params![id, changed.accepted])?;
        batch.touch(Topic::Pipelines);
        let detail = json!({ "pipelines": [pipeline], "ledger": ledger });
        activity::note(batch, by, ("forget", &format!("pipeline {pipeline}")), &detail, *now)?;
    }
    Ok(contents)
}

fn list(conn: &Connection) -> Result<BTreeMap<PipelineName, Pause>, Fault> {
    let mut select = conn.prepare_cached("SELECT name, paused FROM pipeline WHERE paused IS NOT NULL")?;
    let rows = select.query_map([], |row| Ok((rows::parsed(row, 0)?, rows::json(row, 1)?)))?;
    Ok(rows.collect::<RowResult<_>>()?)
}

fn set(batch: &mut Batch<'_>, params: &SetPause) -> Result<bool, Fault> {
    let pipeline = batch.pipeline(&params.pipeline)?;
    let standing = batch.standing(pipeline)?;
    if standing.paused != params.was {
        return Ok(false);
    }
    standing.paused.clone_from(&params.next);
    let text = params.next.as_ref().map(serde_json::to_string).transpose()?;
    batch.statement("UPDATE pipeline SET paused = ?2 WHERE id = ?1")?.execute(params![pipeline, text])?;
    batch.touch(Topic::Pipelines);
    let verb = if params.next.is_some() { "pause" } else { "resume" };
    let object = format!("pipeline {}", params.pipeline);
    activity::note(batch, &params.by, (verb, &object), &params.detail(), params.now)?;
    Ok(true)
}
