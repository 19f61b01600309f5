//! Tries: rows of their own, that no letter, ledger or breaker knows of.

use async_trait::async_trait;
use redrive_core::ids::{JobId, TryId};
use redrive_core::time::Timestamp;
use serde_json::Value;

use super::batch::Batch;
use super::conditions::Conditions;
use super::fault::Fault;
use super::sql::{Conn, args};
use super::{PostgresStore, rows, run};
use crate::contract::{ListTried, OpenTry, Page, TriedLetter, TryStore, TryView};
use crate::error::{Result, StoreError};

#[async_trait]
impl TryStore for PostgresStore {
    async fn open_try(&self, params: OpenTry) -> Result<()> {
        self.write(params, run!(open)).await
    }

    async fn note_tried(&self, id: TryId, letters: Vec<TriedLetter>) -> Result<()> {
        self.write((id, letters), run!(note)).await
    }

    async fn end_try(&self, id: TryId, outcome: Value, now: Timestamp) -> Result<()> {
        self.write((id, outcome, now), run!(end)).await
    }

    async fn list_tries(&self, limit: u32) -> Result<Vec<TryView>> {
        self.read(limit, run!(list)).await
    }

    async fn list_tried(&self, params: ListTried) -> Result<Page<TriedLetter>> {
        self.read(params, run!(letters)).await
    }

    async fn forget_tries(&self, before: Timestamp, limit: u32) -> Result<bool> {
        self.write((before, limit), run!(forget)).await
    }
}

async fn open(batch: &mut Batch, params: &OpenTry) -> Result<(), Fault> {
    let sql = "INSERT INTO try (uuid, actor, via, selection, edits, tried_with, created_at)
               VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT DO NOTHING";
    let new = args![
        params.id,
        params.by.name,
        params.by.via.as_str(),
        serde_json::to_string(&params.selection)?,
        serde_json::to_string(&params.edits)?,
        serde_json::to_string(&params.tried_with)?,
        params.now
    ];
    batch.conn().execute(sql, new).await?;
    Ok(())
}

/// The row of a try, if it is still there.
pub(super) async fn row(conn: &Conn, id: TryId) -> Result<Option<i64>, Fault> {
    conn.query_opt("SELECT id FROM try WHERE uuid = $1", args![id], |row| row.get(0)).await
}

async fn note(batch: &mut Batch, (id, letters): &(TryId, Vec<TriedLetter>)) -> Result<(), Fault> {
    let Some(row) = row(batch.conn(), *id).await? else { return Ok(()) };
    for letter in letters {
        let TriedLetter { id, attempts, recovered, key, message } = letter;
        let sql = "INSERT INTO try_letter (try, job, attempts, recovered, key, message) VALUES ($1, $2, $3, $4, $5, $6)
                   ON CONFLICT (try, job) DO UPDATE SET attempts = excluded.attempts, recovered = excluded.recovered,
                       key = excluded.key, message = excluded.message";
        batch.conn().execute(sql, args![row, id, attempts, recovered, key, message]).await?;
    }
    Ok(())
}

async fn end(batch: &mut Batch, (id, outcome, now): &(TryId, Value, Timestamp)) -> Result<(), Fault> {
    let sql = "UPDATE try SET outcome = $2, finished_at = $3 WHERE uuid = $1";
    batch.conn().execute(sql, args![id, outcome.to_string(), now]).await?;
    Ok(())
}

async fn list(conn: &Conn, limit: &u32) -> Result<Vec<TryView>, Fault> {
    let sql = "SELECT uuid, actor, selection, edits, tried_with, created_at, finished_at, outcome FROM try
               ORDER BY id DESC LIMIT $1";
    conn.query(sql, args![limit], |row| rows::try_view(row)).await
}

async fn letters(conn: &Conn, params: &ListTried) -> Result<Page<TriedLetter>, Fault> {
    let Some(row) = row(conn, params.id).await? else { return Ok(Page { items: Vec::new(), next: None }) };
    let mut conditions = Conditions::default();
    conditions.equal("try", Some(row));
    if let Some(cursor) = &params.cursor {
        let after: JobId = cursor.parse().map_err(|_| StoreError::InvalidCursor(cursor.clone()))?;
        conditions.more_than("job", Some(after));
    }
    let limit = params.limit.saturating_add(1);
    let sql = format!(
        "SELECT job, attempts, recovered, key, message FROM try_letter {conditions} ORDER BY job LIMIT {limit}"
    );
    let found = conn.query(&sql, conditions.values(), |row| {
        Ok(TriedLetter {
            id: rows::job_id(row, 0)?,
            attempts: row.get(1)?,
            recovered: row.get(2)?,
            key: row.get(3)?,
            message: row.get(4)?,
        })
    });
    Ok(Page::cut(found.await?, params.limit, |letter| letter.id.to_string()))
}

async fn forget(batch: &mut Batch, (before, limit): &(Timestamp, u32)) -> Result<bool, Fault> {
    let sql = "DELETE FROM try_letter WHERE (try, job) IN
                  (SELECT l.try, l.job FROM try t JOIN try_letter l ON l.try = t.id WHERE t.created_at < $1 LIMIT $2)";
    if batch.conn().execute(sql, args![before, limit]).await? >= u64::from(*limit) {
        return Ok(true);
    }
    batch.conn().execute("DELETE FROM try WHERE created_at < $1", args![before]).await?;
    Ok(false)
}
