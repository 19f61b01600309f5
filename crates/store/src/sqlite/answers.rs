//! Answers that were given, by the key of what was asked.

use async_trait::async_trait;
use redrive_core::time::Timestamp;
use rusqlite::params;

use super::SqliteStore;
use super::batch::Batch;
use super::fault::Fault;
use super::rows;
use crate::contract::{AnswerStore, BeginRequest, BegunRequest, KeepAnswer, KeptAnswer};
use crate::error::Result;

#[async_trait]
impl AnswerStore for SqliteStore {
    async fn begin_request(&self, params: BeginRequest) -> Result<BegunRequest> {
        self.write(move |batch| begin(batch, &params)).await
    }

    async fn keep_answer(&self, params: KeepAnswer) -> Result<()> {
        self.write(move |batch| keep(batch, &params)).await
    }

    async fn forget_answers(&self, before: Timestamp, limit: u32) -> Result<bool> {
        self.write(move |batch| forget(batch, before, limit)).await
    }
}

fn begin(batch: &mut Batch<'_>, params: &BeginRequest) -> Result<BegunRequest, Fault> {
    let BeginRequest { who, key, request, since, now } = params;
    batch
        .statement(
            "INSERT INTO answer (who, key, kept_at, request, status, body) VALUES (?1, ?2, ?3, ?4, 0, x'')
             ON CONFLICT DO UPDATE SET kept_at = excluded.kept_at, request = excluded.request, status = 0, body = x''
             WHERE kept_at < ?5 OR (status = 0 AND request <> excluded.request)",
        )?
        .execute(params![who, key, now.as_millis(), request, since.as_millis()])?;
    let mut select =
        batch.statement("SELECT kept_at, request, status, body FROM answer WHERE who = ?1 AND key = ?2")?;
    Ok(select.query_row(params![who, key], |row| {
        let answer = KeptAnswer { request: row.get(1)?, status: row.get(2)?, body: row.get(3)? };
        Ok(BegunRequest { begun_at: rows::time(row, 0)?, answer: Some(answer).filter(|answer| answer.status > 0) })
    })?)
}

fn keep(batch: &mut Batch<'_>, KeepAnswer { who, key, answer, now }: &KeepAnswer) -> Result<(), Fault> {
    let KeptAnswer { request, status, body } = answer;
    batch
        .statement(
            "INSERT INTO answer (who, key, kept_at, request, status, body) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
             ON CONFLICT DO UPDATE SET status = excluded.status, body = excluded.body
             WHERE status = 0 AND request = excluded.request",
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
