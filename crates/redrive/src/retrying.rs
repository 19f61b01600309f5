//! Last failures of jobs that wait for another attempt while a target of their pipeline is on hold. With no target on hold nothing
//! is read.

use std::collections::BTreeMap;

use redrive_core::breakers::{BreakerState, BreakerView};
use redrive_core::ids::PipelineName;
use redrive_core::retrying::RetryingView;
use redrive_store::contract::ListRetrying;

use crate::engine::Redrive;
use crate::error::Error;

/// Jobs that are read: of one pipeline at most so many, and fewer of each if many have a target on hold.
const JOBS_MAX: usize = 1_000;
const JOBS_OF_ALL: usize = 4_000;
const JOBS_MIN: usize = 20;

impl Redrive {
    /// Returns what jobs failed with that wait for another attempt, of each of these pipelines that has a target on hold.
    pub async fn retrying(&self, covers: impl Fn(&PipelineName) -> bool) -> Result<Vec<RetryingView>, Error> {
        let mut breakers = self.store.list_breakers().await?;
        breakers.retain(|view| covers(&view.pipeline));
        self.retrying_behind(&breakers).await
    }

    /// The same behind breakers that were read before.
    pub(crate) async fn retrying_behind(&self, breakers: &[BreakerView]) -> Result<Vec<RetryingView>, Error> {
        let mut held: BTreeMap<&PipelineName, Vec<(String, u64)>> = BTreeMap::new();
        for view in breakers.iter().filter(|view| view.breaker.state != BreakerState::Closed) {
            held.entry(&view.pipeline).or_default().push((view.target.clone(), view.held));
        }
        let limit = (JOBS_OF_ALL / held.len().max(1)).clamp(JOBS_MIN, JOBS_MAX);
        let mut views = Vec::with_capacity(held.len());
        for (pipeline, targets) in held {
            let limit = u32::try_from(limit).unwrap_or(u32::MAX);
            let found = self.store.retrying_jobs(ListRetrying { pipeline: pipeline.clone(), limit }).await?;
            let view = RetryingView::new(pipeline.clone(), targets, found.jobs, found.all);
            views.extend(Some(view).filter(|view| view.jobs > 0));
        }
        Ok(views)
    }
}
