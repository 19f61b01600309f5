//! Answers that were given, by the key of what was asked.

use async_trait::async_trait;
use redrive_core::time::Timestamp;

use super::batch::Batch;
use super::fault::Fault;
use super::sql::{Bytes, Conn, args};
use super::{PostgresStore, run};
use crate::contract::{AnswerStore, FindAnswer, KeepAnswer, KeptAnswer};
use crate::error::Result;

#[async_trait]
impl AnswerStore for PostgresStore {
    async fn find_answer(&self, params: FindAnswer) -> Result<Option<KeptAnswer>> {
        self.read(params, run!(find)).await
    }

    async fn keep_answer(&self, params: KeepAnswer) -> Result<()> {
        self.write_beside(params, run!(keep)).await
    }

    async fn forget_answers(&self, before: Timestamp, limit: u32) -> Result<bool> {
        self.write_beside((before, limit), run!(forget)).await
    }
}

async fn find(conn: &Conn, FindAnswer { who, key, since }: &FindAnswer) -> Result<Option<KeptAnswer>, Fault> {
    let sql = "SELECT request, status, body FROM answer WHERE who = $1 AND key = $2 AND kept_at >= $3";
    conn.query_opt(sql, args![who, key, since], |row| {
        Ok(KeptAnswer { request: row.get(0)?, status: row.get(1)?, body: row.get(2)? })
    })
    .await
}

async fn keep(batch: &mut Batch, KeepAnswer { who, key, answer, now }: &KeepAnswer) -> Result<(), Fault> {
    let KeptAnswer { request, status, body } = answer;
    let sql = "INSERT INTO answer (who, key, kept_at, request, status, body) VALUES ($1, $2, $3, $4, $5, $6)
               ON CONFLICT DO NOTHING";
    batch.conn().execute(sql, args![who, key, now, request, status, Bytes(body)]).await?;
    Ok(())
}

async fn forget(batch: &mut Batch, (before, limit): &(Timestamp, u32)) -> Result<bool, Fault> {
    let sql = "DELETE FROM answer WHERE (who, key) IN
               (SELECT who, key FROM answer WHERE kept_at < $1 ORDER BY kept_at LIMIT $2 FOR UPDATE SKIP LOCKED)";
    Ok(batch.conn().execute(sql, args![before, i64::from(*limit)]).await? >= u64::from(*limit))
}
