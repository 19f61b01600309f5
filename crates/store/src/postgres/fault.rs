//! Errors inside the backend: what PostgreSQL said, or a refusal of our own; turned into [`StoreError`] at the edge.

use redrive_core::state::IllegalMove;
use tokio_postgres::error::SqlState;

use super::copies;
use super::refusals;
use crate::error::StoreError;

/// Why an operation did not go through.
#[derive(Debug)]
pub(crate) enum Fault {
    /// The database or the way to it.
    Sql(tokio_postgres::Error),
    /// A refusal.
    Store(StoreError),
    /// Nobody answers on a connection that was made.
    Silent,
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

/// Beginnings of what PostgreSQL calls the end of a connection: something on the way, a server that stops or does not take more, a
/// transaction that rested for too long or took too long.
const LOST: [&str; 5] = ["08", "57P", "53300", "25P03", "25P04"];

/// What is known of a server that takes no writes.
const READ_ONLY: &str =
    "it is a standby, or set to be read-only: name the primary, or all with target_session_attrs=read-write";

impl Fault {
    /// What PostgreSQL calls it, if it was asked.
    pub(super) fn code(&self) -> Option<&SqlState> {
        match self {
            Self::Sql(error) => error.code(),
            _ => None,
        }
    }

    /// Whether it is the server's word, or that of a pooler.
    pub(super) fn is_said(&self) -> bool {
        self.code().is_some()
    }

    /// Whether somebody on the way knows less than a server does.
    pub(super) fn is_unsupported(&self) -> bool {
        self.code().is_some_and(|code| [SqlState::PROTOCOL_VIOLATION, SqlState::FEATURE_NOT_SUPPORTED].contains(code))
    }

    /// Whether nothing can be written on this connection, to a server that follows another: on the next it may be possible, or when it is
    /// promoted.
    pub(super) fn is_read_only(&self) -> bool {
        self.code() == Some(&SqlState::READ_ONLY_SQL_TRANSACTION)
    }

    /// Whether somebody or a limit of the server's ended a statement.
    pub(super) fn is_cancelled(&self) -> bool {
        self.code() == Some(&SqlState::QUERY_CANCELED)
    }

    /// Whether the connection is gone, or the server is for now: the same may go through on another connection.
    pub(super) fn is_lost(&self) -> bool {
        match self {
            Self::Sql(error) => match error.code() {
                Some(code) => LOST.iter().any(|class| code.code().starts_with(class)) || self.is_read_only(),
                // What fails without the server's word failed on the way, unless a value could not be written or read, or one of the
                // two does not trust the other.
                None => (error.is_closed() || error.source_is_io()) && refusals::distrust(error).is_none(),
            },
            Self::Silent => true,
            _ => false,
        }
    }

    /// Whether the connection may be taken if it is encrypted, or is not.
    pub(super) fn is_about_encryption(&self) -> bool {
        match self {
            Self::Sql(error) => match error.code() {
                Some(code) => *code == SqlState::INVALID_AUTHORIZATION_SPECIFICATION,
                None => error.to_string().contains("TLS") || refusals::distrust(error).is_some(),
            },
            _ => false,
        }
    }

    /// Whether others were in the way, so that the same transaction may go through if it is begun anew.
    pub(super) fn is_crossed(&self) -> bool {
        let crossed =
            [SqlState::T_R_DEADLOCK_DETECTED, SqlState::T_R_SERIALIZATION_FAILURE, SqlState::LOCK_NOT_AVAILABLE];
        self.is_cancelled() || self.code().is_some_and(|code| crossed.contains(code))
    }

    /// Whether a statement was refused because one before it in the transaction had failed, which is the reason.
    fn is_aborted(&self) -> bool {
        self.code() == Some(&SqlState::IN_FAILED_SQL_TRANSACTION)
    }

    /// The error as callers see it.
    pub(super) fn into_store_error(self, place: &str) -> StoreError {
        let place = place.to_owned();
        if self.is_lost() {
            let why = match self.is_read_only() {
                true => format!("{}; {READ_ONLY}", said(&self)),
                false => said(&self),
            };
            return StoreError::Unavailable { place, why };
        }
        if self.is_crossed() {
            return StoreError::busy(place);
        }
        if let Some(why) = refusals::why(&self) {
            return StoreError::Refused { place, why };
        }
        let code = self.code().cloned();
        let message = said(&self);
        match (self, code) {
            (Self::Store(error), _) => error,
            (_, Some(code)) if code.code() == copies::REFUSED => copies::refusal(&place, &message),
            (_, Some(SqlState::DISK_FULL)) => StoreError::DiskFull { place },
            _ => StoreError::Database { place, message },
        }
    }
}

/// Returns the answers to two statements that were sent at once in one transaction, or the fault that came first on the
/// server. Either may be the first to be noticed here.
pub(super) fn all_well<A, B>(answers: (Result<A, Fault>, Result<B, Fault>)) -> Result<(A, B), Fault> {
    match answers {
        (Ok(one), Ok(other)) => Ok((one, other)),
        (Err(aborted), Err(reason)) if aborted.is_aborted() => Err(reason),
        (Err(reason), _) | (_, Err(reason)) => Err(reason),
    }
}

/// What went wrong, in the words of whoever noticed.
pub(super) fn said(fault: &Fault) -> String {
    match fault {
        Fault::Sql(error) => match error.as_db_error() {
            Some(said) if *said.code() == SqlState::TOO_MANY_CONNECTIONS => format!(
                "it has no connection left ({}): raise max_connections there, lower pool in the address, or put a pooler between",
                said.message()
            ),
            Some(said) => said.message().to_owned(),
            None => std::error::Error::source(error)
                .map_or_else(|| error.to_string(), |source| format!("{error}: {source}")),
        },
        Fault::Store(error) => error.to_string(),
        Fault::Silent => "nobody answers on a connection that was made".to_owned(),
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
