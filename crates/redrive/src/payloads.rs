//! Payloads, for who holds a [`Redrive`]: which one is meant, and whether they are whole.

use std::time::Duration;

use redrive_core::actors::Actor;
use redrive_core::ids::{JobId, JobRef};
use redrive_core::payloads::{Payload, PayloadHash};
use redrive_store::contract::ListPayloads;
use serde::{Deserialize, Serialize};

use crate::engine::Redrive;
use crate::error::{Error, ErrorKind};
use crate::vault::{Collected, Vault, VaultError};

/// Payloads that are listed at once.
const PAGE: u32 = 500;

/// The shortest beginning of a hash that may mean one, in digits.
const PREFIX_MIN: usize = 6;

/// Why a payload cannot be found.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PayloadError {
    /// There is no such job.
    #[error("no task {0}")]
    NoJob(JobId),
    /// The payload of a job could not be kept.
    #[error("the payload of task {job} is lost: {why}")]
    Lost {
        /// The job.
        job: JobId,
        /// Why.
        why: String,
    },
    /// A job has none.
    #[error("task {0} has no payload: none was kept, or it has expired")]
    NoneKept(JobId),
    /// There is none with this hash.
    #[error("no payload {0}: it has expired, or belongs to another store")]
    Unknown(String),
    /// Several begin like that.
    #[error("{0} is the beginning of several payloads: give more of it")]
    Ambiguous(String),
    /// It is no name of a payload.
    #[error("{0:?} is neither a task's number or id nor the hash of a payload, or at least 6 digits of one")]
    NoName(String),
}

impl PayloadError {
    /// What it means to who asked.
    pub const fn kind(&self) -> ErrorKind {
        match self {
            Self::NoName(_) | Self::Ambiguous(_) => ErrorKind::Invalid,
            Self::NoJob(_) | Self::Lost { .. } | Self::NoneKept(_) | Self::Unknown(_) => ErrorKind::Missing,
        }
    }
}

/// What was removed from a vault, and what was left alone.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Cleared {
    /// What was removed.
    #[serde(flatten)]
    pub collected: Collected,
    /// Files in the layout of older versions that no row of this store knows; they may be another store's.
    pub older_strays: u64,
}

/// For how long what nothing refers to is spared, unless something else is said: it may be on its way to a row.
pub const GRACE: Duration = Duration::from_secs(3_600);

/// Removes what nothing refers to, and has not for some time. With `adopt`, also of what a copied store inherited: there is no
/// other store that needs it.
pub async fn clear(vault: &Vault, grace: Duration, adopt: bool, by: &Actor) -> Result<Cleared, Error> {
    if adopt {
        vault.adopt(by).await?;
    }
    Ok(Cleared { collected: vault.collect(grace, by).await?, older_strays: vault.count_older_strays().await? })
}

/// The ending of a file's name by which other programs know what a payload is.
pub fn extension(payload: &Payload) -> &'static str {
    let header = payload.response.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("content-type"));
    match header.map(|(_, value)| value.split(';').next().unwrap_or_default().trim()) {
        Some("text/html" | "application/xhtml+xml") => ".html",
        Some("application/json") => ".json",
        Some("text/xml" | "application/xml") => ".xml",
        Some("text/plain") => ".txt",
        _ => ".payload",
    }
}

/// How many payloads are whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verified {
    /// Payloads that are as they were kept.
    pub whole: u64,
    /// Payloads that are gone or damaged.
    pub broken: u64,
    /// Payloads that are on their way from another machine.
    pub elsewhere: u64,
}

impl Redrive {
    /// The payload that a text means: of a job, by its number or id, its newest; or a payload's own hash, or the beginning of one.
    /// What could be either is a job.
    pub async fn find_payload(&self, name: &str) -> Result<Payload, Error> {
        if let Ok(named) = name.parse::<JobRef>() {
            match self.find_job(&named).await {
                Ok(job) => return self.payload_of(job).await,
                // It may be the beginning of a hash.
                Err(Error::Job(_)) if name.len() >= PREFIX_MIN => {}
                Err(error) => return Err(error),
            }
        }
        if name.len() < PREFIX_MIN || !name.chars().all(|c| c.is_ascii_hexdigit()) {
            return Err(PayloadError::NoName(name.to_owned()).into());
        }
        let params = ListPayloads { prefix: Some(name.to_owned()), limit: 2, cursor: None };
        match self.store.list_payloads(params).await?.items.as_slice() {
            [one] => Ok(Payload::bare(one.hash, one.size_bytes)),
            [] => Err(PayloadError::Unknown(name.to_owned()).into()),
            _ => Err(PayloadError::Ambiguous(name.to_owned()).into()),
        }
    }

    /// The newest payload of a job.
    async fn payload_of(&self, job: JobId) -> Result<Payload, Error> {
        if let Some(payload) = self.store.payloads_of(job).await?.into_iter().next() {
            return Ok(payload);
        }
        let detail = self.store.get_job(job).await?.ok_or(PayloadError::NoJob(job))?;
        let mut payloads = detail.failures.iter().rev().filter_map(|failure| failure.payload.as_ref());
        Err(match payloads.find_map(|payload| payload.lost.clone()) {
            Some(why) => PayloadError::Lost { job, why },
            None => PayloadError::NoneKept(job),
        }
        .into())
    }

    /// Reads payloads back and compares their hashes: those that are named, or all. `broken` hears of each that is not whole.
    pub async fn verify_payloads(
        &self,
        vault: &Vault,
        names: &[String],
        mut broken: impl FnMut(&VaultError),
    ) -> Result<Verified, Error> {
        let mut verified = Verified::default();
        for name in names {
            let hash = self.find_payload(name).await?.hash;
            verified.count(vault, hash, &mut broken).await?;
        }
        let mut cursor = None;
        while names.is_empty() {
            let page = self.store.list_payloads(ListPayloads { prefix: None, limit: PAGE, cursor }).await?;
            for payload in &page.items {
                verified.count(vault, payload.hash, &mut broken).await?;
            }
            cursor = page.next;
            if cursor.is_none() {
                break;
            }
        }
        vault.note_reads(true).await;
        Ok(verified)
    }
}

impl Verified {
    async fn count(
        &mut self,
        vault: &Vault,
        hash: PayloadHash,
        broken: &mut impl FnMut(&VaultError),
    ) -> Result<(), Error> {
        match vault.verify(hash).await {
            Ok(()) => self.whole += 1,
            Err(error @ (VaultError::Missing(_) | VaultError::Damaged(_))) => {
                self.broken += 1;
                broken(&error);
            }
            Err(VaultError::OnItsWay { .. }) => self.elsewhere += 1,
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }
}
