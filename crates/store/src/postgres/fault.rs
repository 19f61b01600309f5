//! Errors inside the backend: what PostgreSQL said, or a refusal of our own; turned into [`StoreError`] at the edge.

use redrive_core::state::IllegalMove;
use tokio_postgres::error::SqlState;

use crate::error::StoreError;

/// Why an operation did not go through.
#[derive(Debug)]
pub(super) enum Fault {
    /// The database or the way to it.
    Sql(tokio_postgres::Error),
    /// A refusal.
    Store(StoreError),
    /// A row that must be there is not.
    NoRow,
    /// Something in a row that cannot be.
    Broken(String),
}

impl From<tokio_postgres::Error> for Fault {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Sql(error)
    }
}

impl From<StoreError> for Fault {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<IllegalMove> for Fault {
    fn from(error: IllegalMove) -> Self {
        Self::Store(error.into())
    }
}

impl From<serde_json::Error> for Fault {
    fn from(error: serde_json::Error) -> Self {
        Self::Broken(error.to_string())
    }
}

impl Fault {
    /// What PostgreSQL calls it, if it was asked.
    fn code(&self) -> Option<&SqlState> {
        match self {
            Self::Sql(error) => error.code(),
            _ => None,
        }
    }

    /// Whether the connection is gone, or the server is for now: the same may go through on another connection.
    pub(super) fn is_lost(&self) -> bool {
        match self {
            Self::Sql(error) => match error.code() {
                Some(code) => ["08", "57P"].iter().any(|class| code.code().starts_with(class)) || is_full(code),
                // What fails without the server's word failed on the way, unless a value could not be written or read.
                None => error.is_closed() || error.source_is_io(),
            },
            _ => false,
        }
    }

    /// Whether others were in the way, so that the same transaction may go through if it is begun anew.
    pub(super) fn is_crossed(&self) -> bool {
        let crossed =
            [SqlState::T_R_DEADLOCK_DETECTED, SqlState::T_R_SERIALIZATION_FAILURE, SqlState::LOCK_NOT_AVAILABLE];
        self.code().is_some_and(|code| crossed.contains(code))
    }

    /// The error as callers see it.
    pub(super) fn into_store_error(self, place: &str) -> StoreError {
        let place = place.to_owned();
        if self.is_lost() {
            return StoreError::Unavailable { place, why: said(&self) };
        }
        if self.is_crossed() {
            return StoreError::busy(place);
        }
        let code = self.code().cloned();
        let message = said(&self);
        match (self, code) {
            (Self::Store(error), _) => error,
            (_, Some(SqlState::DISK_FULL)) => StoreError::DiskFull { place },
            (_, Some(SqlState::READ_ONLY_SQL_TRANSACTION | SqlState::INSUFFICIENT_PRIVILEGE)) => {
                StoreError::ReadOnly { place, why: message }
            }
            _ => StoreError::Database { place, message },
        }
    }
}

/// Whether the server takes no more connections.
fn is_full(code: &SqlState) -> bool {
    *code == SqlState::TOO_MANY_CONNECTIONS
}

/// What went wrong, in the words of whoever noticed.
fn said(fault: &Fault) -> String {
    match fault {
        Fault::Sql(error) => match error.as_db_error() {
            Some(said) => said.message().to_owned(),
            None => std::error::Error::source(error)
                .map_or_else(|| error.to_string(), |source| format!("{error}: {source}")),
        },
        Fault::Store(error) => error.to_string(),
        Fault::NoRow => "a row that must be there is not".to_owned(),
        Fault::Broken(what) => what.clone(),
    }
}

/// Whether an error came from the network.
trait Source {
    fn source_is_io(&self) -> bool;
}

impl Source for tokio_postgres::Error {
    fn source_is_io(&self) -> bool {
        std::error::Error::source(self).is_some_and(|source| source.is::<std::io::Error>())
    }
}
