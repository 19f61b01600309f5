//! Where a store is, as text, and the table of backends that open one.

use std::fmt;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use redrive_core::secrets::Secrets;

use crate::contract::Store;
use crate::error::{Result, StoreError};
use crate::postgres::{Migration, PostgresStore, address};
use crate::sqlite::SqliteStore;

/// How a store is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// Whether a store that is not there is made. Else it is an error; one that cannot be written can still be read.
    pub create: bool,
    /// Whether a store that another is being copied to is opened, too: only to go on with that.
    pub unfinished: bool,
    /// For how long a server that does not answer is waited for before a call is refused. A call of which nobody knows whether it took
    /// place is never refused: it is answered when the server is.
    pub patience: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self { create: false, unfinished: false, patience: Duration::from_secs(30) }
    }
}

impl Options {
    /// A store that is not there is made.
    pub fn create() -> Self {
        Self { create: true, ..Self::default() }
    }

    /// The same for the target of a copy.
    pub const fn unfinished(self) -> Self {
        Self { unfinished: true, ..self }
    }

    /// The same, and a server that does not answer is waited for by whoever calls: it is told at once.
    pub fn impatient(self) -> Self {
        Self { patience: Duration::ZERO, ..self }
    }
}

/// The backends, by the scheme of their addresses.
const SCHEMES: &[Scheme] = &[
    Scheme { name: "sqlite", rest: "PATH", open: open_file },
    Scheme { name: "memory", rest: "", open: open_memory },
    Scheme { name: POSTGRES, rest: "//USER@HOST/DATABASE", open: open_postgres },
];

const POSTGRES: &str = "postgres";

type Opening = Pin<Box<dyn Future<Output = Result<Arc<dyn Store>>> + Send>>;

/// A backend: the beginning of its addresses, what follows it, and how it is opened.
struct Scheme {
    name: &'static str,
    /// What an address has after the colon, for messages; nothing if there must be nothing.
    rest: &'static str,
    open: fn(String, Options) -> Opening,
}

/// The address of a store, of a scheme that is known. It is printed without a password.
#[derive(Clone)]
pub struct Location {
    scheme: &'static Scheme,
    rest: String,
}

impl Location {
    /// A SQLite file.
    pub fn sqlite(path: &Path) -> Self {
        Self { scheme: &SCHEMES[0], rest: path.display().to_string() }
    }

    /// In memory, gone with the process.
    pub const fn memory() -> Self {
        Self { scheme: &SCHEMES[1], rest: String::new() }
    }

    /// What would bring the store to the version of this build, for somebody else to run. A store in a file is brought forward by
    /// whoever opens it.
    pub async fn migration(&self) -> Result<Migration> {
        match self.is_shared() {
            true => PostgresStore::migration(&postgres(&self.rest)).await,
            false => Err(StoreError::InvalidAddress {
                address: self.to_string(),
                why: "it is brought forward by opening it, there is nothing to print; only a store in PostgreSQL has that".into(),
            }),
        }
    }

    /// Whether workers on other machines can have the same store.
    pub fn is_shared(&self) -> bool {
        self.scheme.name == POSTGRES
    }

    /// Opens the store.
    pub async fn open(&self, options: Options) -> Result<Arc<dyn Store>> {
        (self.scheme.open)(self.rest.clone(), options).await
    }

    /// The file that the store is in, if it is in one.
    pub fn file(&self) -> Option<&Path> {
        (self.scheme.name == SCHEMES[0].name).then(|| Path::new(&self.rest))
    }
}

impl FromStr for Location {
    type Err = StoreError;

    fn from_str(text: &str) -> Result<Self> {
        let found = text.split_once(':').and_then(|(name, rest)| {
            let name = if name == "postgresql" { POSTGRES } else { name };
            let fits = |scheme: &&Scheme| {
                let is_whole = scheme.rest.is_empty() == rest.is_empty();
                scheme.name == name && is_whole && (rest.starts_with("//") || !scheme.rest.starts_with("//"))
            };
            Some(Self { scheme: SCHEMES.iter().find(fits)?, rest: rest.trim_start_matches("//").to_owned() })
        });
        let unknown = || StoreError::InvalidLocation { text: Secrets::default().mask(text), known: known() };
        let found = found.ok_or_else(unknown)?;
        if found.is_shared() {
            address::check(&postgres(&found.rest))?;
        }
        Ok(found)
    }
}

/// The addresses that are understood.
fn known() -> String {
    let written: Vec<_> = SCHEMES.iter().map(|scheme| format!("{}:{}", scheme.name, scheme.rest)).collect();
    written.join(" or ")
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.is_shared() {
            true => f.write_str(&address::shown(&postgres(&self.rest))),
            false => write!(f, "{}:{}", self.scheme.name, self.rest),
        }
    }
}

impl fmt::Debug for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl PartialEq for Location {
    fn eq(&self, other: &Self) -> bool {
        (self.scheme.name, &self.rest) == (other.scheme.name, &other.rest)
    }
}

/// Where the payloads of a store in a file are kept unless something else is said.
pub fn payloads_beside(store: &Path) -> PathBuf {
    store.with_file_name("payloads")
}

/// Opens the store at an address.
pub async fn open(address: &str, options: Options) -> Result<Arc<dyn Store>> {
    address.parse::<Location>()?.open(options).await
}

fn open_file(path: String, options: Options) -> Opening {
    Box::pin(async move {
        // Another process may hold the file, or an older one is brought forward: nothing else waits for that.
        let opened = tokio::task::spawn_blocking(move || SqliteStore::open(Path::new(&path), options));
        Ok(Arc::new(opened.await.map_err(|_| StoreError::Closed)??) as Arc<dyn Store>)
    })
}

fn open_memory(_: String, _: Options) -> Opening {
    Box::pin(async { Ok(Arc::new(SqliteStore::in_memory()?) as Arc<dyn Store>) })
}

fn open_postgres(rest: String, options: Options) -> Opening {
    Box::pin(async move { Ok(Arc::new(PostgresStore::open(&postgres(&rest), None, options).await?) as Arc<dyn Store>) })
}

/// The address of a store in PostgreSQL, whole again.
fn postgres(rest: &str) -> String {
    format!("{POSTGRES}://{rest}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        assert_eq!("memory:".parse::<Location>().ok(), Some(Location::memory()));
        for (address, path) in [("sqlite:a/b.db", "a/b.db"), ("sqlite:///a/b.db", "/a/b.db")] {
            let location: Location = address.parse().expect("an address");
            assert_eq!(location, Location::sqlite(Path::new(path)));
            assert_eq!(location.file(), Some(Path::new(path)));
        }
        assert_eq!(Location::memory().file(), None);
        for bad in ["", "sqlite:", "memory:x", "a.db", "redis:x", "postgres:db", "postgre://me:s3cret@db/x"] {
            let error = bad.parse::<Location>().expect_err(bad).to_string();
            assert!(error.contains("sqlite:PATH or memory:") && !error.contains("s3cret"), "{error}");
        }
    }

    #[test]
    fn an_address_is_printed_without_its_password() {
        let location: Location = "postgresql://me:s3cret@db/x?schema=one".parse().expect("an address");
        assert_eq!(location.to_string(), "postgres://me:***@db/x?schema=one");
        assert_eq!(format!("{location:?}"), location.to_string());
        assert!(location.is_shared() && location.file().is_none() && !Location::memory().is_shared());
        let wrong = "postgres://me:s3cret@db/x?sslmod=disable".parse::<Location>().expect_err("a typo").to_string();
        assert!(wrong.contains("`sslmode`") && !wrong.contains("s3cret"), "{wrong}");
    }

    #[tokio::test]
    async fn a_store_that_is_not_there_is_made_only_if_asked_to() {
        let folder = tempfile::tempdir().expect("a folder");
        let address = format!("sqlite:{}", folder.path().join("new/redrive.db").display());
        let missing = open(&address, Options::default()).await.err().expect("there is none");
        assert!(matches!(missing, StoreError::Missing { .. }), "{missing}");
        assert!(!folder.path().join("new").exists(), "nothing was made");
        open(&address, Options::create()).await.expect("made");
        open(&address, Options::default()).await.expect("there is one now");
    }
}
