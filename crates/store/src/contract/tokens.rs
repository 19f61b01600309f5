//! Tokens of a server: their names, what they may do, and hashes of their secrets.

use async_trait::async_trait;
use redrive_core::actors::Actor;
use redrive_core::ids::TokenName;
use redrive_core::time::Timestamp;
use redrive_core::tokens::{Token, TokenHash};

use crate::error::Result;

/// Tokens. There are few of them, and none is ever removed: a store knows whether it ever had one.
#[async_trait]
pub trait TokenStore {
    /// All tokens there ever were, oldest first.
    async fn list_tokens(&self) -> Result<Vec<KnownToken>>;

    /// Keeps a token, if the store is as it was found. The same token again changes nothing.
    async fn create_token(&self, params: CreateToken) -> Result<TokenCreated>;

    /// Revokes tokens; says which of those that were named are revoked now.
    async fn revoke_tokens(&self, params: RevokeTokens) -> Result<Vec<TokenName>>;

    /// Notes when tokens were last used. Not noted as activity, and an earlier time changes nothing.
    async fn note_tokens_used(&self, params: NoteTokensUsed) -> Result<()>;
}

/// A token with the hash of its secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownToken {
    /// The token.
    pub token: Token,
    /// What its secret is recognised by.
    pub hash: TokenHash,
}

/// Asks for a token to be kept.
#[derive(Clone, Debug)]
pub struct CreateToken {
    /// The token.
    pub token: Token,
    /// What its secret is recognised by.
    pub hash: TokenHash,
    /// Whether the store was found to have, or to have had, other tokens.
    pub had_others: bool,
    /// Who wants it.
    pub by: Actor,
    /// The time.
    pub now: Timestamp,
}

/// What became of a token that was to be kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenCreated {
    /// It is kept.
    Created,
    /// Another that is not revoked has the name: nothing is written.
    NameTaken,
    /// Somebody made the first token meanwhile: nothing is written.
    Stale,
}

/// Asks for tokens to be revoked.
#[derive(Clone, Debug)]
pub struct RevokeTokens {
    /// Which.
    pub names: Vec<TokenName>,
    /// Who wants it.
    pub by: Actor,
    /// The time.
    pub now: Timestamp,
}

/// Notes that tokens were used.
#[derive(Clone, Debug)]
pub struct NoteTokensUsed {
    /// Which, and when.
    pub used: Vec<(TokenName, Timestamp)>,
}
