//! Tokens of a server.

use async_trait::async_trait;
use redrive_core::ids::TokenName;
use redrive_core::time::Timestamp;
use rusqlite::{Connection, OptionalExtension, params};
use serde_json::json;

use super::SqliteStore;
use super::activity;
use super::batch::Batch;
use super::fault::Fault;
use super::rows::{self, RowResult};
use crate::contract::{CreateToken, KnownToken, NoteTokensUsed, RevokeTokens, TokenCreated, TokenStore};
use crate::error::Result;

#[async_trait]
impl TokenStore for SqliteStore {
    async fn list_tokens(&self) -> Result<Vec<KnownToken>> {
        self.read(list).await
    }

    async fn create_token(&self, params: CreateToken) -> Result<TokenCreated> {
        self.write(move |batch| create(batch, &params)).await
    }

    async fn revoke_tokens(&self, params: RevokeTokens) -> Result<Vec<TokenName>> {
        self.write(move |batch| revoke(batch, &params)).await
    }

    async fn note_tokens_used(&self, params: NoteTokensUsed) -> Result<()> {
        self.write(move |batch| note_used(batch, &params)).await
    }
}

fn list(conn: &Connection) -> Result<Vec<KnownToken>, Fault> {
    let mut select = conn.prepare_cached(
        "SELECT name, role, pipelines, payloads, created_at, created_by, expires_at, revoked_at, used_at, hash
         FROM token ORDER BY id",
    )?;
    let rows = select.query_map([], |row| rows::known_token(row))?;
    Ok(rows.collect::<RowResult<_>>()?)
}

fn create(batch: &mut Batch<'_>, params: &CreateToken) -> Result<TokenCreated, Fault> {
    let CreateToken { token, hash, had_others, by, now } = params;
    let name = token.name.as_str();
    let same: Option<bool> = batch
        .statement("SELECT name = ?2 FROM token WHERE hash = ?1")?
        .query_row(params![hash.as_bytes(), name], |row| row.get(0))
        .optional()?;
    if same == Some(true) {
        return Ok(TokenCreated::Created);
    }
    let has_others: bool = batch.statement("SELECT EXISTS (SELECT 1 FROM token)")?.query_row([], |row| row.get(0))?;
    if has_others != *had_others {
        return Ok(TokenCreated::Stale);
    }
    let inserted = batch
        .statement(
            "INSERT INTO token (name, hash, role, pipelines, payloads, created_at, created_by, expires_at)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) ON CONFLICT DO NOTHING",
        )?
        .execute(params![
            name,
            hash.as_bytes(),
            token.role.as_str(),
            serde_json::to_string(&token.pipelines)?,
            token.payloads,
            token.created_at.as_millis(),
            token.created_by,
            token.expires_at.map(Timestamp::as_millis),
        ])?;
    if inserted == 0 {
        return Ok(TokenCreated::NameTaken);
    }
    inherit_nothing(batch, name)?;
    let detail = json!({ "role": token.role, "for": token.pipelines, "expires_at": token.expires_at });
    activity::note(batch, by, ("create", &format!("token {name}")), &detail, *now)?;
    Ok(TokenCreated::Created)
}

/// Removes what is known by the name of a revoked token: responses, uploads and sequence numbers of its clients.
fn inherit_nothing(batch: &Batch<'_>, name: &str) -> Result<(), Fault> {
    for sql in [
        "DELETE FROM answer WHERE who = ?1",
        "DELETE FROM upload WHERE who = ?1",
        "DELETE FROM outcome WHERE substr(client, 1, length(?1) + 1) = ?1 || '/'",
    ] {
        batch.statement(sql)?.execute([name])?;
    }
    Ok(())
}

fn revoke(batch: &mut Batch<'_>, RevokeTokens { names, by, now }: &RevokeTokens) -> Result<Vec<TokenName>, Fault> {
    let mut revoked = Vec::new();
    for name in names {
        let changed = batch
            .statement("UPDATE token SET revoked_at = ?2 WHERE name = ?1 AND revoked_at IS NULL")?
            .execute(params![name.as_str(), now.as_millis()])?;
        if changed > 0 {
            activity::note(batch, by, ("revoke", &format!("token {name}")), &json!({}), *now)?;
        }
        let known: bool = batch
            .statement("SELECT EXISTS (SELECT 1 FROM token WHERE name = ?1)")?
            .query_row([name.as_str()], |row| row.get(0))?;
        if known {
            revoked.push(name.clone());
        }
    }
    Ok(revoked)
}

fn note_used(batch: &mut Batch<'_>, params: &NoteTokensUsed) -> Result<(), Fault> {
    let mut update = batch
        .statement("UPDATE token SET used_at = max(ifnull(used_at, 0), ?2) WHERE name = ?1 AND revoked_at IS NULL")?;
    for (name, at) in &params.used {
        update.execute(params![name.as_str(), at.as_millis()])?;
    }
    Ok(())
}
