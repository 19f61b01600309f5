//! Answers that were given, by the key of what was asked.

use async_trait::async_trait;
use redrive_core::time::Timestamp;
use rusqlite::params;

use super::SqliteStore;
use super::batch::Batch;
use super::fault::Fault;
use super::rows;
use crate::answers::held;
use crate::contract::{AnswerStore, BeginRequest, BegunRequest, HoldRequest, KeepAnswer, KeptAnswer, REQUEST_HELD};
use crate::error::Result;

#[async_trait]
impl AnswerStore for SqliteStore {
    async fn begin_request(&self, params: BeginRequest) -> Result<BegunRequest> {
        self.write(move |batch| begin(batch, &params)).await
    }

    async fn hold_request(&self, params: HoldRequest) -> Result<()> {
        self.write(move |batch| hold(batch, &params)).await
    }

    async fn keep_answer(&self, params: KeepAnswer) -> Result<()> {
        self.write(move |batch| keep(batch, &params)).await
    }

    async fn shorten_answers(&self, bytes_max: u64, limit: u32) -> Result<bool> {
        // Mostly there is nothing to do, and nobody waits for that.
        match self.read(move |conn| Ok(conn.query_row(ANY_TOO_LONG, [bytes_max], |row| row.get(0))?)).await? {
            true => self.write(move |batch| shorten(batch, bytes_max, limit)).await,
            false => Ok(false),
        }
    }

    async fn forget_answers(&self, before: Timestamp, limit: u32) -> Result<bool> {
        self.write(move |batch| forget(batch, before, limit)).await
    }
}

fn begin(batch: &mut Batch<'_>, params: &BeginRequest) -> Result<BegunRequest, Fault> {
    let BeginRequest { who, key, request, since, now } = params;
    let changed = batch
        .statement(
            "INSERT INTO answer (who, key, kept_at, request, status, body) VALUES (?1, ?2, ?3, ?4, 0, ?6)
             ON CONFLICT DO UPDATE SET
               kept_at = CASE WHEN kept_at < ?5 OR request <> excluded.request THEN excluded.kept_at ELSE kept_at END,
               request = excluded.request, status = 0, body = excluded.body
             WHERE kept_at < ?5 OR (status = 0 AND body <= ?7)",
        )?
        .execute(params![
            who,
            key,
            now.as_millis(),
            request,
            since.as_millis(),
            held(*now + REQUEST_HELD),
            held(*now)
        ])?;
    let mut select =
        batch.statement("SELECT kept_at, request, status, body FROM answer WHERE who = ?1 AND key = ?2")?;
    Ok(select.query_row(params![who, key], |row| {
        let answer = KeptAnswer { request: row.get(1)?, status: row.get(2)?, body: row.get(3)? };
        let answer = Some(answer).filter(|answer| answer.status > 0);
        Ok(BegunRequest { begun_at: rows::time(row, 0)?, is_held: changed > 0, answer })
    })?)
}

fn hold(batch: &mut Batch<'_>, HoldRequest { who, key, request, until }: &HoldRequest) -> Result<(), Fault> {
    batch
        .statement("UPDATE answer SET body = ?4 WHERE who = ?1 AND key = ?2 AND request = ?3 AND status = 0")?
        .execute(params![who, key, request, held(*until)])?;
    Ok(())
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

const ANY_TOO_LONG: &str =
    "SELECT EXISTS (SELECT 1 FROM answer WHERE status > 0 GROUP BY who HAVING sum(length(body)) > ?1)";

fn shorten(batch: &mut Batch<'_>, bytes_max: u64, limit: u32) -> Result<bool, Fault> {
    let shortened = batch
        .statement(
            "UPDATE answer SET body = x'' WHERE rowid IN
               (SELECT id FROM
                  (SELECT rowid AS id, length(body) AS bytes,
                          sum(length(body)) OVER (PARTITION BY who ORDER BY kept_at DESC, key DESC) AS total
                   FROM answer WHERE status > 0)
                WHERE total > ?1 AND bytes > 0 LIMIT ?2)",
        )?
        .execute(params![bytes_max, limit])?;
    Ok(shortened >= limit as usize)
}

fn forget(batch: &mut Batch<'_>, before: Timestamp, limit: u32) -> Result<bool, Fault> {
    let gone = batch
        .statement(
            "DELETE FROM answer WHERE rowid IN (SELECT rowid FROM answer WHERE kept_at < ?1 ORDER BY kept_at LIMIT ?2)",
        )?
        .execute(params![before.as_millis(), limit])?;
    Ok(gone >= limit as usize)
}
