//! What a handler gets to keep payloads with: the vault, a cap, and when to keep anything at all.

use std::fmt;
use std::fs::File;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use redrive_core::failures::with_sources;
use redrive_core::ids::JobId;
use redrive_core::payloads::Response;
use serde::{Deserialize, Serialize};

use super::{Capture, Kept, Vault, VaultError};
use crate::handler::HandlerError;
use crate::handler::isolated::Parent;
use crate::leases::{BroughtBytes, BroughtPayload};
use crate::pipeline::Pipeline;

/// When payloads are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Keep {
    /// When the attempt failed.
    #[default]
    Failed,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// The evidence of one attempt.
#[derive(Clone, Debug, Default)]
pub struct Evidence {
    vault: Option<Vault>,
    job: Option<JobId>,
    keep: Keep,
    cap_bytes: u64,
    /// Whether there is no verdict without it.
    required: bool,
    kept: Arc<Mutex<Option<Kept>>>,
    /// Where an isolated job puts its payload, for the worker to keep.
    handed: Option<(PathBuf, Parent)>,
    /// Where it is put for who brings it to a server.
    brought: Option<Brought>,
    /// Whether the page of an attempt that succeeds is kept as one that works, and whether nothing else is asked for now.
    good: bool,
    only_good: Arc<AtomicBool>,
}

/// A payload that is brought elsewhere.
#[derive(Clone, Default)]
struct Brought(Arc<Mutex<Option<BroughtPayload>>>);

impl fmt::Debug for Brought {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Brought")
    }
}

impl Evidence {
    pub(crate) fn new(job: JobId, pipeline: &Pipeline) -> Self {
        let (vault, keep, cap_bytes) = (pipeline.vault.clone(), pipeline.keep, pipeline.payload_bytes_max);
        Self { vault, job: Some(job), keep, cap_bytes, required: pipeline.payload_required, ..Self::default() }
    }

    /// The same, where the page of an attempt that succeeds is kept, too.
    pub(crate) fn for_good(mut self, is_due: bool) -> Self {
        self.good = is_due && (self.vault.is_some() || self.brought.is_some()) && self.keep != Keep::Never;
        self
    }

    /// The evidence of a job that a server leased: it is kept there.
    pub(crate) fn taken(pipeline: &Pipeline) -> Self {
        let (keep, cap_bytes, required) = (pipeline.keep, pipeline.payload_bytes_max, pipeline.payload_required);
        let brought = Some(Brought::default());
        Self { keep, cap_bytes, required, brought, ..Self::default() }
    }

    /// The payload of this attempt, for who brings it to a server.
    pub(crate) fn take_brought(&self) -> Option<BroughtPayload> {
        self.brought.as_ref()?.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// The evidence of an isolated job: its payload goes to a file, from which the worker keeps it.
    pub(crate) fn handed(path: PathBuf, keep: Keep, cap_bytes: u64, parent: Parent) -> Self {
        Self { keep, cap_bytes, required: true, handed: Some((path, parent)), ..Self::default() }
    }

    /// The most that is kept of a payload, in bytes.
    pub(crate) const fn cap_bytes(&self) -> u64 {
        self.cap_bytes
    }

    /// Whether a payload is to be saved before it is worked on: whoever dies of it cannot save it afterwards.
    pub(crate) fn is_saved_first(&self) -> bool {
        self.handed.is_some() && self.keep != Keep::Never
    }

    /// Whether the payload of an attempt that ended so should be kept.
    pub fn is_wanted(&self, failed: bool) -> bool {
        let by_job = self.is_wanted_by_job(failed);
        self.only_good.store(!by_job, Ordering::Relaxed);
        by_job || (self.good && !failed)
    }

    /// Whether its job should refer to it then.
    pub(crate) fn is_wanted_by_job(&self, failed: bool) -> bool {
        let possible = self.vault.is_some() || self.handed.is_some() || self.brought.is_some();
        possible && (self.keep == Keep::Always || (self.keep == Keep::Failed && failed))
    }

    /// Begins to take a payload in.
    pub fn capture(&self) -> Result<Capture, HandlerError> {
        Capture::begin(self.cap_bytes).map_err(|error| unkept(&error))
    }

    /// Keeps a payload for this attempt. If that fails the attempt does not count: there is no verdict without evidence,
    /// unless the pipeline does not require it.
    pub async fn save(
        &self,
        capture: Capture,
        response: Response,
        total_bytes: Option<u64>,
    ) -> Result<(), HandlerError> {
        if let Some((path, parent)) = &self.handed {
            let total = capture.write_to(path.clone()).await.map_err(|error| unkept(&error))?;
            parent.hand_payload(response, Some(total.max(total_bytes.unwrap_or(0)))).await;
            return Ok(());
        }
        if let Some(Brought(place)) = &self.brought {
            let brought = BroughtPayload { bytes: BroughtBytes::Here(Box::new(capture)), response, total_bytes };
            *place.lock().unwrap_or_else(PoisonError::into_inner) = Some(brought);
            return Ok(());
        }
        let Some(vault) = &self.vault else { return Ok(()) };
        let only_good = self.only_good.load(Ordering::Relaxed);
        let saved = vault.save_for((self.job, self.required && !only_good), capture, response, total_bytes).await;
        let kept = match saved {
            Ok(kept) => kept,
            // Nothing depends on it: the next page that works is as good.
            Err(error) if only_good => {
                tracing::debug!(error = with_sources(&error), "a page that worked was not kept");
                return Ok(());
            }
            Err(error) => return Err(unkept(&error)),
        };
        *self.kept.lock().unwrap_or_else(PoisonError::into_inner) = Some(kept);
        Ok(())
    }

    /// Keeps a regular file, as long as it is now. `total_bytes` is how long the payload is, where that is known to be more.
    pub async fn save_file(
        &self,
        mut file: File,
        response: Response,
        total_bytes: Option<u64>,
    ) -> Result<(), HandlerError> {
        let cap_bytes = self.cap_bytes;
        let read = tokio::task::spawn_blocking(move || {
            let mut capture = Capture::begin(cap_bytes)?;
            capture.read_file(&mut file)?;
            Ok::<_, std::io::Error>(capture)
        });
        let capture = read.await.unwrap_or_else(|error| Err(std::io::Error::other(error)));
        self.save(capture.map_err(|error| unkept(&error))?, response, total_bytes).await
    }

    /// Whether a payload of this attempt was kept.
    pub(crate) fn is_kept(&self) -> bool {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.as_ref().is_some_and(|kept| kept.payload.lost.is_none())
    }

    pub(crate) fn take(&self) -> Option<Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Without the evidence there is no verdict: the attempt does not count.
pub(crate) fn unkept(error: &dyn std::error::Error) -> HandlerError {
    HandlerError::Unkept(format!("the payload cannot be kept: {}", with_sources(error)))
}

impl From<VaultError> for crate::Error {
    fn from(error: VaultError) -> Self {
        Self::Vault(Box::new(error))
    }
}
