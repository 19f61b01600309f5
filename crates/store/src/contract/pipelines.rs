//! Pipelines that people paused. A store gives nothing of them to anybody.

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;
use redrive_core::actors::Actor;
use redrive_core::ids::PipelineName;
use redrive_core::pipelines::{Contents, Pause};
use redrive_core::time::Timestamp;
use serde_json::{Value, json};

use crate::error::Result;

/// Pauses of pipelines.
#[async_trait]
pub trait PipelineStore {
    /// The pipelines that are paused.
    async fn pauses(&self) -> Result<BTreeMap<PipelineName, Pause>>;

    /// Pauses a pipeline, or lets it go on, if it is still as it was; says whether it was. A pipeline that has no job yet can be
    /// paused, too.
    async fn set_pause(&self, params: SetPause) -> Result<bool>;

    /// The names of all pipelines, those that were forgotten included.
    async fn all_pipelines(&self) -> Result<BTreeSet<PipelineName>>;

    /// Forgets a pipeline that has nothing, and says what it has. It is in no list until something of it is accepted or counted again;
    /// what is known of its jobs stays for its time.
    async fn forget_pipeline(&self, params: ForgetPipeline) -> Result<Contents>;
}

/// Asks for a pipeline to be forgotten.
#[derive(Clone, Debug)]
pub struct ForgetPipeline {
    /// The pipeline.
    pub pipeline: PipelineName,
    /// The person or program that wants it.
    pub by: Actor,
    /// The time.
    pub now: Timestamp,
}

/// Asks for a pipeline to be paused, or to go on.
#[derive(Clone, Debug)]
pub struct SetPause {
    /// The pipeline.
    pub pipeline: PipelineName,
    /// The pause that it was found with.
    pub was: Option<Pause>,
    /// The pause that it is to have.
    pub next: Option<Pause>,
    /// Who wants it.
    pub by: Actor,
    /// The time.
    pub now: Timestamp,
}

impl SetPause {
    /// What the record says besides.
    pub(crate) fn detail(&self) -> Value {
        let mut detail = json!({ "pipelines": [self.pipeline], "why": self.next.as_ref().map(|pause| &pause.why) });
        if let Some(until) = self.next.as_ref().and_then(|pause| pause.until) {
            detail["until"] = json!(until);
        }
        detail
    }
}
