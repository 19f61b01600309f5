//! Tasks before they are jobs: which of them are known, and by what they were known before.

use async_trait::async_trait;
use redrive_core::ids::{JobId, PipelineName, RoundName};
use redrive_core::state::JobState;
use redrive_core::time::Timestamp;

use crate::error::Result;

/// Tasks.
#[async_trait]
pub trait TaskStore {
    /// The jobs that have keys, in the order asked; nothing where nobody has one. Nothing is changed by asking.
    async fn known_tasks(&self, params: FindTasks) -> Result<Vec<Option<KnownTask>>>;

    /// The hashes of files whose tasks are known by the file and the line, from before they were known by their content: of
    /// those of which any task is still known.
    async fn task_files(&self, pipeline: PipelineName) -> Result<Vec<String>>;
}

/// Asks who has keys.
#[derive(Clone, Debug)]
pub struct FindTasks {
    /// The pipeline.
    pub pipeline: PipelineName,
    /// The round, if there are rounds.
    pub round: Option<RoundName>,
    /// The keys.
    pub keys: Vec<String>,
}

/// The job that has a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownTask {
    /// The job.
    pub id: JobId,
    /// Its state.
    pub state: JobState,
    /// When it came to its end, if it did.
    pub ended_at: Option<Timestamp>,
}
