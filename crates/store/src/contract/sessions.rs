//! Sessions: people who signed in to a server with a token. They hold on every server of the store.

use async_trait::async_trait;
use redrive_core::time::Timestamp;
use redrive_core::tokens::TokenHash;

use crate::error::Result;

/// Sessions. Of their secrets there are only hashes, as of tokens.
#[async_trait]
pub trait SessionStore {
    /// Keeps a session. The same again changes nothing.
    async fn open_session(&self, params: OpenSession) -> Result<()>;

    /// The token that a session was opened with, if it has not ended by then. Whether that token is still good is not looked at.
    async fn find_session(&self, session: TokenHash, now: Timestamp) -> Result<Option<TokenHash>>;

    /// Ends a session; nothing happens if there is none.
    async fn end_session(&self, session: TokenHash) -> Result<()>;

    /// Forgets some of the sessions that ended before a time; says whether there may be more.
    async fn forget_sessions(&self, before: Timestamp, limit: u32) -> Result<bool>;
}

/// Asks for a session to be kept.
#[derive(Clone, Debug)]
pub struct OpenSession {
    /// What its secret is recognised by.
    pub session: TokenHash,
    /// What the secret of the token is recognised by that it was opened with.
    pub token: TokenHash,
    /// When it ends by itself.
    pub ends_at: Timestamp,
    /// Sessions that the token may have: the oldest of more are ended.
    pub most: u32,
    /// The time.
    pub now: Timestamp,
}
