//! Answers that were given, by the key of what was asked.

use async_trait::async_trait;
use redrive_core::time::Timestamp;

use super::batch::Batch;
use super::fault::Fault;
use super::sql::{Bytes, Conn, Row, args};
use super::{PostgresStore, rows, run};
use crate::answers::held;
use crate::contract::{AnswerStore, BeginRequest, BegunRequest, HoldRequest, KeepAnswer, KeptAnswer, REQUEST_HELD};
use crate::error::Result;

#[async_trait]
impl AnswerStore for PostgresStore {
    async fn begin_request(&self, params: BeginRequest) -> Result<BegunRequest> {
        self.write_beside(params, run!(begin)).await
    }

    async fn hold_request(&self, params: HoldRequest) -> Result<()> {
        self.write_beside(params, run!(hold)).await
    }

    async fn keep_answer(&self, params: KeepAnswer) -> Result<()> {
        self.write_beside(params, run!(keep)).await
    }

    async fn shorten_answers(&self, bytes_max: u64, limit: u32) -> Result<bool> {
        // Mostly there is nothing to do, and nobody waits for that.
        let bytes_max = i64::try_from(bytes_max).unwrap_or(i64::MAX);
        match self.read(bytes_max, run!(is_any_too_long)).await? {
            true => self.write_beside((bytes_max, limit), run!(shorten)).await,
            false => Ok(false),
        }
    }

    async fn forget_answers(&self, before: Timestamp, limit: u32) -> Result<bool> {
        self.write_beside((before, limit), run!(forget)).await
    }
}

async fn begin(batch: &mut Batch, params: &BeginRequest) -> Result<BegunRequest, Fault> {
    let BeginRequest { who, key, request, since, now } = params;
    let sql = "INSERT INTO answer (who, key, kept_at, request, status, body) VALUES ($1, $2, $3, $4, 0, $6)
               ON CONFLICT (who, key) DO UPDATE SET
                 kept_at = CASE WHEN answer.kept_at < $5 OR answer.request <> excluded.request
                                THEN excluded.kept_at ELSE answer.kept_at END,
                 request = excluded.request, status = 0, body = excluded.body
               WHERE answer.kept_at < $5 OR (answer.status = 0 AND answer.body <= $7)";
    let (until, over) = (held(*now + REQUEST_HELD), held(*now));
    let changed = batch.conn().execute(sql, args![who, key, now, request, since, Bytes(&until), Bytes(&over)]).await?;
    let sql = "SELECT kept_at, request, status, body FROM answer WHERE who = $1 AND key = $2";
    let row = |row: &Row| {
        let answer = KeptAnswer { request: row.get(1)?, status: row.get(2)?, body: row.get(3)? };
        let answer = Some(answer).filter(|answer| answer.status > 0);
        Ok(BegunRequest { begun_at: rows::time(row, 0)?, is_held: changed > 0, answer })
    };
    batch.conn().query_one(sql, args![who, key], row).await
}

async fn hold(batch: &mut Batch, HoldRequest { who, key, request, until }: &HoldRequest) -> Result<(), Fault> {
    let sql = "UPDATE answer SET body = $4 WHERE who = $1 AND key = $2 AND request = $3 AND status = 0";
    batch.conn().execute(sql, args![who, key, request, Bytes(&held(*until))]).await?;
    Ok(())
}

async fn keep(batch: &mut Batch, KeepAnswer { who, key, answer, now }: &KeepAnswer) -> Result<(), Fault> {
    let KeptAnswer { request, status, body } = answer;
    let sql = "INSERT INTO answer (who, key, kept_at, request, status, body) VALUES ($1, $2, $3, $4, $5, $6)
               ON CONFLICT (who, key) DO UPDATE SET status = excluded.status, body = excluded.body
               WHERE answer.status = 0 AND answer.request = excluded.request";
    batch.conn().execute(sql, args![who, key, now, request, status, Bytes(body)]).await?;
    Ok(())
}

async fn is_any_too_long(conn: &Conn, bytes_max: &i64) -> Result<bool, Fault> {
    let sql = "SELECT EXISTS (SELECT 1 FROM answer WHERE status > 0 GROUP BY who HAVING sum(octet_length(body)) > $1)";
    conn.query_one(sql, args![bytes_max], |row| row.get(0)).await
}

async fn shorten(batch: &mut Batch, (bytes_max, limit): &(i64, u32)) -> Result<bool, Fault> {
    let sql = "UPDATE answer SET body = '' WHERE (who, key) IN
               (SELECT who, key FROM
                  (SELECT who, key, octet_length(body) AS bytes,
                          sum(octet_length(body)) OVER (PARTITION BY who ORDER BY kept_at DESC, key DESC) AS total
                   FROM answer WHERE status > 0) AS kept
                WHERE total > $1 AND bytes > 0 LIMIT $2)";
    Ok(batch.conn().execute(sql, args![bytes_max, i64::from(*limit)]).await? >= u64::from(*limit))
}

async fn forget(batch: &mut Batch, (before, limit): &(Timestamp, u32)) -> Result<bool, Fault> {
    let sql = "DELETE FROM answer WHERE (who, key) IN
               (SELECT who, key FROM answer WHERE kept_at < $1 ORDER BY kept_at LIMIT $2 FOR UPDATE SKIP LOCKED)";
    Ok(batch.conn().execute(sql, args![before, i64::from(*limit)]).await? >= u64::from(*limit))
}
