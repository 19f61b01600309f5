//! Tokens: who may ask a server for what.

use redrive::Error;
use redrive::tokens::{MadeToken, NewToken};
use redrive_core::actors::Actor;
use redrive_core::ids::TokenName;
use redrive_core::tokens::Token;
use serde::Deserialize;
use serde_json::json;

use crate::desk::Desk;
use crate::page::all;

/// A token that was made.
#[derive(Deserialize)]
struct Made {
    #[serde(flatten)]
    token: Token,
    secret: String,
}

impl Desk {
    /// See [`redrive::Redrive::list_tokens`].
    pub async fn list_tokens(&self) -> Result<Vec<Token>, Error> {
        match self {
            Self::Here(redrive) => redrive.list_tokens().await,
            Self::There(server) => all(server, &["tokens"], Vec::new()).await,
        }
    }

    /// See [`redrive::Redrive::create_token`]. A server knows by itself who it is by.
    pub async fn create_token(&self, new: &NewToken, by: &Actor) -> Result<MadeToken, Error> {
        match self {
            Self::Here(redrive) => redrive.create_token(new, by).await,
            Self::There(server) => {
                let asked = json!({
                    "name": new.name, "role": new.role, "pipelines": new.pipelines, "payloads": new.payloads,
                    "expires": new.expires_at,
                });
                let Made { token, secret } = server.post(&["tokens"]).body(&asked)?.read().await?;
                Ok(MadeToken { token, secret })
            }
        }
    }

    /// See [`redrive::Redrive::revoke_token`].
    pub async fn revoke_token(&self, name: &TokenName, by: &Actor) -> Result<(), Error> {
        match self {
            Self::Here(redrive) => redrive.revoke_token(name, by).await,
            Self::There(server) => server.delete(&["tokens", name.as_str()]).done().await,
        }
    }
}
