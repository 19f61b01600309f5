//! Where a store is, as text, and how it is opened.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use crate::contract::Store;
use crate::error::{Result, StoreError};
use crate::sqlite::SqliteStore;

/// The address of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Location {
    /// A SQLite file: `sqlite:PATH`.
    Sqlite(PathBuf),
    /// In memory, gone with the process: `memory:`.
    Memory,
}

/// Whether a store that is not there is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenMode {
    /// Make it.
    Create,
    /// Say that it is missing. One that cannot be written can still be read.
    Existing,
}

impl FromStr for Location {
    type Err = StoreError;

    fn from_str(text: &str) -> Result<Self> {
        match text.split_once(':') {
            Some(("memory", "")) => Ok(Self::Memory),
            Some(("sqlite", path)) if !path.is_empty() => Ok(Self::Sqlite(path.trim_start_matches("//").into())),
            _ => Err(StoreError::InvalidLocation(text.to_owned())),
        }
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(path) => write!(f, "sqlite:{}", path.display()),
            Self::Memory => f.write_str("memory:"),
        }
    }
}

/// Where the payloads of a store in a file are kept unless something else is said.
pub fn payloads_beside(store: &Path) -> PathBuf {
    store.with_file_name("payloads")
}

/// Opens the store at a location.
pub fn open(location: &Location, mode: OpenMode) -> Result<Arc<dyn Store>> {
    Ok(match location {
        Location::Sqlite(path) => Arc::new(SqliteStore::open(path, mode)?),
        Location::Memory => Arc::new(SqliteStore::in_memory()?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        assert_eq!("memory:".parse::<Location>().ok(), Some(Location::Memory));
        assert_eq!("sqlite:a/b.db".parse::<Location>().ok(), Some(Location::Sqlite("a/b.db".into())));
        assert_eq!("sqlite:///a/b.db".parse::<Location>().ok(), Some(Location::Sqlite("/a/b.db".into())));
        for bad in ["", "sqlite:", "memory:x", "a.db", "redis:x"] {
            assert!(bad.parse::<Location>().is_err(), "{bad:?}");
        }
    }
}
