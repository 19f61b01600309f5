//! The handler of a pipeline whose jobs are worked on elsewhere: by remote workers, or by the program that reported its letters.

use async_trait::async_trait;
use redrive_core::secrets::Secrets;

use super::{Handler, HandlerError, Job, Success};

/// Runs nothing here. Whoever leases a job has its saved payload and may work from that.
#[derive(Clone, Debug, Default)]
pub struct Elsewhere {
    secrets: Secrets,
    /// What is known of the worker that is to run its jobs, if anything is: whether it works from saved payloads.
    worker: Option<bool>,
}

impl Elsewhere {
    /// The same with what must not get out of what is told about its jobs.
    pub const fn masking(secrets: Secrets) -> Self {
        Self { secrets, worker: None }
    }

    /// The same for a worker that is known, which works from saved payloads or does not.
    pub fn by_worker(self, from_saved: bool) -> Self {
        Self { worker: Some(from_saved), ..self }
    }
}

#[async_trait]
impl Handler for Elsewhere {
    async fn run(&self, job: Job) -> Result<Success, HandlerError> {
        Err(HandlerError::Unavailable(format!("jobs of pipeline {} are worked on elsewhere", job.pipeline)))
    }

    fn secrets(&self) -> Option<&Secrets> {
        Some(&self.secrets)
    }

    fn works_from_saved(&self, _edited: bool) -> bool {
        self.worker.unwrap_or(true)
    }

    fn is_known_by_definition(&self) -> bool {
        self.worker.is_some()
    }
}
