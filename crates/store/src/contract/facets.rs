//! What those who died of a cause have in common, and how often that is among those who were done.

use async_trait::async_trait;
use redrive_core::causes::CauseId;
use redrive_core::facets::FacetCount;
use redrive_core::ids::PipelineName;

use crate::error::Result;

/// Counts that were made when jobs came to their end.
#[async_trait]
pub trait FacetStore {
    /// How many jobs that died of a cause have which value: each counts once, by its first death.
    async fn cause_facets(&self, cause: CauseId) -> Result<Vec<FacetCount>>;

    /// How many jobs that were done in these hours have which value: of targets, proxies, rules and tracked fields. Each counts once.
    async fn done_facets(&self, params: DoneIn) -> Result<Vec<FacetCount>>;
}

/// Asks for jobs that were done.
#[derive(Clone, Debug)]
pub struct DoneIn {
    /// Of which pipeline.
    pub pipeline: PipelineName,
    /// In which hours, counted since the epoch.
    pub hours: Vec<i64>,
}
