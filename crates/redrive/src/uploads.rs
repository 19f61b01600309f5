//! Payloads that programs upload before the letters that refer to them, for who holds a [`Redrive`].

use std::time::Duration;

use redrive_core::ids::PipelineName;
use redrive_core::payloads::PayloadHash;
use redrive_store::contract::{NoteUpload, Sha256, Upload};

use crate::engine::Redrive;
use crate::error::Error;

/// How long it is known who uploaded what: letters wait in the spools of clients for days at most.
const UPLOADS_KEPT: Duration = Duration::from_secs(14 * 86_400);

impl Redrive {
    /// Notes under which hash somebody knows a payload that is in the vault.
    pub async fn note_upload(&self, who: &str, sha256: Sha256, hash: PayloadHash) -> Result<(), Error> {
        let now = self.now();
        let forget_before = now - UPLOADS_KEPT;
        Ok(self.store.note_upload(NoteUpload { who: who.to_owned(), sha256, hash, forget_before, now }).await?)
    }

    /// The payload that was uploaded under a hash, if it is still there and known to who asks: they brought it, or a pipeline that
    /// they may see uses it.
    pub async fn find_upload(
        &self,
        who: &str,
        sha256: Sha256,
        may: impl Fn(&PipelineName) -> bool,
    ) -> Result<Option<Upload>, Error> {
        let found = self.store.find_upload(sha256).await?;
        Ok(found.filter(|upload| upload.brought_by.iter().any(|by| by == who) || upload.used_by.iter().any(may)))
    }
}
