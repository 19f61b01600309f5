//! Payloads that were uploaded, by the hash that who brought them knows.

use async_trait::async_trait;
use redrive_core::payloads::PayloadHash;

use super::batch::Batch;
use super::fault::Fault;
use super::sql::{Conn, Row, args};
use super::{PostgresStore, payloads, run};
use crate::contract::{NoteUpload, Sha256, Upload, UploadStore};
use crate::error::Result;

/// Notes that are forgotten with one that is made.
const FORGET_AT_ONCE: i64 = 100;

#[async_trait]
impl UploadStore for PostgresStore {
    async fn note_upload(&self, params: NoteUpload) -> Result<()> {
        self.write_beside(params, run!(note)).await
    }

    async fn find_upload(&self, sha256: Sha256) -> Result<Option<Upload>> {
        self.read(sha256, run!(find)).await
    }
}

async fn note(batch: &mut Batch, params: &NoteUpload) -> Result<(), Fault> {
    let NoteUpload { who, sha256, hash, forget_before, now } = params;
    let sql = "INSERT INTO upload (who, sha256, hash, noted_at) VALUES ($1, $2, $3, $4)
               ON CONFLICT (sha256, who) DO UPDATE SET hash = excluded.hash, noted_at = excluded.noted_at";
    batch.conn().execute(sql, args![who, sha256, hash, now]).await?;
    let sql = "DELETE FROM upload WHERE (who, sha256) IN
               (SELECT who, sha256 FROM upload WHERE noted_at < $1 ORDER BY noted_at LIMIT $2 FOR UPDATE SKIP LOCKED)";
    batch.conn().execute(sql, args![forget_before, FORGET_AT_ONCE]).await?;
    Ok(())
}

async fn find(conn: &Conn, sha256: &Sha256) -> Result<Option<Upload>, Fault> {
    let sql = "SELECT u.who, p.hash, p.size_bytes FROM upload u JOIN payload p ON p.hash = u.hash WHERE u.sha256 = $1";
    let read = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
    let found: Vec<(String, [u8; 32], u64)> = conn.query(sql, args![sha256], read).await?;
    let Some(&(_, hash, size_bytes)) = found.first() else { return Ok(None) };
    let hash = PayloadHash::from_bytes(hash);
    let used_by = payloads::pipelines_with(conn, &hash).await?;
    Ok(Some(Upload { hash, size_bytes, brought_by: found.into_iter().map(|(who, ..)| who).collect(), used_by }))
}
