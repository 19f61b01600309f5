//! The engine or a server. Commands cannot tell the difference.

use redrive::api::{Caller, List, Operation};
use redrive::{Error, Redrive, Run};
use redrive_client::{Desk, Server};

use crate::commands::filter::actor;

/// Place where requests are sent.
#[derive(Clone)]
pub enum Handle {
    /// The engine, over a store that is open.
    Local(Box<Redrive>, Caller),
    /// A server.
    Remote(Server),
}

impl From<&Desk> for Handle {
    fn from(desk: &Desk) -> Self {
        match desk {
            Desk::Here(redrive) => Self::Local(Box::new(redrive.clone()), Caller::local(actor())),
            Desk::There(server) => Self::Remote(server.clone()),
        }
    }
}

impl Handle {
    /// Sends a request.
    pub async fn ask<O: Operation>(&self, request: O) -> Result<O::Response, Error>
    where
        Redrive: Run<O>,
    {
        match self {
            Self::Local(redrive, caller) => redrive.ask(request, caller).await,
            Self::Remote(server) => server.ask(&request).await,
        }
    }

    /// Requests all items of a list.
    pub async fn ask_all<L: List>(&self, request: L) -> Result<Vec<L::Item>, Error>
    where
        Redrive: Run<L>,
    {
        match self {
            Self::Local(redrive, caller) => redrive.ask_all(request, caller).await,
            Self::Remote(server) => server.ask_all(request).await,
        }
    }
}
