//! A saved payload to work from, instead of asking for it again.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use redrive_core::failures::{FailureReport, Reason, with_sources};
use redrive_core::payloads::Payload;
use serde::Serialize;

use super::HandlerError;
use crate::vault::{Vault, VaultError};

/// A saved payload, and the vault that has it. Its JSON form is what commands read.
#[derive(Clone, Debug, Serialize)]
pub struct Saved {
    /// The payload and the response it came in.
    #[serde(flatten)]
    pub payload: Payload,
    /// The file that a command finds it in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
    /// None for an isolated job, which has it in the file.
    #[serde(skip)]
    vault: Option<Vault>,
}

impl Saved {
    pub(crate) fn new(payload: Payload, vault: Vault) -> Self {
        Self { payload, file: None, vault: Some(vault) }
    }

    /// The payload of an isolated job.
    pub(crate) fn in_file(payload: Payload, file: PathBuf) -> Self {
        Self { payload, file: Some(file), vault: None }
    }

    /// The whole payload, if it is no longer than that.
    pub(crate) async fn bytes(&self, bytes_max: usize) -> Result<Vec<u8>, HandlerError> {
        if self.payload.size_bytes > bytes_max as u64 {
            let message = format!("the saved payload is longer than {bytes_max} bytes");
            return Err(FailureReport::new(Reason::MalformedPayload, message).with_code("body_too_large").into());
        }
        match (&self.vault, &self.file) {
            (Some(vault), _) => {
                vault.bytes(self.payload.hash, self.payload.size_bytes).await.map_err(|error| gone(&error))
            }
            (None, Some(file)) => tokio::fs::read(file).await.map_err(|error| unreadable(&error)),
            (None, None) => Err(HandlerError::Unavailable("the saved payload is nowhere".to_owned())),
        }
    }

    /// Writes the payload to a file that was made for it at a path.
    pub(crate) async fn write(&self, made: io::Result<File>, path: &Path) -> Result<(), HandlerError> {
        let unwritten = |error| HandlerError::Unavailable(format!("cannot write {}: {error}", path.display()));
        let mut file = tokio::fs::File::from_std(made.map_err(unwritten)?);
        let Some(vault) = &self.vault else {
            let Some(saved) = self.file.as_ref().filter(|saved| *saved != path) else { return Ok(()) };
            let mut saved = tokio::fs::File::open(saved).await.map_err(|error| unreadable(&error))?;
            tokio::io::copy(&mut saved, &mut file).await.map_err(|error| unreadable(&error))?;
            tokio::io::AsyncWriteExt::flush(&mut file).await.map_err(|error| unreadable(&error))?;
            return Ok(());
        };
        vault.copy(self.payload.hash, &mut file).await.map_err(|error| gone(&error))?;
        Ok(())
    }
}

/// A payload that is not there fails its job; a vault that cannot be reached is nobody's fault.
fn gone(error: &VaultError) -> HandlerError {
    match error {
        VaultError::Missing(_) | VaultError::Damaged(_) => {
            FailureReport::new(Reason::PayloadExpired, error.to_string()).with_code("payload_gone").into()
        }
        VaultError::OnItsWay { .. } => {
            FailureReport::new(Reason::PayloadExpired, error.to_string()).with_code("payload_on_its_way").into()
        }
        _ => unreadable(error),
    }
}

fn unreadable(error: &dyn std::error::Error) -> HandlerError {
    HandlerError::Unavailable(format!("the saved payload cannot be read: {}", with_sources(error)))
}
