//! What is in a backup, in this order: `redrive-backup.json`, `redrive.db`, `payloads/PLACE` for each payload, and
//! `end.json`, without which it is not whole.

use redrive_core::time::Timestamp;
use serde::{Deserialize, Serialize};

/// The version of the archive that this program writes.
pub(super) const FORMAT: u32 = 1;

/// The first entry, a [`Head`].
pub(super) const HEAD: &str = "redrive-backup.json";
/// The store.
pub(super) const STORE: &str = "redrive.db";
/// The folder of payloads.
pub(super) const PAYLOADS: &str = "payloads/";
/// The last entry, an [`End`].
pub(super) const END: &str = "end.json";

/// What the first entry says.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Head {
    /// The version of the archive.
    pub(super) format: u32,
    /// The version of the program that wrote it.
    pub(super) redrive: String,
    /// When it was begun.
    pub(super) made_at: Timestamp,
    /// Where payloads are, if they are not part of it.
    pub(super) vault: Option<String>,
}

/// What the last entry says.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct End {
    /// Tasks in the store.
    pub(super) tasks: u64,
    /// Payloads in the archive.
    pub(super) payloads: u64,
    /// Payloads that were gone or damaged already.
    pub(super) broken: u64,
}
