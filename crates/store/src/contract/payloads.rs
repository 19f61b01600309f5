//! Payloads: which of them are in the vault, where, and who refers to them.
//!
//! The bytes are written first, then registered, then referred to by a settlement. What nobody refers to is swept: first its
//! row goes, then its bytes, and whoever comes meanwhile registers a place of his own.

use async_trait::async_trait;
use redrive_core::ids::JobId;
use redrive_core::payloads::{Payload, PayloadHash};
use redrive_core::time::Timestamp;
use serde::Serialize;

use super::pages::Page;
use crate::error::Result;

/// The payloads of the vault.
#[async_trait]
pub trait PayloadStore {
    /// Where a payload is, if it is registered. Keeps it from being swept for a while.
    async fn touch_payload(&self, hash: PayloadHash, now: Timestamp) -> Result<Option<String>>;

    /// Where a payload is, if it is registered, only to read it.
    async fn place_of_payload(&self, hash: PayloadHash) -> Result<Option<String>>;

    /// Registers a payload whose bytes are written, and says which place counts: another may have been faster.
    async fn register_payload(&self, params: RegisterPayload) -> Result<String>;

    /// A page of payloads, ordered by hash.
    async fn list_payloads(&self, params: ListPayloads) -> Result<Page<PayloadView>>;

    /// The payloads a job refers to, newest first.
    async fn payloads_of(&self, job: JobId) -> Result<Vec<Payload>>;

    /// Forgets payloads that nobody refers to and nobody meant to since a time; says where their bytes are.
    async fn sweep_payloads(&self, params: SweepPayloads) -> Result<Vec<String>>;

    /// Which of these places are registered, in the order asked.
    async fn known_places(&self, places: Vec<String>) -> Result<Vec<bool>>;
}

/// Registers a payload.
#[derive(Clone, Debug)]
pub struct RegisterPayload {
    /// Its address.
    pub hash: PayloadHash,
    /// Where its bytes are in the vault.
    pub place: String,
    /// Its length.
    pub size_bytes: u64,
    /// What it takes in the vault.
    pub stored_bytes: u64,
    /// The time.
    pub now: Timestamp,
}

/// Asks for a page of payloads.
#[derive(Clone, Debug, Default)]
pub struct ListPayloads {
    /// Only those whose hash begins with these hexadecimal digits.
    pub prefix: Option<String>,
    /// At most so many.
    pub limit: u32,
    /// Where to go on.
    pub cursor: Option<String>,
}

/// A payload of the vault.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PayloadView {
    /// Its address.
    pub hash: PayloadHash,
    /// Where its bytes are in the vault.
    pub place: String,
    /// Its length.
    pub size_bytes: u64,
    /// What it takes in the vault.
    pub stored_bytes: u64,
    /// When it was first kept.
    pub created_at: Timestamp,
    /// Jobs that refer to it.
    pub uses: u64,
}

/// Asks for payloads to be forgotten.
#[derive(Clone, Copy, Debug)]
pub struct SweepPayloads {
    /// Those that nobody touched since.
    pub before: Timestamp,
    /// At most so many.
    pub limit: u32,
}
