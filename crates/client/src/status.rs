//! Where everything stands, whether it adds up, and hearing of changes.

use redrive::Error;
use redrive::contract::{Audit, Changes};
use redrive::status::Status;
use reqwest::Response;

use crate::ask::LONG;
use crate::desk::Desk;
use crate::server::Server;

/// Hears of changes.
pub enum Hints {
    /// From the store.
    Here(Changes),
    /// From a server, on a connection that is made anew when it is lost.
    There(Server, Option<Response>),
}

impl Desk {
    /// See [`redrive::Redrive::status`].
    pub async fn status(&self) -> Result<Status, Error> {
        match self {
            Self::Here(redrive) => redrive.status().await,
            Self::There(server) => server.get(&["status"]).read().await,
        }
    }

    /// Recounts everything, and says what does not add up.
    pub async fn audit(&self) -> Result<Audit, Error> {
        match self {
            Self::Here(redrive) => Ok(redrive.store().audit().await?),
            Self::There(server) => server.get(&["audit"]).within(Some(LONG)).read().await,
        }
    }

    /// Hears from now on that something has changed.
    pub fn changes(&self) -> Hints {
        match self {
            Self::Here(redrive) => Hints::Here(redrive.store().changes()),
            Self::There(server) => Hints::There(server.clone(), None),
        }
    }
}

impl Hints {
    /// Returns when something has changed, or may have.
    pub async fn next(&mut self) -> Result<(), Error> {
        let (server, following) = match self {
            Self::Here(changes) => return Ok(changes.next().await.map(drop)?),
            Self::There(server, following) => (server, following),
        };
        let connection = match following {
            Some(connection) => connection,
            None => {
                let begun = server.get(&["events"]).within(None).stream().await?;
                following.insert(begun)
            }
        };
        loop {
            match connection.chunk().await {
                // A line that only shows that the connection is there begins with a colon.
                Ok(Some(chunk)) if chunk.starts_with(b":") => {}
                Ok(Some(_)) => return Ok(()),
                // Something may have been missed.
                Ok(None) | Err(_) => {
                    *following = None;
                    return Ok(());
                }
            }
        }
    }
}
