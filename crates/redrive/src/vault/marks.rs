//! Marks that hosts leave in a vault which they share, so that a folder of one machine is not taken for one that all of them see: whose
//! mark is not there keeps its payloads elsewhere.

use std::collections::BTreeSet;
use std::time::Duration;

use object_store::ObjectStoreExt;
use object_store::path::Path;
use redrive_core::payloads::HostMark;
use redrive_core::time::Timestamp;
use redrive_store::contract::WorkerView;
use redrive_store::host;

use super::{Vault, VaultError};

/// How long each step is waited for.
const PATIENCE: Duration = Duration::from_secs(5);

impl Vault {
    /// Leaves the mark of this host.
    pub(crate) async fn leave_mark(&self) -> Result<(), VaultError> {
        let path = self.mark_of(host()).await?;
        let put = async {
            let written = self.objects.put(&path, host().as_bytes().to_vec().into()).await;
            written.map(drop).map_err(|error| self.objects_failed(error))
        };
        self.within(PATIENCE, put).await
    }

    /// The other hosts with workers that have left no mark here.
    pub(crate) async fn unmarked(&self, now: Timestamp) -> Result<Vec<String>, VaultError> {
        let mut unmarked = Vec::new();
        for host in others(&self.store.list_workers().await?, now) {
            let path = self.mark_of(host).await?;
            let head = async {
                match self.objects.head(&path).await {
                    Err(object_store::Error::NotFound { .. }) => Ok(false),
                    found => found.map(|_| true).map_err(|error| self.objects_failed(error)),
                }
            };
            if !self.within(PATIENCE, head).await? {
                unmarked.push(host.to_owned());
            }
        }
        Ok(unmarked)
    }

    async fn mark_of(&self, host: &str) -> Result<Path, VaultError> {
        Ok(HostMark { store: self.store_id().await?, host }.to_string().into())
    }
}

/// The hosts of workers that keep payloads, other than this one. Who works through a server keeps none.
fn others(workers: &[WorkerView], now: Timestamp) -> BTreeSet<&str> {
    let others = workers.iter().filter(|worker| !worker.remote && worker.host != host() && worker.is_at_work(now));
    others.map(|worker| worker.host.as_str()).collect()
}
