//! Sessions of people who signed in to a server.

use async_trait::async_trait;
use redrive_core::time::Timestamp;
use redrive_core::tokens::TokenHash;
use rusqlite::{Connection, OptionalExtension, params};

use super::SqliteStore;
use super::batch::Batch;
use super::fault::Fault;
use crate::contract::{OpenSession, SessionStore};
use crate::error::Result;

#[async_trait]
impl SessionStore for SqliteStore {
    async fn open_session(&self, params: OpenSession) -> Result<()> {
        self.write(move |batch| open(batch, &params)).await
    }

    async fn find_session(&self, session: TokenHash, now: Timestamp) -> Result<Option<TokenHash>> {
        self.read(move |conn| find(conn, &session, now)).await
    }

    async fn end_session(&self, session: TokenHash) -> Result<()> {
        self.write(move |batch| end(batch, &session)).await
    }

    async fn forget_sessions(&self, before: Timestamp, limit: u32) -> Result<bool> {
        self.write(move |batch| forget(batch, before, limit)).await
    }
}

fn open(batch: &mut Batch<'_>, OpenSession { session, token, ends_at, most, now }: &OpenSession) -> Result<(), Fault> {
    batch
        .statement(
            "INSERT INTO session (hash, token, opened_at, ends_at) VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING",
        )?
        .execute(params![session.as_bytes(), token.as_bytes(), now.as_millis(), ends_at.as_millis()])?;
    batch
        .statement(
            "DELETE FROM session WHERE hash IN (SELECT hash FROM session WHERE token = ?2
             ORDER BY hash = ?1 DESC, opened_at DESC LIMIT -1 OFFSET ?3)",
        )?
        .execute(params![session.as_bytes(), token.as_bytes(), most])?;
    Ok(())
}

fn find(conn: &Connection, session: &TokenHash, now: Timestamp) -> Result<Option<TokenHash>, Fault> {
    let mut select = conn.prepare_cached("SELECT token FROM session WHERE hash = ?1 AND ends_at > ?2")?;
    let token = |row: &rusqlite::Row<'_>| row.get(0).map(TokenHash::from_bytes);
    Ok(select.query_row(params![session.as_bytes(), now.as_millis()], token).optional()?)
}

fn end(batch: &mut Batch<'_>, session: &TokenHash) -> Result<(), Fault> {
    batch.statement("DELETE FROM session WHERE hash = ?1")?.execute(params![session.as_bytes()])?;
    Ok(())
}

fn forget(batch: &mut Batch<'_>, before: Timestamp, limit: u32) -> Result<bool, Fault> {
    let gone = batch
        .statement(
            "DELETE FROM session WHERE hash IN (SELECT hash FROM session WHERE ends_at < ?1 ORDER BY ends_at LIMIT ?2)",
        )?
        .execute(params![before.as_millis(), limit])?;
    Ok(gone >= limit as usize)
}
