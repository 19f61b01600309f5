//! The uploader: brings payloads that wait in the spool to their vault, as long as this worker runs.

use std::collections::BTreeMap;
use std::time::Duration;

use redrive_core::failures::with_sources;

use crate::pipeline::Pipeline;
use crate::vault::Vault;

/// How often it looks.
const EVERY: Duration = Duration::from_secs(1);

/// How long a worker that has nothing else to do goes on.
const LAST: Duration = Duration::from_secs(5);

pub(super) async fn run(pipelines: Vec<Pipeline>) {
    loop {
        upload(&pipelines).await;
        tokio::time::sleep(EVERY).await;
    }
}

/// Brings what is left, unless the vault is away or that takes too long: the next worker goes on.
pub(super) async fn finish(pipelines: &[Pipeline]) {
    let _ = tokio::time::timeout(LAST, upload(pipelines)).await;
}

/// The vaults of pipelines, each once.
pub(super) fn vaults(pipelines: &[Pipeline]) -> impl Iterator<Item = &Vault> {
    let vaults = pipelines.iter().filter_map(|pipeline| pipeline.vault.as_ref());
    vaults.map(|vault| (vault.address(), vault)).collect::<BTreeMap<_, _>>().into_values()
}

async fn upload(pipelines: &[Pipeline]) {
    for vault in vaults(pipelines) {
        vault.note_reads(true).await;
        match vault.upload_spooled().await {
            Ok(0) => {}
            Ok(arrived) => tracing::info!(vault = vault.address(), arrived, "payloads of the spool have arrived"),
            Err(error) => {
                tracing::debug!(vault = vault.address(), error = with_sources(&error), "the spool waits");
            }
        }
    }
}
