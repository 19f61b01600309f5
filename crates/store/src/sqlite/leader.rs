//! The leader: a row per thing that is led, taken by comparing and setting.

use async_trait::async_trait;
use redrive_core::leader::{Leading, term};
use rusqlite::{OptionalExtension, Row, params};

use super::SqliteStore;
use super::batch::Batch;
use super::fault::Fault;
use super::rows::{self, RowResult};
use crate::contract::{ChoreView, Lead, LeaderStore, Led, NoteChore};
use crate::error::{Result, StoreError};

#[async_trait]
impl LeaderStore for SqliteStore {
    async fn lead(&self, params: Lead) -> Result<Vec<Option<u64>>> {
        self.write(move |batch| lead(batch, &params)).await
    }

    async fn list_chores(&self, led: String) -> Result<Vec<ChoreView>> {
        self.read(move |conn| {
            let mut select = conn.prepare_cached("SELECT name, last_run FROM chore WHERE led = ?1 ORDER BY name")?;
            let rows =
                select.query_map([&led], |row| Ok(ChoreView { name: row.get(0)?, last_run: rows::time(row, 1)? }))?;
            Ok(rows.collect::<RowResult<_>>()?)
        })
        .await
    }

    async fn note_chore(&self, params: NoteChore) -> Result<bool> {
        self.write(move |batch| note(batch, &params)).await
    }
}

fn lead(batch: &Batch<'_>, params: &Lead) -> Result<Vec<Option<u64>>, Fault> {
    let mut select = batch.statement(
        "SELECT holder, term, until, EXISTS (SELECT 1 FROM worker w WHERE w.id = leader.holder) FROM leader WHERE name = ?1",
    )?;
    let mut put =
        batch.statement("INSERT OR REPLACE INTO leader (name, holder, term, until) VALUES (?1, ?2, ?3, ?4)")?;
    let mut terms = Vec::with_capacity(params.names.len());
    for name in &params.names {
        let leads = select.query_row([name], leading).optional()?;
        let term = term(leads.as_ref(), params.holder, params.now);
        if let Some(term) = term {
            put.execute(params![name, params.holder.as_bytes(), term, params.until.as_millis()])?;
        }
        terms.push(term);
    }
    Ok(terms)
}

fn leading(row: &Row<'_>) -> RowResult<Leading> {
    let (holder, until) = (rows::worker_id(row, 0)?, rows::time(row, 2)?);
    Ok(Leading { holder, term: row.get(1)?, until, is_listed: row.get(3)? })
}

/// Refuses what is no longer for its caller to do.
pub(super) fn check(batch: &Batch<'_>, led: Option<&Led>) -> Result<(), Fault> {
    let Some(Led { name, term }) = led else { return Ok(()) };
    let mut leads = batch.statement("SELECT 1 FROM leader WHERE name = ?1 AND term = ?2")?;
    match leads.exists(params![name, term])? {
        true => Ok(()),
        false => Err(StoreError::Conflict { what: format!("who leads {name}") }.into()),
    }
}

fn note(batch: &Batch<'_>, params: &NoteChore) -> Result<bool, Fault> {
    let mut leads = batch.statement("SELECT 1 FROM leader WHERE name = ?1 AND term = ?2")?;
    if !leads.exists(params![params.led, params.term])? {
        return Ok(false);
    }
    let now = params.now.as_millis();
    let noted = match params.was {
        Some(was) => batch
            .statement("UPDATE chore SET last_run = ?3 WHERE led = ?1 AND name = ?2 AND last_run = ?4")?
            .execute(params![params.led, params.name, now, was.as_millis()])?,
        None => batch
            .statement("INSERT OR IGNORE INTO chore (led, name, last_run) VALUES (?1, ?2, ?3)")?
            .execute(params![params.led, params.name, now])?,
    };
    Ok(noted == 1)
}
