//! Payloads that were uploaded, by the hash that who brought them knows.

use async_trait::async_trait;
use redrive_core::payloads::PayloadHash;
use rusqlite::{Connection, params};

use super::SqliteStore;
use super::batch::Batch;
use super::fault::Fault;
use super::payloads;
use super::rows::RowResult;
use crate::contract::{NoteUpload, Sha256, Upload, UploadStore};
use crate::error::Result;

/// Notes that are forgotten with one that is made.
const FORGET_AT_ONCE: u32 = 100;

#[async_trait]
impl UploadStore for SqliteStore {
    async fn note_upload(&self, params: NoteUpload) -> Result<()> {
        self.write(move |batch| note(batch, &params)).await
    }

    async fn find_upload(&self, sha256: Sha256) -> Result<Option<Upload>> {
        self.read(move |conn| find(conn, sha256)).await
    }
}

fn note(batch: &mut Batch<'_>, params: &NoteUpload) -> Result<(), Fault> {
    let NoteUpload { who, sha256, hash, forget_before, now } = params;
    batch
        .statement(
            "INSERT INTO upload (who, sha256, hash, noted_at) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT DO UPDATE SET hash = excluded.hash, noted_at = excluded.noted_at",
        )?
        .execute(params![who, sha256, hash.as_bytes(), now.as_millis()])?;
    batch
        .statement(
            "DELETE FROM upload WHERE rowid IN
             (SELECT rowid FROM upload WHERE noted_at < ?1 ORDER BY noted_at LIMIT ?2)",
        )?
        .execute(params![forget_before.as_millis(), FORGET_AT_ONCE])?;
    Ok(())
}

fn find(conn: &Connection, sha256: Sha256) -> Result<Option<Upload>, Fault> {
    let mut select = conn.prepare_cached(
        "SELECT u.who, p.hash, p.size_bytes FROM upload u JOIN payload p ON p.hash = u.hash WHERE u.sha256 = ?1",
    )?;
    let found = select.query_map([sha256], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    let found: Vec<(String, [u8; 32], u64)> = found.collect::<RowResult<_>>()?;
    let Some(&(_, hash, size_bytes)) = found.first() else { return Ok(None) };
    let hash = PayloadHash::from_bytes(hash);
    let (brought_by, used_by) =
        (found.into_iter().map(|(who, ..)| who).collect(), payloads::pipelines_with(conn, hash)?);
    Ok(Some(Upload { hash, size_bytes, brought_by, used_by }))
}
