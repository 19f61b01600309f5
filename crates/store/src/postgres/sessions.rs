//! Sessions of people who signed in to a server.

use async_trait::async_trait;
use redrive_core::time::Timestamp;
use redrive_core::tokens::TokenHash;

use super::batch::Batch;
use super::fault::Fault;
use super::sql::{Conn, args};
use super::{PostgresStore, run};
use crate::contract::{OpenSession, SessionStore};
use crate::error::Result;

#[async_trait]
impl SessionStore for PostgresStore {
    async fn open_session(&self, params: OpenSession) -> Result<()> {
        self.write_beside(params, run!(open)).await
    }

    async fn find_session(&self, session: TokenHash, now: Timestamp) -> Result<Option<TokenHash>> {
        self.read((session, now), run!(find)).await
    }

    async fn end_session(&self, session: TokenHash) -> Result<()> {
        self.write_beside(session, run!(end)).await
    }

    async fn forget_sessions(&self, before: Timestamp, limit: u32) -> Result<bool> {
        self.write_beside((before, limit), run!(forget)).await
    }
}

async fn open(
    batch: &mut Batch,
    OpenSession { session, token, ends_at, most, now }: &OpenSession,
) -> Result<(), Fault> {
    let sql = "INSERT INTO session (hash, token, opened_at, ends_at) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING";
    batch.conn().execute(sql, args![session.as_bytes(), token.as_bytes(), now, ends_at]).await?;
    let sql = "DELETE FROM session WHERE hash IN (SELECT hash FROM session WHERE token = $2
               ORDER BY hash = $1 DESC, opened_at DESC OFFSET $3)";
    batch.conn().execute(sql, args![session.as_bytes(), token.as_bytes(), i64::from(*most)]).await?;
    Ok(())
}

async fn find(conn: &Conn, (session, now): &(TokenHash, Timestamp)) -> Result<Option<TokenHash>, Fault> {
    let sql = "SELECT token FROM session WHERE hash = $1 AND ends_at > $2";
    conn.query_opt(sql, args![session.as_bytes(), now], |row| Ok(TokenHash::from_bytes(row.get(0)?))).await
}

async fn end(batch: &mut Batch, session: &TokenHash) -> Result<(), Fault> {
    batch.conn().execute("DELETE FROM session WHERE hash = $1", args![session.as_bytes()]).await?;
    Ok(())
}

async fn forget(batch: &mut Batch, (before, limit): &(Timestamp, u32)) -> Result<bool, Fault> {
    let sql = "DELETE FROM session WHERE hash IN
               (SELECT hash FROM session WHERE ends_at < $1 ORDER BY ends_at LIMIT $2 FOR UPDATE SKIP LOCKED)";
    Ok(batch.conn().execute(sql, args![before, i64::from(*limit)]).await? >= u64::from(*limit))
}
