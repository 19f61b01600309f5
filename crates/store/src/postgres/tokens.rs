//! Tokens of a server.

use async_trait::async_trait;
use redrive_core::ids::TokenName;
use serde_json::json;

use super::batch::Batch;
use super::fault::Fault;
use super::sql::{Conn, args};
use super::{PostgresStore, activity, rows, run};
use crate::contract::{CreateToken, KnownToken, NoteTokensUsed, RevokeTokens, TokenCreated, TokenStore};
use crate::error::Result;

#[async_trait]
impl TokenStore for PostgresStore {
    async fn list_tokens(&self) -> Result<Vec<KnownToken>> {
        self.read((), run!(list)).await
    }

    async fn create_token(&self, params: CreateToken) -> Result<TokenCreated> {
        self.write(params, run!(create)).await
    }

    async fn revoke_tokens(&self, params: RevokeTokens) -> Result<Vec<TokenName>> {
        self.write(params, run!(revoke)).await
    }

    async fn note_tokens_used(&self, params: NoteTokensUsed) -> Result<()> {
        self.write(params, run!(note_used)).await
    }
}

async fn list(conn: &Conn, (): &()) -> Result<Vec<KnownToken>, Fault> {
    let sql = "SELECT name, role, pipelines, payloads, created_at, created_by, expires_at, revoked_at, used_at, hash
               FROM token ORDER BY id";
    conn.query(sql, args![], |row| rows::known_token(row)).await
}

async fn create(batch: &mut Batch, params: &CreateToken) -> Result<TokenCreated, Fault> {
    let CreateToken { token, hash, had_others, by, now } = params;
    let (name, conn) = (token.name.as_str(), batch.conn());
    if conn.exists("SELECT 1 FROM token WHERE hash = $1 AND name = $2", args![hash.as_bytes(), name]).await? {
        return Ok(TokenCreated::Created);
    }
    if conn.exists("SELECT 1 FROM token LIMIT 1", args![]).await? != *had_others {
        return Ok(TokenCreated::Stale);
    }
    let sql = "INSERT INTO token (name, hash, role, pipelines, payloads, created_at, created_by, expires_at)
               VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT DO NOTHING";
    let values = args![
        name,
        hash.as_bytes(),
        token.role.as_str(),
        serde_json::to_string(&token.pipelines)?,
        token.payloads,
        token.created_at,
        token.created_by,
        token.expires_at,
    ];
    if conn.execute(sql, values).await? == 0 {
        return Ok(TokenCreated::NameTaken);
    }
    inherit_nothing(batch, name).await?;
    let detail = json!({ "role": token.role, "for": token.pipelines, "expires_at": token.expires_at });
    activity::note(batch, by, ("create", &format!("token {name}")), &detail, *now).await?;
    Ok(TokenCreated::Created)
}

/// Removes what is known by the name of a revoked token: responses, uploads and sequence numbers of its clients.
async fn inherit_nothing(batch: &Batch, name: &str) -> Result<(), Fault> {
    for sql in [
        "DELETE FROM answer WHERE who = $1",
        "DELETE FROM upload WHERE who = $1",
        "DELETE FROM outcome WHERE substr(client, 1, length($1) + 1) = $1 || '/'",
    ] {
        batch.conn().execute(sql, args![name]).await?;
    }
    Ok(())
}

async fn revoke(batch: &mut Batch, RevokeTokens { names, by, now }: &RevokeTokens) -> Result<Vec<TokenName>, Fault> {
    let mut revoked = Vec::new();
    for name in names {
        let sql = "UPDATE token SET revoked_at = $2 WHERE name = $1 AND revoked_at IS NULL";
        if batch.conn().execute(sql, args![name.as_str(), now]).await? > 0 {
            activity::note(batch, by, ("revoke", &format!("token {name}")), &json!({}), *now).await?;
        }
        if batch.conn().exists("SELECT 1 FROM token WHERE name = $1 LIMIT 1", args![name.as_str()]).await? {
            revoked.push(name.clone());
        }
    }
    Ok(revoked)
}

async fn note_used(batch: &mut Batch, params: &NoteTokensUsed) -> Result<(), Fault> {
    let sql = "UPDATE token SET used_at = greatest(used_at, $2) WHERE name = $1 AND revoked_at IS NULL";
    for (name, at) in &params.used {
        batch.conn().execute(sql, args![name.as_str(), at]).await?;
    }
    Ok(())
}
