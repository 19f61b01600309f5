//! The handle that who asks holds: the engine over a store, or a server.

use redrive::Redrive;
use redrive::clock::{Clock, SystemClock};
use redrive::events::Events;
use redrive::reach::{Away, Working};
use redrive_core::time::Timestamp;

use crate::server::Server;

/// Where something is asked for. Cheap to clone.
#[derive(Clone)]
pub enum Desk {
    /// The engine, over a store that is open.
    Here(Redrive),
    /// A server.
    There(Server),
}

impl Desk {
    /// What time it is.
    pub fn now(&self) -> Timestamp {
        match self {
            Self::Here(redrive) => redrive.now(),
            Self::There(_) => SystemClock.now(),
        }
    }

    /// The most letters that can be named at once.
    pub const fn letters_max(&self) -> usize {
        match self {
            Self::Here(_) => usize::MAX,
            Self::There(_) => 10_000,
        }
    }

    /// What happens in this process, for who listens.
    pub fn events(&self) -> &Events {
        match self {
            Self::Here(redrive) => redrive.events(),
            Self::There(server) => server.events(),
        }
    }

    /// What is waited for, if it has not answered for some time.
    pub fn away(&self) -> Option<Away> {
        match self {
            Self::Here(redrive) => redrive.away(),
            Self::There(server) => server.away(),
        }
    }

    /// Has everything that is asked wait for as long as it takes while that is kept, as a worker does.
    pub fn keep_waiting(&self) -> Working {
        match self {
            Self::Here(redrive) => redrive.keep_waiting(),
            Self::There(server) => server.keep_waiting(),
        }
    }
}
