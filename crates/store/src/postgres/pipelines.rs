//! Pauses of pipelines, beside their ledgers: whoever leases has read the row anyway.

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;
use redrive_core::ids::PipelineName;
use redrive_core::pipelines::{Contents, Pause};
use serde_json::json;

use super::batch::Batch;
use super::fault::Fault;
use super::rows::{self, COUNTED, LEDGER_COLUMNS};
use super::sql::{Conn, args};
use super::{PostgresStore, activity, run};
use crate::contract::{ForgetPipeline, PipelineStore, SetPause, Topic};
use crate::error::Result;

#[async_trait]
impl PipelineStore for PostgresStore {
    async fn pauses(&self) -> Result<BTreeMap<PipelineName, Pause>> {
        self.read((), run!(list)).await
    }

    async fn set_pause(&self, params: SetPause) -> Result<bool> {
        self.write(params, run!(set)).await
    }

    async fn all_pipelines(&self) -> Result<BTreeSet<PipelineName>> {
        self.read((), run!(all)).await
    }

    async fn forget_pipeline(&self, params: ForgetPipeline) -> Result<Contents> {
        self.write(params, run!(forget)).await
    }
}

async fn all(conn: &Conn, (): &()) -> Result<BTreeSet<PipelineName>, Fault> {
    let names = conn.query("SELECT name FROM pipeline", args![], |row| rows::parsed(row, 0)).await?;
    Ok(names.into_iter().collect())
}

async fn forget(batch: &mut Batch, ForgetPipeline { pipeline, by, now }: &ForgetPipeline) -> Result<Contents, Fault> {
    let Some(id) = batch.find_pipeline(pipeline).await? else { return Ok(Contents::default()) };
    batch.settle_tallies().await?;
    // Nothing comes in meanwhile.
    let sql = format!("SELECT {LEDGER_COLUMNS} FROM pipeline WHERE id = $1 FOR UPDATE");
    let (_, _, ledger) = batch.conn().query_one(&sql, args![id], |row| rows::ledger(row)).await?;
    // What others of this transaction did is not written yet.
    let changed = *batch.ledger(id);
    let sql = "SELECT count(*) FROM breaker WHERE pipeline = $1 AND shut";
    let held = batch.conn().query_one(sql, args![id], |row| row.get(0)).await?;
    let contents = Contents::new(&ledger, &changed, held, batch.standing(id).await?.paused.is_some());
    if contents.is_empty() {
        let sql = format!("UPDATE pipeline AS p SET forgotten_after = {COUNTED} + $2 WHERE id = $1");
        batch.conn().execute(&sql, args![id, changed.accepted]).await?;
        batch.touch(Topic::Pipelines);
        let detail = json!({ "pipelines": [pipeline], "ledger": ledger });
        activity::note(batch, by, ("forget", &format!("pipeline {pipeline}")), &detail, *now).await?;
    }
    Ok(contents)
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
