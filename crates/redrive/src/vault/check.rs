//! Trying whether a vault takes, gives back and removes a payload.
//!
//! What is written is a payload of this store like any other, under a place that nobody else has: it meets nobody's files, and
//! what a kill leaves of it is collected like any payload that no row knows. Folders that were not there before go again.

use std::path::{Path, PathBuf};
use std::time::Duration;

use object_store::ObjectStoreExt;
use redrive_core::payloads::{PayloadHash, PayloadPlace};
use redrive_store::contract::ListPayloads;

use super::objects::{self, Patience, VaultPlace};
use super::{Vault, VaultError};
use crate::Redrive;

/// How long each step is waited for.
const PATIENCE: Duration = Duration::from_secs(10);

/// A vault that is well.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checked {
    /// Where it is, without credentials.
    pub address: String,
    /// Where requests go, if somebody said so.
    pub endpoint: Option<String>,
    /// A payload that the store knows and the vault does not have, if one was found among the first.
    pub missing: Option<PayloadHash>,
    /// Hosts whose workers have left no mark there: they have another vault, or none.
    pub unmarked: Vec<String>,
    /// Whether it is a folder on a disk of this machine.
    pub is_of_this_machine: bool,
}

/// What was tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Opening it.
    Open,
    /// Writing a payload.
    Write,
    /// Reading it again.
    Read,
    /// Removing it.
    Remove,
}

/// A vault that is not well.
#[derive(Debug, thiserror::Error)]
#[error("{}", self.told())]
pub struct CheckFailed {
    /// Where it is, without credentials.
    pub address: String,
    /// Where requests go, if somebody said so.
    pub endpoint: Option<String>,
    /// What did not work.
    pub step: Step,
    /// Why.
    pub why: String,
    /// What to do about it, as far as that can be told.
    pub advice: Option<&'static str>,
    /// The place of what was written and may still be there.
    pub left: Option<String>,
}

impl CheckFailed {
    fn told(&self) -> String {
        let Self { address, endpoint, step, why, advice, left } = self;
        let at = endpoint.as_ref().map(|endpoint| format!(" (at {endpoint})")).unwrap_or_default();
        let what = match step {
            Step::Open => "it cannot be opened",
            Step::Write => "a payload cannot be written",
            Step::Read => "a payload that was written cannot be read",
            Step::Remove => "a payload that was written cannot be removed",
        };
        let advice = advice.map(|advice| format!("; {advice}")).unwrap_or_default();
        let left = left.as_ref().map(|place| format!("; {place} may be left there")).unwrap_or_default();
        format!("{address}{at}: {what}: {why}{advice}{left}")
    }
}

/// Writes a small payload to a vault, reads it, and removes it again, whatever came of the rest.
pub async fn check(place: &VaultPlace, redrive: &Redrive) -> Result<Checked, CheckFailed> {
    check_within(PATIENCE, place, redrive).await
}

async fn check_within(patience: Duration, place: &VaultPlace, redrive: &Redrive) -> Result<Checked, CheckFailed> {
    let endpoint = place.endpoint().map(|endpoint| redrive_core::secrets::Secrets::default().mask(endpoint));
    let failed = |(step, error, left): (Step, VaultError, Option<String>)| CheckFailed {
        address: place.shown(),
        endpoint: endpoint.clone(),
        step,
        advice: advice(&error, place),
        why: error.in_short(),
        left,
    };
    let opened = objects::open(place, Patience::None).map_err(|error| failed((Step::Open, error, None)))?;
    let vault = Vault::over(opened, redrive);
    vault.check(patience).await.map_err(failed)?;
    let missing = vault.missing(patience).await.map_err(|error| failed((Step::Read, error, None)))?;
    let unmarked = vault.unmarked(redrive.now()).await.map_err(|error| failed((Step::Read, error, None)))?;
    let is_of_this_machine = place.folder().is_some_and(is_local);
    Ok(Checked { address: place.shown(), endpoint: endpoint.clone(), missing, unmarked, is_of_this_machine })
}

impl Vault {
    async fn check(&self, patience: Duration) -> Result<(), (Step, VaultError, Option<String>)> {
        let opening = |error| (Step::Open, error, None);
        let bytes: Vec<u8> = std::iter::repeat_with(|| fastrand::u8(..)).take(64).collect();
        let packed = zstd::bulk::compress(&bytes, 0).map_err(|error| opening(self.io_failed(error)))?;
        let hash = PayloadHash::from_bytes(*blake3::hash(&bytes).as_bytes());
        let store = self.store_id().await.map_err(opening)?;
        let place = PayloadPlace { store: Some(store), hash, salt: fastrand::u32(..) };
        let made = self.folder.as_deref().map(|folder| missing(folder, &place.to_string())).unwrap_or_default();
        let tried = self.write_and_read(patience, &place, packed).await;
        let removed = self.within(patience, self.delete(&place)).await;
        made.iter().for_each(|folder| drop(std::fs::remove_dir(folder)));
        match (tried, removed) {
            (Ok(()), Ok(())) => Ok(()),
            (Ok(()), Err(error)) => Err((Step::Remove, error, Some(place.to_string()))),
            (Err((step, error)), Ok(())) => Err((step, error, None)),
            // What was refused is not there; what nobody answered may be.
            (Err((Step::Write, error)), Err(_)) if !matches!(error, VaultError::NoAnswer { .. }) => {
                Err((Step::Write, error, None))
            }
            (Err((step, error)), Err(_)) => Err((step, error, Some(place.to_string()))),
        }
    }

    /// A payload among the first that is not there, though it is not on its way.
    async fn missing(&self, patience: Duration) -> Result<Option<PayloadHash>, VaultError> {
        let params = ListPayloads { prefix: None, limit: 5, cursor: None };
        for payload in self.store.list_payloads(params).await?.items {
            let path = payload.place.to_string().into();
            let head = async {
                match self.objects.head(&path).await {
                    Err(object_store::Error::NotFound { .. }) => Ok(true),
                    found => found.map(|_| false).map_err(|error| self.objects_failed(error)),
                }
            };
            if payload.spooled_on.is_none() && self.within(patience, head).await? {
                return Ok(Some(payload.hash));
            }
        }
        Ok(None)
    }

    async fn write_and_read(
        &self,
        patience: Duration,
        place: &PayloadPlace,
        packed: Vec<u8>,
    ) -> Result<(), (Step, VaultError)> {
        let path = place.to_string().into();
        let write = async { self.objects.put(&path, packed.clone().into()).await.map_err(|e| self.objects_failed(e)) };
        self.within(patience, write).await.map_err(|error| (Step::Write, error))?;
        let read = async {
            let object = self.objects.get(&path).await.map_err(|error| self.objects_failed(error))?;
            object.bytes().await.map_err(|error| self.objects_failed(error))
        };
        let read = self.within(patience, read).await.map_err(|error| (Step::Read, error))?;
        match read == packed {
            true => Ok(()),
            false => Err((Step::Read, VaultError::Damaged(place.hash.to_string()))),
        }
    }
}

/// Kinds of file systems that are on a disk, or in the memory, of one machine.
const LOCAL: [u32; 8] = [
    0xEF53,      // ext2, ext3, ext4
    0x5846_5342, // xfs
    0x9123_683E, // btrfs
    0x0102_1994, // tmpfs
    0x794C_7630, // overlay
    0x2FC1_2FC1, // zfs
    0xF2F5_2010, // f2fs
    0x5265_4973, // reiserfs
];

/// Whether a folder is plainly of this machine alone.
fn is_local(folder: &Path) -> bool {
    let kind = rustix::fs::statfs(folder).ok().and_then(|found| u32::try_from(found.f_type).ok());
    kind.is_some_and(|kind| LOCAL.contains(&kind))
}

/// The folders on the way to a place that are not there, the deepest first.
fn missing(folder: &Path, place: &str) -> Vec<PathBuf> {
    let path = folder.join(place);
    let inside = path.ancestors().skip(1).take_while(|ancestor| *ancestor != folder);
    inside.filter(|ancestor| !ancestor.exists()).map(Path::to_owned).collect()
}

/// What to do about an error.
fn advice(error: &VaultError, place: &VaultPlace) -> Option<&'static str> {
    let said = error.in_short();
    let has = |words: &[&str]| words.iter().any(|word| said.contains(word));
    if place.folder().is_some() {
        return None;
    }
    if !place.has_key() && !matches!(error, VaultError::Address { .. }) {
        return Some(
            "no key is named: access_key_id and secret_access_key of [vault], or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
        );
    }
    if has(&["NoSuchBucket"]) {
        return Some("make the bucket, or name another in the vault's URL");
    }
    if has(&["SignatureDoesNotMatch", "InvalidAccessKeyId", "NotSignedUp"]) {
        return Some("the key or its secret is wrong");
    }
    if has(&["AuthorizationHeaderMalformed", "PermanentRedirect"]) {
        return Some("the region may be wrong: region of [vault], or AWS_REGION");
    }
    if has(&["AccessDenied"]) {
        return Some("the key must be allowed to put, get and delete objects, and to list the bucket");
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What nobody answered may have been done: its place is told, so that somebody can look.
    #[tokio::test]
    #[cfg_attr(not(feature = "s3"), ignore = "needs the feature s3")]
    async fn a_vault_that_never_answers_is_not_waited_for_without_end() {
        let silent = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let endpoint = format!("http://{}", silent.local_addr().expect("an address"));
        let options = [
            ("AWS_ENDPOINT_URL_S3", endpoint.as_str()),
            ("AWS_ACCESS_KEY_ID", "the-id"),
            ("AWS_SECRET_ACCESS_KEY", "the-secret"),
        ];
        let options = options.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let place = VaultPlace { address: "s3://evidence/pages".to_owned(), options: options.into_iter().collect() };
        let redrive = Redrive::open("memory:").await.expect("opened");
        let failed = check_within(Duration::from_millis(50), &place, &redrive).await.expect_err("it never answers");
        assert_eq!(failed.step, Step::Write);
        let left = failed.left.as_deref().expect("it may be there");
        assert!(left.parse::<PayloadPlace>().is_ok(), "{left}");
        let told = failed.to_string();
        assert!(told.contains("no answer within") && told.ends_with("may be left there"), "{told}");
    }
}
