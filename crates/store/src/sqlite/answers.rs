//! Answers that were given, by the key of what was asked.

use async_trait::async_trait;
use redrive_core::time::Timestamp;
use rusqlite::{Connection, OptionalExtension, params};

use super::SqliteStore;
use super::batch::Batch;
use super::fault::Fault;
use crate::contract::{AnswerStore, FindAnswer, KeepAnswer, KeptAnswer};
use crate::error::Result;

#[async_trait]
impl AnswerStore for SqliteStore {
    async fn find_answer(&self, params: FindAnswer) -> Result<Option<KeptAnswer>> {
        self.read(move |conn| find(conn, &params)).await
    }

    async fn keep_answer(&self, params: KeepAnswer) -> Result<()> {
        self.write(move |batch| keep(batch, &params)).await
    }

    async fn forget_answers(&self, before: Timestamp, limit: u32) -> Result<bool> {
        self.write(move |batch| forget(batch, before, limit)).await
    }
}

fn find(conn: &Connection, FindAnswer { who, key, since }: &FindAnswer) -> Result<Option<KeptAnswer>, Fault> {
    let mut select =
        conn.prepare_cached("SELECT request, status, body FROM answer WHERE who = ?1 AND key = ?2 AND kept_at >= ?3")?;
    let found = select.query_row(params![who, key, since.as_millis()], |row| {
        Ok(KeptAnswer { request: row.get(0)?, status: row.get(1)?, body: row.get(2)? })
    });
    Ok(found.optional()?)
}

fn keep(batch: &mut Batch<'_>, KeepAnswer { who, key, answer, now }: &KeepAnswer) -> Result<(), Fault> {
    let KeptAnswer { request, status, body } = answer;
    batch
        .statement(
            "INSERT INTO answer (who, key, kept_at, request, status, body) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
             ON CONFLICT DO NOTHING",
        )?
        .execute(params![who, key, now.as_millis(), request, status, body])?;
    Ok(())
}

fn forget(batch: &mut Batch<'_>, before: Timestamp, limit: u32) -> Result<bool, Fault> {
    let gone = batch
        .statement(
            "DELETE FROM answer WHERE rowid IN (SELECT rowid FROM answer WHERE kept_at < ?1 ORDER BY kept_at LIMIT ?2)",
        )?
        .execute(params![before.as_millis(), limit])?;
    Ok(gone >= limit as usize)
}
