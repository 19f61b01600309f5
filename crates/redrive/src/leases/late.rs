//! Settlements that come too late: they move nothing, and stay as evidence with their job.

use redrive_core::jobs::{Lease, LeasedJob, Tally};
use redrive_core::settlements::{Ending, Outcome, Settlement, decide};
use redrive_core::state::JobState;
use redrive_store::contract::{JobDetail, SettleJobs};

use super::{EndedJob, RemoteWorker};
use crate::error::Error;
use crate::handler::mask;
use crate::pipeline::Pipeline;

impl RemoteWorker {
    /// Keeps what came of jobs whose leases are lost. A job that is not known, or is of another pipeline, is passed over.
    pub(super) async fn keep_late(&self, pipeline: &Pipeline, ended: Vec<EndedJob>) -> Result<(), Error> {
        let redrive = &self.redrive;
        let secrets = pipeline.handler.secrets().cloned().unwrap_or_default();
        let (now, mut settlements) = (redrive.now(), Vec::new());
        for EndedJob { lease, mut outcome, duration, .. } in ended {
            let known = redrive.store.get_job(lease.job).await?.filter(|known| known.job.pipeline == pipeline.name);
            let Some(known) = known.filter(|_| outcome != Outcome::Returned) else { continue };
            if let Outcome::Failed(report) | Outcome::Crashed(report) = &mut outcome {
                mask(report, &secrets);
            }
            let ending = Ending { at: now, duration, worker: Some(self.id), chance: 0.0 };
            let job = as_leased(lease, known);
            let decision = decide(&pipeline.policy, &job, outcome, ending);
            let settlement = Settlement { target: None, ..Settlement::new(&job, decision, &Default::default()) };
            settlements.push(settlement.tried_with(pipeline.definition()));
        }
        if !settlements.is_empty() {
            let params = SettleJobs { settlements, worker: self.id, breakers: Vec::new(), keep_late: true, now };
            redrive.settle(&pipeline.policy.breaker, params).await?;
        }
        Ok(())
    }
}

/// The job as it was when it was leased, as far as that is still known.
fn as_leased(lease: Lease, known: JobDetail) -> LeasedJob {
    let job = known.job;
    // What ended it since counted the same attempt.
    let counted = u32::from(matches!(job.state, JobState::Done | JobState::Dead));
    LeasedJob {
        lease,
        number: job.number.unwrap_or_default(),
        pipeline: job.pipeline,
        round: job.round,
        key: job.key,
        target: job.target,
        input: job.input.unwrap_or_default(),
        tally: Tally {
            attempts: job.attempts.saturating_sub(counted),
            replays: job.replays,
            crashes: job.crashes,
            ..Tally::default()
        },
        accepted_at: job.accepted_at,
        progress: None,
        saved: None,
        automatic: false,
        tried: Vec::new(),
        probe: false,
        origin: job.origin,
        edited: false,
    }
}
