//! Payloads that were uploaded, by the hash that who brought them knows.

use async_trait::async_trait;
use redrive_core::payloads::PayloadHash;

use super::batch::Batch;
use super::fault::Fault;
use super::sql::{Conn, args};
use super::{PostgresStore, run};
use crate::contract::{FindUpload, NoteUpload, Upload, UploadStore};
use crate::error::Result;

/// Notes that are forgotten with one that is made.
const FORGET_AT_ONCE: i64 = 100;

#[async_trait]
impl UploadStore for PostgresStore {
    async fn note_upload(&self, params: NoteUpload) -> Result<()> {
        self.write_beside(params, run!(note)).await
    }

    async fn find_upload(&self, params: FindUpload) -> Result<Option<Upload>> {
        self.read(params, run!(find)).await
    }
}

async fn note(batch: &mut Batch, params: &NoteUpload) -> Result<(), Fault> {
    let NoteUpload { who, sha256, hash, forget_before, now } = params;
    let sql = "INSERT INTO upload (who, sha256, hash, noted_at) VALUES ($1, $2, $3, $4)
               ON CONFLICT (who, sha256) DO UPDATE SET hash = excluded.hash, noted_at = excluded.noted_at";
    batch.conn().execute(sql, args![who, sha256, hash, now]).await?;
    let sql = "DELETE FROM upload WHERE (who, sha256) IN
               (SELECT who, sha256 FROM upload WHERE noted_at < $1 ORDER BY noted_at LIMIT $2 FOR UPDATE SKIP LOCKED)";
    batch.conn().execute(sql, args![forget_before, FORGET_AT_ONCE]).await?;
    Ok(())
}

async fn find(conn: &Conn, FindUpload { who, sha256 }: &FindUpload) -> Result<Option<Upload>, Fault> {
    let sql = "SELECT p.hash, p.size_bytes FROM upload u JOIN payload p ON p.hash = u.hash
               WHERE u.who = $1 AND u.sha256 = $2";
    conn.query_opt(sql, args![who, sha256], |row| {
        Ok(Upload { hash: PayloadHash::from_bytes(row.get(0)?), size_bytes: row.get(1)? })
    })
    .await
}
