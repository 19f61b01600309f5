//! Where things are kept besides the store: the vault, and the spool for what is on its way there. A store that others share has no
//! folder beside it.

use std::path::Path;

use redrive_store::postgres::Migration;

use super::pipeline::KeepKind;
use super::{PipelineConfig, Setting, ran};
use crate::Redrive;
use crate::error::Error;
use crate::vault::{SPOOL_BYTES_MAX, Spool, Vault, VaultError, VaultPlace};

impl Setting {
    /// The vault: the configured one, or a folder beside the store; none for a store in memory.
    pub fn vault(&self, redrive: &Redrive) -> Result<Option<Vault>, Error> {
        let Some(place) = self.vault_place()? else { return Ok(None) };
        let vault = Vault::at(&place, redrive)?;
        Ok(Some(match self.spool() {
            Some(spool) => vault.with_spool(spool),
            None => vault,
        }))
    }

    /// Where the vault is and how it is reached.
    pub fn vault_place(&self) -> Result<Option<VaultPlace>, VaultError> {
        let beside = |path: &Path| redrive_store::payloads_beside(path).display().to_string();
        match &self.config.vault {
            Some(section) => section.place().map(Some),
            None => Ok(self.location.file().map(|path| VaultPlace::of_environment(&beside(path)))),
        }
    }

    /// What to say to who needs the vault where there is none.
    pub fn no_vault(&self) -> &'static str {
        match self.location.is_shared() {
            true => {
                "a store in PostgreSQL has no vault of its own: name one that every worker reaches, vault = \"s3://bucket/prefix\" or a \
                 folder that all of them share, in redrive.toml"
            }
            false => "a store in memory has no vault: name one in redrive.toml",
        }
    }

    /// Whether others share the store, and there is no place for payloads.
    fn lacks_vault(&self) -> bool {
        self.location.is_shared() && self.config.vault.is_none()
    }

    /// Says that payloads are not kept, if a worker on a store that others share would keep some and has nowhere to.
    pub fn warn_without_vault(&self) {
        let pipelines = &self.config.pipeline;
        let keeps = pipelines.is_empty() || pipelines.values().any(|pipeline| pipeline.payload != KeepKind::Never);
        if keeps && self.lacks_vault() {
            tracing::warn!("payloads are not kept: {}", self.no_vault());
        }
    }

    /// Refuses a pipeline whose payloads must be kept where there is no place for them.
    pub(super) fn check_vault(&self, pipeline: &PipelineConfig) -> Result<(), String> {
        let must_keep = pipeline.payload == KeepKind::Always || pipeline.payload_required == Some(true);
        match must_keep && self.lacks_vault() {
            true => Err(format!("its payloads are to be kept, and there is no place for them: {}", self.no_vault())),
            false => Ok(()),
        }
    }

    /// Where payloads wait while the vault is away: beside the store, or in a folder of this user on this machine if the store is
    /// elsewhere; nowhere for a store in memory.
    pub fn spool(&self) -> Option<Spool> {
        let bytes_max = self.config.spool_max.map_or(SPOOL_BYTES_MAX, |size| size.0);
        if let Some(store) = self.location.file() {
            return Some(Spool::beside(store, bytes_max));
        }
        let of_store = blake3::hash(self.location.to_string().as_bytes()).to_hex();
        let state = ran::state_folder().filter(|_| self.location.is_shared() && self.config.vault.is_some())?;
        Some(Spool::beside(&state.join("spools").join(&of_store[..16]).join("store"), bytes_max))
    }

    /// What would bring the store to the version of this build, for somebody else to run.
    pub async fn migration(&self) -> Result<Migration, Error> {
        Ok(self.location.migration().await?)
    }
}
