//! Outcomes, added to what is counted of jobs that run here.

use async_trait::async_trait;
use rusqlite::params;

use super::SqliteStore;
use super::batch::Batch;
use super::fault::Fault;
use crate::contract::{CountOutcomes, OutcomeStore};
use crate::error::Result;

#[async_trait]
impl OutcomeStore for SqliteStore {
    async fn count_outcomes(&self, params: CountOutcomes) -> Result<bool> {
        self.write(move |batch| count(batch, &params)).await
    }
}

fn count(batch: &mut Batch<'_>, params: &CountOutcomes) -> Result<bool, Fault> {
    let noted = batch
        .statement("INSERT INTO outcome (client, seq, noted_at) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING")?
        .execute(params![params.client, params.seq, params.now.as_millis()])?;
    if noted == 0 {
        return Ok(false);
    }
    batch
        .statement(
            "DELETE FROM outcome WHERE rowid IN
             (SELECT rowid FROM outcome WHERE noted_at < ?1 ORDER BY noted_at LIMIT 10)",
        )?
        .execute([params.forget_before.as_millis()])?;
    for count in &params.counts {
        let pipeline = batch.pipeline(&count.pipeline)?;
        batch.tallies.outcome(pipeline, count, params.now);
    }
    Ok(true)
}
