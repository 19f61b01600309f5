//! Tokens, for who holds a [`Redrive`]: making and revoking them, and who a secret belongs to.

use data_encoding::BASE32_NOPAD;
use redrive_core::actors::Actor;
use redrive_core::ids::TokenName;
use redrive_core::time::Timestamp;
use redrive_core::tokens::{PipelinePattern, Role, Token, TokenHash, TokenRefused, check};
use redrive_store::contract::{CreateToken, KnownToken, NoteTokensUsed, RevokeTokens, TokenCreated};

use crate::engine::Redrive;
use crate::error::{Error, ErrorKind};

/// How often a token is made anew, because others made the first one meanwhile.
const TRIES_MAX: u32 = 10;

/// By what a secret is recognised where it should not be, in a log or a repository.
const PREFIX: &str = "rdr_";

/// Why something that was asked about tokens cannot be done.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// It cannot be made so.
    #[error(transparent)]
    Refused(#[from] TokenRefused),
    /// Another one is called so.
    #[error("there is a token {0} already: revoke it first, or choose another name")]
    NameTaken(TokenName),
    /// There is none.
    #[error("no token {name}{}", listed(.known))]
    Unknown {
        /// What it was called.
        name: TokenName,
        /// Those that there are.
        known: Vec<TokenName>,
    },
    /// Others made tokens again and again meanwhile.
    #[error("tokens were made by others meanwhile: try again")]
    ChangedMeanwhile,
    /// The operating system gave no random bytes.
    #[error("the operating system gives no random bytes: {0}")]
    NoRandomness(String),
}

impl TokenError {
    /// What it means to who asked.
    pub const fn kind(&self) -> ErrorKind {
        match self {
            Self::Refused(_) | Self::NameTaken(_) => ErrorKind::Refused,
            Self::Unknown { .. } => ErrorKind::Missing,
            Self::ChangedMeanwhile | Self::NoRandomness(_) => ErrorKind::Failed,
        }
    }
}

fn listed(known: &[TokenName]) -> String {
    match known {
        [] => ": there are none".to_owned(),
        known => format!(": there are {}", known.iter().map(TokenName::as_str).collect::<Vec<_>>().join(", ")),
    }
}

/// A token that is to be made.
#[derive(Clone, Debug)]
pub struct NewToken {
    /// What it is to be called.
    pub name: TokenName,
    /// What it may do.
    pub role: Role,
    /// The pipelines that it is for; none means all.
    pub pipelines: Vec<PipelinePattern>,
    /// Whether it may read payloads.
    pub payloads: bool,
    /// When it is no longer good, if ever.
    pub expires_at: Option<Timestamp>,
}

/// A token that was made, with its secret: it is told once, here.
#[derive(Clone, Debug)]
pub struct MadeToken {
    /// The token.
    pub token: Token,
    /// What who uses it sends.
    pub secret: String,
}

impl Redrive {
    /// All tokens that there ever were, oldest first.
    pub async fn list_tokens(&self) -> Result<Vec<Token>, Error> {
        Ok(self.store.list_tokens().await?.into_iter().map(|known| known.token).collect())
    }

    /// The tokens with what their secrets are recognised by, for who lets people in.
    pub async fn known_tokens(&self) -> Result<Vec<KnownToken>, Error> {
        Ok(self.store.list_tokens().await?)
    }

    /// Makes a token. Its secret is in the answer, and nowhere else.
    pub async fn create_token(&self, new: &NewToken, by: &Actor) -> Result<MadeToken, Error> {
        let secret = new_secret(PREFIX)?;
        for _ in 0..TRIES_MAX {
            let had_others = !self.store.list_tokens().await?.is_empty();
            let now = self.now();
            let token = made(new, by, now);
            check(&token, had_others, now).map_err(TokenError::from)?;
            let hash = TokenHash::of(&secret);
            let params = CreateToken { token: token.clone(), hash, had_others, by: by.clone(), now };
            match self.store.create_token(params).await? {
                TokenCreated::Created => return Ok(MadeToken { token, secret }),
                TokenCreated::NameTaken => return Err(TokenError::NameTaken(new.name.clone()).into()),
                TokenCreated::Stale => {}
            }
        }
        Err(TokenError::ChangedMeanwhile.into())
    }

    /// Revokes a token: from now on it is no good, to any server of the store.
    pub async fn revoke_token(&self, name: &TokenName, by: &Actor) -> Result<(), Error> {
        let known = self.store.list_tokens().await?;
        let mut good = known.iter().filter(|known| known.token.revoked_at.is_none());
        if !good.any(|known| known.token.name == *name) {
            let live = known.into_iter().map(|known| known.token).filter(|token| token.revoked_at.is_none());
            let known = live.map(|token| token.name).collect();
            return Err(TokenError::Unknown { name: name.clone(), known }.into());
        }
        self.store.revoke_tokens(RevokeTokens { names: vec![name.clone()], by: by.clone(), now: self.now() }).await?;
        Ok(())
    }

    /// Revokes all tokens and makes one for an administrator, for who has lost theirs. The store is never open to everybody again.
    pub async fn reset_tokens(&self, by: &Actor) -> Result<MadeToken, Error> {
        let known = self.store.list_tokens().await?;
        let good = known.into_iter().map(|known| known.token).filter(|token| token.revoked_at.is_none());
        let names = good.map(|token| token.name).collect();
        self.store.revoke_tokens(RevokeTokens { names, by: by.clone(), now: self.now() }).await?;
        let name = TokenName::try_from("admin".to_owned())?;
        let new = NewToken { name, role: Role::Admin, pipelines: Vec::new(), payloads: true, expires_at: None };
        self.create_token(&new, by).await
    }

    /// Notes when tokens were last used.
    pub async fn note_tokens_used(&self, used: Vec<(TokenName, Timestamp)>) -> Result<(), Error> {
        Ok(self.store.note_tokens_used(NoteTokensUsed { used }).await?)
    }
}

fn made(new: &NewToken, by: &Actor, now: Timestamp) -> Token {
    Token {
        name: new.name.clone(),
        role: new.role,
        pipelines: new.pipelines.clone(),
        payloads: new.payloads,
        created_at: now,
        created_by: by.name.clone(),
        expires_at: new.expires_at,
        revoked_at: None,
        last_used_at: None,
    }
}

/// A secret that nobody can guess, after what it is recognised by: 160 bits of the operating system's random source.
pub fn new_secret(prefix: &str) -> Result<String, TokenError> {
    let mut bytes = [0; 20];
    getrandom::fill(&mut bytes).map_err(|error| TokenError::NoRandomness(error.to_string()))?;
    Ok(format!("{prefix}{}", BASE32_NOPAD.encode(&bytes).to_ascii_lowercase()))
}
