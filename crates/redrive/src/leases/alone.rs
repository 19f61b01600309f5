//! Suspects: jobs that may have taken a process down. Who runs several jobs in one process is given a suspect alone, and nothing beside
//! it, so that a process that dies again convicts the right one.

use redrive_core::crashes::{Together, together};
use redrive_core::jobs::LeasedJob;
use redrive_core::settlements::Outcome;
use redrive_store::contract::Outlook;

use super::{EndedJob, RemoteWorker};
use crate::error::Error;
use crate::pipeline::Pipeline;

impl RemoteWorker {
    /// Whether the worker may be given nothing for now, as it was seen: it has a suspect.
    pub async fn is_alone(&self, outlook: &Outlook) -> Result<bool, Error> {
        // A suspect is all that somebody has: those of several have a process each.
        Ok(outlook.runs_alone && self.held().await? == 1)
    }

    /// How many leases the worker has.
    async fn held(&self) -> Result<u64, Error> {
        let workers = self.redrive().store.list_workers().await?;
        Ok(workers.iter().find(|worker| worker.id == self.id()).map_or(0, |worker| worker.leases))
    }

    /// Of jobs of these pipelines that the worker was just given, those that may run together, and beside what it has. The rest goes back
    /// as it was.
    pub async fn together(&self, pipelines: &[Pipeline], jobs: Vec<LeasedJob>) -> Result<Vec<LeasedJob>, Error> {
        // What else it has matters to a suspect only, and there is hardly ever one.
        let held = match jobs.iter().any(|job| job.tally.suspect) {
            true => self.held().await?.saturating_sub(jobs.len() as u64),
            false => 0,
        };
        let kept = match together(&jobs, held) {
            Together::All => return Ok(jobs),
            Together::Alone(place) => Some(place),
            Together::Nothing => None,
        };
        let (stays, goes): (Vec<_>, Vec<_>) = jobs.into_iter().enumerate().partition(|(n, _)| Some(*n) == kept);
        for pipeline in pipelines {
            let back = goes.iter().filter(|(_, job)| job.pipeline == pipeline.name);
            let back: Vec<_> = back.map(|(_, job)| EndedJob::returned(job.lease)).collect();
            if !back.is_empty() {
                self.settle(pipeline, back).await?;
            }
        }
        Ok(stays.into_iter().map(|(_, job)| job).collect())
    }

    /// Says that the process of the worker died with all that it had. What of these pipelines it had begun is suspected, or convicted if
    /// it ran alone, and the rest goes back as it was.
    pub async fn died(&self, pipelines: &[Pipeline]) -> Result<(), Error> {
        self.detach().await?;
        self.redrive().take_back(pipelines).await
    }
}

impl EndedJob {
    /// One that was not begun.
    const fn returned(lease: redrive_core::jobs::Lease) -> Self {
        Self {
            lease,
            outcome: Outcome::Returned,
            result: None,
            log: None,
            is_written: false,
            handed_on: Vec::new(),
            payload: None,
            duration: None,
        }
    }
}
