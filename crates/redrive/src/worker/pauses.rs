//! The pipelines that people paused, as far as this worker has heard. The store gives nothing of them to anybody; what this worker
//! has leased and not begun goes back.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use redrive_core::ids::PipelineName;
use redrive_core::pipelines::Pause;

use super::context::Context;
use crate::events::Happening;

/// The pauses that were last read.
#[derive(Default)]
pub(super) struct Pauses(Mutex<BTreeMap<PipelineName, Pause>>);

impl Pauses {
    /// Whether a pipeline is paused.
    pub(super) fn has(&self, pipeline: &PipelineName) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains_key(pipeline)
    }

    fn replace(&self, pauses: BTreeMap<PipelineName, Pause>) -> BTreeMap<PipelineName, Pause> {
        std::mem::replace(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner), pauses)
    }
}

/// Reads which pipelines are paused, and tells of those of this worker that were paused or resumed since.
pub(super) async fn look(context: &Context) {
    let pauses = match context.redrive.store.pauses().await {
        Ok(pauses) => pauses,
        Err(error) => return tracing::debug!(%error, "which pipelines are paused could not be read"),
    };
    let before = context.pauses.replace(pauses.clone());
    for pipeline in context.runs().into_iter().map(|runs| runs.pipeline) {
        match (before.contains_key(&pipeline), pauses.get(&pipeline)) {
            (false, Some(pause)) => context.tell(Happening::PipelinePaused { pipeline, pause: pause.clone() }),
            (true, None) => context.tell(Happening::PipelineResumed { pipeline }),
            _ => {}
        }
    }
}
