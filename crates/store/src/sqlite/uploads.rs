//! Payloads that were uploaded, by the hash that who brought them knows.

use async_trait::async_trait;
use redrive_core::payloads::PayloadHash;
use rusqlite::{Connection, OptionalExtension, params};

use super::SqliteStore;
use super::batch::Batch;
use super::fault::Fault;
use crate::contract::{FindUpload, NoteUpload, Upload, UploadStore};
use crate::error::Result;

/// Notes that are forgotten with one that is made.
const FORGET_AT_ONCE: u32 = 100;

#[async_trait]
impl UploadStore for SqliteStore {
    async fn note_upload(&self, params: NoteUpload) -> Result<()> {
        self.write(move |batch| note(batch, &params)).await
    }

    async fn find_upload(&self, params: FindUpload) -> Result<Option<Upload>> {
        self.read(move |conn| find(conn, &params)).await
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

fn find(conn: &Connection, FindUpload { who, sha256 }: &FindUpload) -> Result<Option<Upload>, Fault> {
    let mut select = conn.prepare_cached(
        "SELECT p.hash, p.size_bytes FROM upload u JOIN payload p ON p.hash = u.hash WHERE u.who = ?1 AND u.sha256 = ?2",
    )?;
    let found = select.query_row(params![who, sha256], |row| {
        Ok(Upload { hash: PayloadHash::from_bytes(row.get(0)?), size_bytes: row.get(1)? })
    });
    Ok(found.optional()?)
}
