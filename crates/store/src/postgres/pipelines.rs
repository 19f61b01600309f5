//! Pauses of pipelines, beside their ledgers: whoever leases has read the row anyway.

use std::collections::BTreeMap;

use async_trait::async_trait;
use redrive_core::ids::PipelineName;
use redrive_core::pipelines::Pause;

use super::batch::Batch;
use super::fault::Fault;
use super::sql::{Conn, args};
use super::{PostgresStore, activity, rows, run};
use crate::contract::{PipelineStore, SetPause, Topic};
use crate::error::Result;

#[async_trait]
impl PipelineStore for PostgresStore {
    async fn pauses(&self) -> Result<BTreeMap<PipelineName, Pause>> {
        self.read((), run!(list)).await
    }

    async fn set_pause(&self, params: SetPause) -> Result<bool> {
        self.write(params, run!(set)).await
    }
}

async fn list(conn: &Conn, (): &()) -> Result<BTreeMap<PipelineName, Pause>, Fault> {
    let sql = "SELECT name, paused FROM pipeline WHERE paused IS NOT NULL";
    let pauses = conn.query(sql, args![], |row| Ok((rows::parsed(row, 0)?, rows::json(row, 1)?))).await?;
    Ok(pauses.into_iter().collect())
}

async fn set(batch: &mut Batch, params: &SetPause) -> Result<bool, Fault> {
    let pipeline = batch.pipeline(&params.pipeline).await?;
    let standing = batch.standing(pipeline).await?;
    if standing.paused != params.was {
        return Ok(false);
    }
    standing.paused.clone_from(&params.next);
    let text = params.next.as_ref().map(serde_json::to_string).transpose()?;
    batch.conn().execute("UPDATE pipeline SET paused = $2 WHERE id = $1", args![pipeline, text]).await?;
    batch.touch(Topic::Pipelines);
    let verb = if params.next.is_some() { "pause" } else { "resume" };
    let object = format!("pipeline {}", params.pipeline);
    activity::note(batch, &params.by, (verb, &object), &params.detail(), params.now).await?;
    Ok(true)
}
