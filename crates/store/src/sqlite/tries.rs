//! Tries: rows of their own, that no letter, ledger or breaker knows of.

use async_trait::async_trait;
use redrive_core::ids::TryId;
use redrive_core::time::Timestamp;
use rusqlite::{Connection, OptionalExtension, params};
use serde_json::Value;

use super::SqliteStore;
use super::batch::Batch;
use super::conditions::Conditions;
use super::fault::Fault;
use super::rows::{self, RowResult};
use crate::contract::{ListTried, OpenTry, Page, TriedLetter, TryStore, TryView};
use crate::error::{Result, StoreError};

#[async_trait]
impl TryStore for SqliteStore {
    async fn open_try(&self, params: OpenTry) -> Result<()> {
        self.write(move |batch| open(batch, &params)).await
    }

    async fn note_tried(&self, id: TryId, letters: Vec<TriedLetter>) -> Result<()> {
        self.write(move |batch| note(batch, id, &letters)).await
    }

    async fn end_try(&self, id: TryId, outcome: Value, now: Timestamp) -> Result<()> {
        self.write(move |batch| {
            let mut update = batch.statement("UPDATE try SET outcome = ?2, finished_at = ?3 WHERE uuid = ?1")?;
            update.execute(params![id.as_bytes(), outcome.to_string(), now.as_millis()])?;
            Ok(())
        })
        .await
    }

    async fn list_tries(&self, limit: u32) -> Result<Vec<TryView>> {
        self.read(move |conn| {
            let sql = format!(
                "SELECT uuid, actor, selection, edits, tried_with, created_at, finished_at, outcome FROM try
                 ORDER BY id DESC LIMIT {limit}"
            );
            let mut select = conn.prepare_cached(&sql)?;
            Ok(select.query_map([], |row| rows::try_view(row))?.collect::<RowResult<_>>()?)
        })
        .await
    }

    async fn list_tried(&self, params: ListTried) -> Result<Page<TriedLetter>> {
        self.read(move |conn| letters(conn, &params)).await
    }

    async fn forget_tries(&self, before: Timestamp, limit: u32) -> Result<bool> {
        self.write(move |batch| forget(batch, before, limit)).await
    }
}

fn open(batch: &Batch<'_>, params: &OpenTry) -> Result<(), Fault> {
    let mut insert = batch.statement(
        "INSERT OR IGNORE INTO try (uuid, actor, via, selection, edits, tried_with, created_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    )?;
    insert.execute(params![
        params.id.as_bytes(),
        params.by.name,
        params.by.via.as_str(),
        serde_json::to_string(&params.selection)?,
        serde_json::to_string(&params.edits)?,
        serde_json::to_string(&params.tried_with)?,
        params.now.as_millis()
    ])?;
    Ok(())
}

/// The row of a try, if it is still there.
pub(super) fn row(conn: &Connection, id: TryId) -> Result<Option<i64>, Fault> {
    let mut select = conn.prepare_cached("SELECT id FROM try WHERE uuid = ?1")?;
    Ok(select.query_row([id.as_bytes()], |row| row.get(0)).optional()?)
}

fn note(batch: &Batch<'_>, id: TryId, letters: &[TriedLetter]) -> Result<(), Fault> {
    let Some(row) = row(batch.connection(), id)? else { return Ok(()) };
    let mut insert = batch.statement(
        "INSERT OR REPLACE INTO try_letter (try, job, attempts, recovered, key, message) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    )?;
    for letter in letters {
        let TriedLetter { id, attempts, recovered, key, message } = letter;
        insert.execute(params![row, id.as_bytes(), attempts, recovered, key, message])?;
    }
    Ok(())
}

fn letters(conn: &Connection, params: &ListTried) -> Result<Page<TriedLetter>, Fault> {
    let Some(row) = row(conn, params.id)? else { return Ok(Page { items: Vec::new(), next: None }) };
    let mut conditions = Conditions::default();
    conditions.equal("try", Some(row));
    if let Some(cursor) = &params.cursor {
        let after: redrive_core::ids::JobId = cursor.parse().map_err(|_| StoreError::InvalidCursor(cursor.clone()))?;
        conditions.more_than("job", Some(after.as_bytes().to_vec()));
    }
    let limit = params.limit.saturating_add(1);
    let sql = format!(
        "SELECT job, attempts, recovered, key, message FROM try_letter {conditions} ORDER BY job LIMIT {limit}"
    );
    let mut select = conn.prepare_cached(&sql)?;
    let rows = select.query_map(conditions.values(), |row| {
        Ok(TriedLetter {
            id: rows::job_id(row, 0)?,
            attempts: row.get(1)?,
            recovered: row.get(2)?,
            key: row.get(3)?,
            message: row.get(4)?,
        })
    })?;
    Ok(Page::cut(rows.collect::<RowResult<Vec<_>>>()?, params.limit, |letter| letter.id.to_string()))
}

fn forget(batch: &Batch<'_>, before: Timestamp, limit: u32) -> Result<bool, Fault> {
    let mut letters = batch.statement(
        "DELETE FROM try_letter WHERE (try, job) IN
            (SELECT l.try, l.job FROM try t CROSS JOIN try_letter l ON l.try = t.id WHERE t.created_at < ?1 LIMIT ?2)",
    )?;
    if letters.execute(params![before.as_millis(), limit])? >= usize::try_from(limit).unwrap_or(usize::MAX) {
        return Ok(true);
    }
    batch.statement("DELETE FROM try WHERE created_at < ?1")?.execute([before.as_millis()])?;
    Ok(false)
}
