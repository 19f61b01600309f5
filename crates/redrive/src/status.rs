//! Where everything stands: ledgers, replays that are open, targets that are waited for, workers.

use std::collections::BTreeMap;

use redrive_core::ids::PipelineName;
use redrive_core::ledger::Ledger;
use redrive_store::contract::{BreakerView, ListReplays, ReplayView, WorkerView};
use serde::Serialize;

use crate::engine::Redrive;
use crate::error::Error;

/// Open replays that are named.
const REPLAYS_MAX: u32 = 20;

/// Where everything stands.
#[derive(Clone, Debug, Serialize)]
pub struct Status {
    /// The ledger of every pipeline.
    pub pipelines: BTreeMap<PipelineName, Ledger>,
    /// Replays that are open, newest first.
    pub replays: Vec<ReplayView>,
    /// Targets whose breakers are not closed.
    pub breakers: Vec<BreakerView>,
    /// Workers, those that are gone included.
    pub workers: Vec<WorkerView>,
}

impl Redrive {
    /// Where everything stands.
    pub async fn status(&self) -> Result<Status, Error> {
        let open = ListReplays { open_only: true, limit: REPLAYS_MAX, cursor: None };
        Ok(Status {
            pipelines: self.store.ledgers().await?,
            replays: self.store.list_replays(open).await?.items,
            breakers: self.store.list_breakers().await?,
            workers: self.store.list_workers().await?,
        })
    }
}
