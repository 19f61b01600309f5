//! Tokens.

use redrive_core::tokens::{Token, TokenHash};

use super::{Columns, json, parsed, time, time_opt};
use crate::contract::KnownToken;

pub(crate) fn known_token<R: Columns>(row: &R) -> Result<KnownToken, R::Fault> {
    let token = Token {
        name: parsed(row, 0)?,
        role: parsed(row, 1)?,
        pipelines: json(row, 2)?,
        payloads: row.get(3)?,
        created_at: time(row, 4)?,
        created_by: row.get(5)?,
        expires_at: time_opt(row, 6)?,
        revoked_at: time_opt(row, 7)?,
        last_used_at: time_opt(row, 8)?,
    };
    Ok(KnownToken { token, hash: TokenHash::from_bytes(row.get(9)?) })
}
