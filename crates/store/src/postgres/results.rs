//! Results that are kept: written with the transaction that settles their jobs, listed, and removed when they are too old or too many.

use async_trait::async_trait;
use redrive_core::ids::JobId;
use redrive_core::results::JobResult;

use super::batch::Batch;
use super::fault::Fault;
use super::sql::{Bytes, Conn, args};
use super::{PostgresStore, leader, run};
use crate::contract::{ForgetResults, ListResults, Page, ResultStore};
use crate::error::Result;
use crate::results::{self, Listing, OldRow, Outdated, ROWS_PER_PAGE};

#[async_trait]
impl ResultStore for PostgresStore {
    async fn list_results(&self, params: ListResults) -> Result<Page<JobResult>> {
        self.read(params, run!(list)).await
    }

    async fn forget_results(&self, params: ForgetResults) -> Result<bool> {
        self.write(params, run!(forget)).await
    }
}

/// Writes the results of a transaction.
pub(super) async fn write(batch: &mut Batch) -> Result<(), Fault> {
    for ((pipeline, at), lines) in std::mem::take(&mut batch.tallies.results) {
        for packed in results::pack(&lines) {
            let sql = "INSERT INTO result (pipeline, at, jobs, lines) VALUES ($1, $2, $3, $4)";
            batch.conn().send(sql, args![pipeline, at, packed.jobs, Bytes(&packed.lines)]).await?;
            batch.ledger(pipeline).results += packed.counted();
        }
    }
    Ok(())
}

/// Finds the result of a job that is done.
pub(super) async fn find(conn: &Conn, job: JobId) -> Result<Option<JobResult>, Fault> {
    let sql =
        "SELECT r.lines FROM done d JOIN result r ON r.pipeline = d.pipeline AND r.at = d.done_at WHERE d.job = $1";
    let found = conn.query(sql, args![job], |row| results::find(row, job)).await?;
    Ok(found.into_iter().flatten().next())
}

async fn list(conn: &Conn, params: &ListResults) -> Result<Page<JobResult>, Fault> {
    let mut listing = Listing::new(params)?;
    let (at, id) = listing.first_row();
    let sql = "SELECT lines, at, id FROM result WHERE pipeline = (SELECT id FROM pipeline WHERE name = $1)
               AND (at, id) >= ($2, $3) AND at < $4 ORDER BY at, id LIMIT $5";
    let asked = args![params.pipeline.as_str(), at, id, listing.until(), ROWS_PER_PAGE];
    let mut goes_on = true;
    conn.query(sql, asked, |row| {
        goes_on = goes_on && listing.take(row)?;
        Ok(())
    })
    .await?;
    Ok(listing.page())
}

async fn forget(batch: &mut Batch, params: &ForgetResults) -> Result<bool, Fault> {
    leader::check(batch, params.led.as_ref()).await?;
    let Some(pipeline) = batch.find_pipeline(&params.pipeline).await? else { return Ok(false) };
    let sql = "SELECT result_bytes FROM pipeline WHERE id = $1 FOR NO KEY UPDATE";
    let bytes: i64 = batch.conn().query_one(sql, args![pipeline], |row| row.get(0)).await?;
    let sql = "SELECT id, at, jobs, length(lines)::bigint FROM result WHERE pipeline = $1 ORDER BY at, id LIMIT $2";
    let oldest = batch.conn().query(sql, args![pipeline, params.limit], |row| OldRow::read(row)).await?;
    let bytes = bytes + batch.ledger(pipeline).results.bytes;
    let Outdated { rows, change, more } = Outdated::among(&oldest, bytes, params);
    if !rows.is_empty() {
        batch.conn().execute("DELETE FROM result WHERE id = ANY($1)", args![rows]).await?;
        batch.ledger(pipeline).results += change;
    }
    Ok(more)
}
