//! Errors inside the backend: what SQLite said, or a refusal of our own; turned into [`StoreError`] at the edge.

use std::path::Path;

use redrive_core::state::IllegalMove;
use rusqlite::ErrorCode;

use super::obstacles;
use crate::error::StoreError;

/// Why an operation did not go through.
#[derive(Debug)]
pub(super) enum Fault {
    Sql(rusqlite::Error),
    Store(StoreError),
}

impl From<rusqlite::Error> for Fault {
    fn from(error: rusqlite::Error) -> Self {
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
        Self::Sql(rusqlite::Error::ToSqlConversionFailure(Box::new(error)))
    }
}

impl Fault {
    /// The error as callers see it.
    pub(super) fn into_store_error(self, path: &Path) -> StoreError {
        let error = match self {
            Self::Store(error) => return error,
            Self::Sql(error) => error,
        };
        let place = path.display().to_string();
        match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => StoreError::busy(place),
            Some(ErrorCode::DiskFull) => obstacles::full(path),
            Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => {
                obstacles::refusal(path, &error.to_string())
            }
            // Where not even the log's index fits, SQLite does not say that the disk is full.
            Some(ErrorCode::SystemIoFailure) => match obstacles::of(path) {
                Some(passing @ (StoreError::DiskFull { .. } | StoreError::Unavailable { .. })) => passing,
                _ => StoreError::Database { place, message: error.to_string() },
            },
            Some(ErrorCode::NotADatabase) => StoreError::NotAStore { place, why: "it is not a database".to_owned() },
            _ => StoreError::Database { place, message: error.to_string() },
        }
    }
}
