//! What a handler gets to keep payloads with: the vault, a cap, and when to keep anything at all.

use std::fs::File;
use std::sync::{Arc, Mutex, PoisonError};

use redrive_core::failures::with_sources;
use redrive_core::payloads::{Payload, Response};

use super::{Capture, Vault, VaultError};
use crate::handler::HandlerError;

/// When payloads are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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
    keep: Keep,
    cap_bytes: u64,
    kept: Arc<Mutex<Option<Payload>>>,
}

impl Evidence {
    pub(crate) fn new(vault: Option<Vault>, keep: Keep, cap_bytes: u64) -> Self {
        Self { vault, keep, cap_bytes, kept: Arc::default() }
    }

    /// Whether the payload of an attempt that ended so should be kept.
    pub fn is_wanted(&self, failed: bool) -> bool {
        self.vault.is_some() && (self.keep == Keep::Always || (self.keep == Keep::Failed && failed))
    }

    /// Begins to take a payload in.
    pub fn capture(&self) -> Result<Capture, HandlerError> {
        Capture::begin(self.cap_bytes).map_err(|error| unavailable(&error))
    }

    /// Keeps a payload for this attempt. If that fails the attempt does not count: there is no verdict without evidence.
    pub async fn save(
        &self,
        capture: Capture,
        response: Response,
        total_bytes: Option<u64>,
    ) -> Result<(), HandlerError> {
        let Some(vault) = &self.vault else { return Ok(()) };
        let payload = vault.save(capture, response, total_bytes).await.map_err(|error| unavailable(&error))?;
        *self.kept.lock().unwrap_or_else(PoisonError::into_inner) = Some(payload);
        Ok(())
    }

    /// Keeps a regular file, as long as it is now.
    pub async fn save_file(&self, mut file: File) -> Result<(), HandlerError> {
        let cap_bytes = self.cap_bytes;
        let read = tokio::task::spawn_blocking(move || {
            let mut capture = Capture::begin(cap_bytes)?;
            capture.read_file(&mut file)?;
            Ok::<_, std::io::Error>(capture)
        });
        let capture = read.await.unwrap_or_else(|error| Err(std::io::Error::other(error)));
        self.save(capture.map_err(|error| unavailable(&error))?, Response::default(), None).await
    }

    pub(crate) fn take(&self) -> Option<Payload> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Without the evidence there is no verdict: the attempt does not count.
pub(crate) fn unavailable(error: &dyn std::error::Error) -> HandlerError {
    HandlerError::Unavailable(format!("the payload cannot be kept: {}", with_sources(error)))
}

impl From<VaultError> for crate::Error {
    fn from(error: VaultError) -> Self {
        Self::Vault(Box::new(error))
    }
}
