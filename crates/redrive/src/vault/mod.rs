//! The vault: raw responses, kept as evidence.
//!
//! A payload is known by the BLAKE3 hash of its bytes, compressed with zstd, and streamed both ways: it is never whole in
//! memory. Its bytes are written, then registered in the store, and only then does a settlement point at them. Equal
//! payloads are kept once. All of it lies under an id that the store made for itself: whatever else is in the same folder or
//! bucket, another store's payloads included, is never listed and never removed.
//!
//! - `objects`: opening a folder, or a bucket (`s3`); `check`: trying whether it takes, gives back and removes a payload
//! - `capture`: taking bytes in, up to a cap; `save`: keeping them; `write`: to their place in the vault
//! - `read`: giving them back, checked
//! - `collect`: removing what nothing refers to; `strays`: finding bytes that no row knows
//! - `spool`: payloads on their way to a vault that is `away`; `uploader`: bringing them there
//! - `take_over`: bringing them from the vault of another store
//! - `marks`: whether other hosts have the same vault
//! - `evidence`: what a handler gets to keep payloads with

mod away;
mod capture;
mod check;
mod collect;
mod counts;
mod evidence;
mod marks;
mod objects;
mod read;
#[cfg(feature = "s3")]
mod s3;
#[cfg(not(feature = "s3"))]
#[path = "without_s3.rs"]
mod s3;
mod save;
mod spool;
mod strays;
mod take_over;
mod uploader;
mod write;

use std::path::Path;
use std::sync::Arc;

use object_store::{ObjectStore, ObjectStoreExt};
use redrive_core::failures::with_sources;
use redrive_core::payloads::{PayloadPlace, StoreId};
use redrive_store::Store;
use tokio::sync::{OnceCell, Semaphore};

pub use self::capture::Capture;
pub use self::check::{CheckFailed, Checked, Step, check};
pub use self::collect::Collected;
pub use self::counts::VaultCounts;
pub(crate) use self::evidence::unkept;
pub use self::evidence::{Evidence, Keep};
pub use self::objects::VaultPlace;
pub(crate) use self::save::Kept;
pub use self::spool::{SPOOL_BYTES_MAX, Spool, Spooled};
pub(crate) use self::take_over::Brought;

use self::away::Away;
use self::counts::Counters;
use self::objects::{Objects, Patience};
use crate::clock::Clock;

/// What can go wrong with the vault.
#[derive(Debug, thiserror::Error)]
pub enum VaultError {
    /// The vault's address is wrong.
    #[error("{address:?} cannot be used as a vault: {why}")]
    Address {
        /// What was given.
        address: String,
        /// What is wrong with it.
        why: String,
    },
    /// The payload is not in the vault, and says why.
    #[error("payload {0} is not in the vault: it has expired, or belongs to another one")]
    Missing(String),
    /// The bytes in the vault are not those that were kept.
    #[error("payload {0} is damaged: what is in the vault does not have that hash")]
    Damaged(String),
    /// The payload is on its way to the vault, from another machine.
    #[error("payload {hash} is on its way (spooled on {host}): it can be read there, or here once it has arrived")]
    OnItsWay {
        /// Which.
        hash: String,
        /// Where it waits.
        host: String,
    },
    /// The vault is away and there is no room for another payload.
    #[error("the vault at {address} is away, and the spool at {} is full: {bytes} of at most {bytes_max} bytes; reach the vault, or raise spool_max", .folder.display())]
    SpoolFull {
        /// Where the vault is.
        address: String,
        /// Where the spool is.
        folder: std::path::PathBuf,
        /// What it holds.
        bytes: u64,
        /// What it may hold.
        bytes_max: u64,
    },
    /// The vault did not answer in time.
    #[error("the vault at {address} failed: no answer within {} seconds", .patience.as_secs())]
    NoAnswer {
        /// Where it is.
        address: String,
        /// How long it was waited for.
        patience: std::time::Duration,
    },
    /// The object store failed.
    #[error("the vault at {address} failed")]
    Objects {
        /// Where it is.
        address: String,
        /// What it said.
        source: object_store::Error,
    },
    /// The local disk failed: the bytes are read from there on their way into the vault, and written there on their way out.
    #[error("a payload could not be read or written on this machine (vault {address})")]
    Io {
        /// Where the vault is, or the file in the spool.
        address: String,
        /// What it said.
        source: std::io::Error,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] redrive_store::StoreError),
}

impl VaultError {
    /// Whether the vault itself failed, and not this machine or the store: then it is away.
    const fn is_of_the_vault(&self) -> bool {
        matches!(self, Self::Objects { .. } | Self::NoAnswer { .. })
    }

    /// The address of the vault, if that is away: what was asked may be done later.
    pub fn away(&self) -> Option<&str> {
        match self {
            Self::Objects { address, .. } | Self::NoAnswer { address, .. } | Self::SpoolFull { address, .. } => {
                Some(address)
            }
            _ => None,
        }
    }

    /// What went wrong in the end, without the address and without all that passed it on.
    fn in_short(&self) -> String {
        match self {
            Self::Objects { source, .. } => objects::root_cause(source),
            Self::Address { why, .. } => why.clone(),
            Self::NoAnswer { patience, .. } => format!("no answer within {} seconds", patience.as_secs()),
            other => with_sources(other),
        }
    }
}

/// A vault over one object store. Cheap to clone.
#[derive(Clone)]
pub struct Vault {
    address: Arc<str>,
    objects: Arc<dyn ObjectStore>,
    /// The folder, if it is one.
    folder: Option<Arc<Path>>,
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    store_id: Arc<OnceCell<StoreId>>,
    /// Where payloads wait while it is away.
    spool: Option<Spool>,
    away: Away,
    /// How many payloads may be kept at hand until their settlement is answered: each is an open file.
    at_hand: Arc<Semaphore>,
    /// What is counted of it in this process.
    counters: Arc<Counters>,
}

/// Payloads that are kept at hand at once.
const AT_HAND_MAX: usize = 64;

impl std::fmt::Debug for Vault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Vault({})", self.address)
    }
}

impl Vault {
    /// Opens the vault at an address: a folder, or a URL such as `s3://bucket/prefix`, whose options come from the
    /// environment (`AWS_ACCESS_KEY_ID` and so on).
    pub fn open(address: &str, redrive: &crate::Redrive) -> Result<Self, VaultError> {
        Self::at(&VaultPlace::of_environment(address), redrive)
    }

    /// The same with the options of an object store given, by the names they have in the environment.
    pub fn open_with(
        address: &str,
        redrive: &crate::Redrive,
        options: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Self, VaultError> {
        Self::at(&VaultPlace { address: address.to_owned(), options: options.into_iter().collect() }, redrive)
    }

    /// Opens the vault at a place.
    pub fn at(place: &VaultPlace, redrive: &crate::Redrive) -> Result<Self, VaultError> {
        Ok(Self::over(objects::open(place, Patience::Usual)?, redrive))
    }

    fn over(opened: Objects, redrive: &crate::Redrive) -> Self {
        Self {
            address: opened.shown.into(),
            objects: opened.objects,
            folder: opened.folder,
            store: Arc::clone(&redrive.store),
            clock: Arc::clone(&redrive.clock),
            store_id: Arc::default(),
            spool: None,
            away: Away::new(redrive.events.clone(), Arc::clone(&redrive.clock)),
            at_hand: Arc::new(Semaphore::new(AT_HAND_MAX)),
            counters: Arc::default(),
        }
    }

    /// The same with a spool for payloads that come while it is away.
    pub fn with_spool(self, spool: Spool) -> Self {
        Self { spool: Some(spool), ..self }
    }

    /// Where it is, without credentials.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// The folder it is, if it is one.
    pub(crate) fn folder(&self) -> Option<&Path> {
        self.folder.as_deref()
    }

    /// The file on this machine that has what is at a place, packed: in the vault's folder, or on its way there.
    pub(crate) fn file_at(&self, place: &PayloadPlace) -> Option<std::path::PathBuf> {
        let in_vault = self.folder.as_ref().map(|folder| folder.join(place.to_string()));
        let in_spool = self.spool.as_ref().map(|spool| spool.path(place));
        [in_vault, in_spool].into_iter().flatten().find(|path| path.is_file())
    }

    fn objects_failed(&self, source: object_store::Error) -> VaultError {
        VaultError::Objects { address: self.address.to_string(), source }
    }

    fn io_failed(&self, source: std::io::Error) -> VaultError {
        VaultError::Io { address: self.address.to_string(), source }
    }

    /// The id under which this store's payloads lie.
    async fn store_id(&self) -> Result<StoreId, VaultError> {
        let ask = || async { Ok::<_, VaultError>(self.store.store_ids().await?.own) };
        self.store_id.get_or_try_init(ask).await.copied()
    }

    async fn delete(&self, place: &PayloadPlace) -> Result<(), VaultError> {
        match self.objects.delete(&place.to_string().into()).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(self.objects_failed(error)),
        }
    }
}
