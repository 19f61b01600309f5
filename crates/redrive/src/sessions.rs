//! Sessions, for who holds a [`Redrive`]: people sign in to a server with a token, and are known by a secret of their own then.

use std::time::Duration;

use redrive_core::time::Timestamp;
use redrive_core::tokens::{Role, Token, TokenHash};
use redrive_store::contract::{KnownToken, OpenSession};

use crate::engine::Redrive;
use crate::error::Error;
use crate::tokens::new_secret;

/// How long somebody is signed in.
pub const SESSION_HOLDS: Duration = Duration::from_secs(12 * 3_600);

/// Sessions that one token may have; whoever signs in once more ends the oldest.
const SESSIONS_MAX: u32 = 100;

/// Sessions that are forgotten in one transaction.
const PIECE: u32 = 500;

/// Somebody who signed in, with the secret of the session: it is told once, here.
#[derive(Clone, Debug)]
pub struct SignedIn {
    /// The token that they signed in with.
    pub token: Token,
    /// What their browser sends from then on.
    pub secret: String,
}

/// Why somebody is not let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotSignedIn {
    /// No token is recognised.
    #[error("no such token")]
    Unknown,
    /// It was revoked.
    #[error("this token was revoked")]
    Revoked,
    /// Its time is over.
    #[error("this token has expired")]
    Expired,
    /// It is one for programs.
    #[error("this token is for workers, which have no pages")]
    ForWorkers,
}

/// The token that a secret belongs to, if people may sign in with it.
fn admit(known: &[KnownToken], hash: TokenHash, now: Timestamp) -> Result<&Token, NotSignedIn> {
    // Each is compared, in constant time: how long it takes says nothing of which is alike.
    let found = known.iter().fold(None, |found, known| if known.hash == hash { Some(&known.token) } else { found });
    match found {
        None => Err(NotSignedIn::Unknown),
        Some(token) if token.revoked_at.is_some() => Err(NotSignedIn::Revoked),
        Some(token) if !token.is_good(now) => Err(NotSignedIn::Expired),
        Some(token) if token.role == Role::Worker => Err(NotSignedIn::ForWorkers),
        Some(token) => Ok(token),
    }
}

impl Redrive {
    /// Signs somebody in by the secret of a token.
    pub async fn sign_in(&self, secret: &str) -> Result<Result<SignedIn, NotSignedIn>, Error> {
        let (known, now, hash) = (self.store.list_tokens().await?, self.now(), TokenHash::of(secret));
        let token = match admit(&known, hash, now) {
            Ok(token) => token.clone(),
            Err(why) => return Ok(Err(why)),
        };
        let secret = self.open_session(hash).await?;
        Ok(Ok(SignedIn { token, secret }))
    }

    /// Opens a session of a token, which may be that of a token file. Returns its secret.
    pub async fn open_session(&self, token: TokenHash) -> Result<String, Error> {
        let (secret, now) = (new_secret("rds_")?, self.now());
        let session = TokenHash::of(&secret);
        let params = OpenSession { session, token, ends_at: now + SESSION_HOLDS, most: SESSIONS_MAX, now };
        self.store.open_session(params).await?;
        self.store.forget_sessions(now, PIECE).await?;
        Ok(secret)
    }

    /// The token of a session, unless that is over. Whether the token is still good is not looked at.
    pub async fn session_token(&self, secret: &str) -> Result<Option<TokenHash>, Error> {
        Ok(self.store.find_session(TokenHash::of(secret), self.now()).await?)
    }

    /// Who a session belongs to, among the tokens that are known: nobody if it is over, or its token is no longer good.
    pub async fn find_session(&self, secret: &str, known: &[KnownToken]) -> Result<Option<Token>, Error> {
        let (token, now) = (self.session_token(secret).await?, self.now());
        Ok(token.and_then(|hash| admit(known, hash, now).ok().cloned()))
    }

    /// Signs somebody out.
    pub async fn sign_out(&self, secret: &str) -> Result<(), Error> {
        Ok(self.store.end_session(TokenHash::of(secret)).await?)
    }
}
