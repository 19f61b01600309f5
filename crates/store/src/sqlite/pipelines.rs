//! Pauses of pipelines, beside their ledgers: whoever leases has read the row anyway.

use std::collections::BTreeMap;

use async_trait::async_trait;
use redrive_core::ids::PipelineName;
use redrive_core::pipelines::Pause;
use rusqlite::{Connection, params};

use super::SqliteStore;
use super::activity;
use super::batch::Batch;
use super::fault::Fault;
use super::rows::{self, RowResult};
use crate::contract::{PipelineStore, SetPause, Topic};
use crate::error::Result;

#[async_trait]
impl PipelineStore for SqliteStore {
    async fn pauses(&self) -> Result<BTreeMap<PipelineName, Pause>> {
        self.read(list).await
    }

    async fn set_pause(&self, params: SetPause) -> Result<bool> {
        self.write(move |batch| set(batch, &params)).await
    }
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
