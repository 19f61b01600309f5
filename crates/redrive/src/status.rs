//! Where everything stands: ledgers, alerts, replays that are open, targets that are waited for, workers.

use std::collections::BTreeMap;

use redrive_core::breakers::BreakerView;
use redrive_core::ids::PipelineName;
use redrive_core::ledger::Ledger;
use redrive_core::payloads::PayloadReads;
use redrive_core::pipelines::Pause;
use redrive_core::retrying::RetryingView;
use redrive_core::time::Timestamp;
use redrive_core::workers::Presence;
use redrive_store::contract::{AlertView, ListReplays, ReplayView, SinkView, WorkerView};
use serde::{Deserialize, Serialize};

use crate::engine::Redrive;
use crate::error::Error;
use crate::pipelines::done_elsewhere;

/// Open replays that are named.
const REPLAYS_MAX: u32 = 20;

/// Where everything stands.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Status {
    /// The ledger of every pipeline.
    pub pipelines: BTreeMap<PipelineName, Ledger>,
    /// Tasks that other programs ran and reported as done, of pipelines that have some.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub done_elsewhere: BTreeMap<PipelineName, i64>,
    /// Replays that are open, newest first.
    pub replays: Vec<ReplayView>,
    /// Targets whose breakers are not closed.
    pub breakers: Vec<BreakerView>,
    /// Last failures of jobs that wait for another attempt, of pipelines with a target on hold.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub retrying: Vec<RetryingView>,
    /// Workers, those that are gone included.
    pub workers: Vec<WorkerStatus>,
    /// Alerts that fire.
    pub alerts: Vec<AlertView>,
    /// Sinks that fail.
    pub failing_sinks: Vec<SinkView>,
    /// The pipelines that people have rest.
    pub pauses: BTreeMap<PipelineName, Pause>,
    /// Counts reads of saved responses. Absent if there were none, or for some pipelines only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload_reads: Option<PayloadReads>,
    /// Where the store is being copied to, if it is: nothing can be written to it meanwhile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copying: Option<Copying>,
}

/// A copy of the store that is under way, or was left in the middle.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Copying {
    /// The other store.
    pub to: String,
    /// Since when.
    pub since: Timestamp,
}

/// A worker, and what is known of its process.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct WorkerStatus {
    /// The worker.
    #[serde(flatten)]
    pub worker: WorkerView,
    /// Whether it is there.
    pub process: Presence,
}

impl Redrive {
    /// Where everything stands.
    pub async fn status(&self) -> Result<Status, Error> {
        let open = ListReplays::open(REPLAYS_MAX);
        let (sinks, now) = (self.store.list_sinks().await?, self.now());
        let breakers = self.store.list_breakers().await?;
        // Before the ledgers: what is done between the two was done here.
        let totals = self.store.event_totals().await?;
        let pipelines = self.store.ledgers().await?;
        let reported = pipelines.iter().map(|(name, ledger)| (name.clone(), done_elsewhere(name, &totals, ledger)));
        let seen = |worker: WorkerView| WorkerStatus { process: worker.presence(now), worker };
        Ok(Status {
            done_elsewhere: reported.filter(|(_, done)| *done > 0).collect(),
            pipelines,
            replays: self.store.list_replays(open).await?.items,
            retrying: self.retrying_behind(&breakers).await?,
            breakers,
            workers: self.store.list_workers().await?.into_iter().map(seen).collect(),
            alerts: self.store.list_alerts().await?.into_iter().filter(|view| view.alert.is_firing()).collect(),
            failing_sinks: sinks.into_iter().filter(|sink| sink.failing_since.is_some()).collect(),
            pauses: self.store.pauses().await?,
            payload_reads: Some(self.store.payload_reads().await?).filter(|reads| *reads != PayloadReads::default()),
            copying: self.store.copies().await?.to.map(|note| Copying { to: note.place, since: note.begun_at }),
        })
    }
}
