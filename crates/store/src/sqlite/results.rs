//! Results that are kept: written with the transaction that settles their jobs, listed, and removed when they are too old or too many.

use async_trait::async_trait;
use redrive_core::ids::JobId;
use redrive_core::results::JobResult;
use rusqlite::{Connection, params};

use super::batch::Batch;
use super::fault::Fault;
use super::rows::RowResult;
use super::{SqliteStore, leader};
use crate::contract::{ForgetResults, ListResults, Page, ResultStore};
use crate::error::Result;
use crate::results::{self, Listing, OldRow, Outdated, ROWS_PER_PAGE};

#[async_trait]
impl ResultStore for SqliteStore {
    async fn list_results(&self, params: ListResults) -> Result<Page<JobResult>> {
        self.read(move |conn| list(conn, &params)).await
    }

    async fn forget_results(&self, params: ForgetResults) -> Result<bool> {
        self.write(move |batch| forget(batch, &params)).await
    }
}

/// Writes the results of a transaction.
pub(super) fn write(batch: &mut Batch<'_>) -> Result<(), Fault> {
    for ((pipeline, at), lines) in std::mem::take(&mut batch.tallies.results) {
        for packed in results::pack(&lines) {
            batch
                .statement("INSERT INTO result (pipeline, at, jobs, lines) VALUES (?1, ?2, ?3, ?4)")?
                .execute(params![pipeline, at, packed.jobs, packed.lines])?;
            batch.ledger(pipeline).results += packed.counted();
        }
    }
    Ok(())
}

/// Finds the result of a job that is done.
pub(super) fn find(conn: &Connection, job: JobId) -> Result<Option<JobResult>, Fault> {
    let mut select = conn.prepare_cached(
        "SELECT r.lines FROM done d JOIN result r ON r.pipeline = d.pipeline AND r.at = d.done_at WHERE d.job = ?1",
    )?;
    let mut rows = select.query([job.as_bytes()])?;
    while let Some(row) = rows.next()? {
        if let Some(result) = results::find(row, job)? {
            return Ok(Some(result));
        }
    }
    Ok(None)
}

fn list(conn: &Connection, params: &ListResults) -> Result<Page<JobResult>, Fault> {
    let mut listing = Listing::new(params)?;
    let (at, id) = listing.first_row();
    let mut select = conn.prepare_cached(
        "SELECT lines, at, id FROM result WHERE pipeline = (SELECT id FROM pipeline WHERE name = ?1)
         AND (at, id) >= (?2, ?3) AND at < ?4 ORDER BY at, id LIMIT ?5",
    )?;
    let mut rows = select.query(params![params.pipeline.as_str(), at, id, listing.until(), ROWS_PER_PAGE])?;
    while let Some(row) = rows.next()? {
        if !listing.take(row)? {
            break;
        }
    }
    Ok(listing.page())
}

fn forget(batch: &mut Batch<'_>, params: &ForgetResults) -> Result<bool, Fault> {
    leader::check(batch, params.led.as_ref())?;
    let Some(pipeline) = batch.find_pipeline(&params.pipeline)? else { return Ok(false) };
    let bytes: i64 =
        batch.statement("SELECT result_bytes FROM pipeline WHERE id = ?1")?.query_row([pipeline], |row| row.get(0))?;
    let oldest = batch
        .statement("SELECT id, at, jobs, length(lines) FROM result WHERE pipeline = ?1 ORDER BY at, id LIMIT ?2")?
        .query_map(params![pipeline, params.limit], |row| OldRow::read(row))?
        .collect::<RowResult<Vec<_>>>()?;
    let bytes = bytes + batch.ledger(pipeline).results.bytes;
    let Outdated { rows, change, more } = Outdated::among(&oldest, bytes, params);
    for id in rows {
        batch.statement("DELETE FROM result WHERE id = ?1")?.execute([id])?;
    }
    batch.ledger(pipeline).results += change;
    Ok(more)
}
