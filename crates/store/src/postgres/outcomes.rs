//! Outcomes, added to what is counted of jobs that run here.

use async_trait::async_trait;

use super::batch::Batch;
use super::fault::Fault;
use super::sql::args;
use super::{PostgresStore, run};
use crate::contract::{CountOutcomes, OutcomeStore};
use crate::error::Result;

#[async_trait]
impl OutcomeStore for PostgresStore {
    async fn count_outcomes(&self, params: CountOutcomes) -> Result<bool> {
        self.write(params, run!(count)).await
    }
}

async fn count(batch: &mut Batch, params: &CountOutcomes) -> Result<bool, Fault> {
    let sql = "INSERT INTO outcome (client, seq, noted_at) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING";
    if batch.conn().execute(sql, args![params.client, params.seq, params.now]).await? == 0 {
        return Ok(false);
    }
    let sql = "DELETE FROM outcome WHERE (client, seq) IN
               (SELECT client, seq FROM outcome WHERE noted_at < $1 ORDER BY noted_at LIMIT 10)";
    batch.conn().execute(sql, args![params.forget_before]).await?;
    for count in &params.counts {
        let pipeline = batch.pipeline(&count.pipeline).await?;
        batch.tallies.outcome(pipeline, count, params.now);
    }
    Ok(true)
}
