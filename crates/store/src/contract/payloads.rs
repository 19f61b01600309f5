//! Payloads: which of them are in the vault, where, and who refers to them.
//!
//! The bytes are written first, then registered, then referred to by a settlement. What nobody refers to is swept: first its
//! row goes, then its bytes, and whoever comes meanwhile registers a place of his own. Bytes that no row knows are condemned
//! before they are removed, so that nobody registers them meanwhile.

use async_trait::async_trait;
use redrive_core::actors::Actor;
use redrive_core::ids::{JobId, PipelineName};
use redrive_core::payloads::{Payload, PayloadHash, PayloadPlace, PayloadReads, StoreId, Unreadable};
use redrive_core::time::Timestamp;
use serde::{Deserialize, Serialize};

use super::pages::Page;
use crate::error::Result;

/// The payloads of the vault.
#[async_trait]
pub trait PayloadStore {
    /// Where a payload is, if it is registered. Keeps it from being swept for a while, and as long as the job that wants it
    /// is leased.
    async fn touch_payload(&self, params: TouchPayload) -> Result<Option<PayloadAt>>;

    /// Where a payload is, if it is registered, only to read it.
    async fn place_of_payload(&self, hash: PayloadHash) -> Result<Option<PayloadAt>>;

    /// Registers a payload whose bytes are written, and says which place counts: another may have been faster.
    async fn register_payload(&self, params: RegisterPayload) -> Result<Registered>;

    /// Notes on which host a payload waits in a spool; nothing once it is in the vault. Says whether it is registered there.
    async fn note_spooled(&self, place: PayloadPlace, on: Option<String>) -> Result<bool>;

    /// Notes what a read of a payload found: why its bytes at a place cannot be read, or nothing if they can. Keeps the time of
    /// the first of several reads that found the same. Ignores a place that is registered no more.
    async fn note_readable(&self, place: PayloadPlace, unreadable: Option<Unreadable>) -> Result<()>;

    /// Adds to how often payloads were asked for on a host.
    async fn count_payload_reads(&self, params: CountPayloadReads) -> Result<()>;

    /// Counts reads of payloads on all hosts.
    async fn payload_reads(&self) -> Result<PayloadReads>;

    /// A page of payloads, ordered by hash.
    async fn list_payloads(&self, params: ListPayloads) -> Result<Page<PayloadView>>;

    /// The payloads a job refers to, newest first.
    async fn payloads_of(&self, job: JobId) -> Result<Vec<Payload>>;

    /// Jobs that refer to a payload, newest first, at most so many: by when they came to it, or by when they were made. If more
    /// than 10,000 do, those may be the newest of some.
    async fn jobs_with_payload(&self, hash: PayloadHash, limit: u32) -> Result<Vec<JobId>>;

    /// The pipelines whose queued, leased and dead jobs refer to a payload, by name.
    async fn pipelines_with_payload(&self, hash: PayloadHash) -> Result<Vec<PipelineName>>;

    /// Forgets payloads that nobody refers to and nobody meant to since a time; says where their bytes are. Spares those
    /// that a leased job wants, and those that were inherited.
    async fn sweep_payloads(&self, params: SweepPayloads) -> Result<Vec<PayloadPlace>>;

    /// Which of these places are registered, in the order asked.
    async fn known_places(&self, places: Vec<PayloadPlace>) -> Result<Vec<bool>>;

    /// Condemns the places that no payload is registered at: nobody can register them any more. Says which.
    async fn condemn_places(&self, places: Vec<PayloadPlace>, now: Timestamp) -> Result<Vec<PayloadPlace>>;

    /// Under which ids the payloads of this store lie in the vault.
    async fn store_ids(&self) -> Result<StoreIds>;

    /// Says that this is the only store that is left of those it was copied from: what it inherited is its own.
    async fn adopt_payloads(&self, by: Actor, now: Timestamp) -> Result<()>;
}

/// Says that somebody means to refer to a payload.
#[derive(Clone, Copy, Debug)]
pub struct TouchPayload {
    /// Which.
    pub hash: PayloadHash,
    /// The job whose attempt wants it.
    pub wanted_by: Option<JobId>,
    /// The time.
    pub now: Timestamp,
}

/// Registers a payload.
#[derive(Clone, Debug)]
pub struct RegisterPayload {
    /// Where its bytes are in the vault.
    pub place: PayloadPlace,
    /// Its length.
    pub size_bytes: u64,
    /// What it takes in the vault.
    pub stored_bytes: u64,
    /// The host whose spool has it, if the vault was away.
    pub spooled_on: Option<String>,
    /// The place that its row names by now, if there is one that cannot be relied on: this one counts instead.
    pub instead_of: Option<PayloadPlace>,
    /// The job whose attempt wants it.
    pub wanted_by: Option<JobId>,
    /// The time.
    pub now: Timestamp,
}

/// Where a payload is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PayloadAt {
    /// Its place in the vault.
    pub place: PayloadPlace,
    /// The host whose spool has it, while it is on its way there.
    pub spooled_on: Option<String>,
    /// Why its bytes could not be read when they were last asked for, if so.
    pub unreadable: Option<Unreadable>,
}

/// Adds to how often payloads were asked for.
#[derive(Clone, Debug)]
pub struct CountPayloadReads {
    /// The host that asked.
    pub host: String,
    /// Reads that found the payload.
    pub found: u64,
    /// Reads that did not.
    pub missing: u64,
    /// The time.
    pub now: Timestamp,
}

/// What came of registering a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Registered {
    /// It is registered, and lies there.
    At(PayloadPlace),
    /// The place was condemned meanwhile: its bytes are to be written to another one.
    Condemned,
}

/// Under which ids the payloads of a store lie in the vault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreIds {
    /// The one it writes to.
    pub own: StoreId,
    /// Former ones that nobody else uses.
    pub adopted: Vec<StoreId>,
    /// Those of the store it was copied from, which may still be in use.
    pub inherited: Vec<StoreId>,
    /// Whether it has, or had, payloads that were kept before stores had ids.
    pub older: bool,
    /// Whether those were inherited, too.
    pub older_inherited: bool,
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PayloadView {
    /// Its address.
    pub hash: PayloadHash,
    /// Where its bytes are in the vault.
    pub place: PayloadPlace,
    /// Its length.
    pub size_bytes: u64,
    /// What it takes in the vault.
    pub stored_bytes: u64,
    /// When it was first kept.
    pub created_at: Timestamp,
    /// Jobs that refer to it, and pages that worked.
    pub uses: u64,
    /// The host whose spool has it, while it is on its way to the vault.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spooled_on: Option<String>,
    /// Why its bytes could not be read when they were last asked for, if so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unreadable: Option<Unreadable>,
}

/// Asks for payloads to be forgotten.
#[derive(Clone, Debug)]
pub struct SweepPayloads {
    /// Those that nobody touched since.
    pub before: Timestamp,
    /// At most so many.
    pub limit: u32,
    /// Who wants it.
    pub by: Actor,
    /// The time.
    pub now: Timestamp,
}
