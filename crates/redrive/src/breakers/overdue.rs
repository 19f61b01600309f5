//! Jobs that have waited too long for a target that stays away: they become letters.

use std::time::Duration;

use redrive_core::breakers::Overdue;
use redrive_core::ids::{JobId, LeaseToken, PipelineName, WorkerId};
use redrive_core::settlements::{Ending, Settlement, give_up};
use redrive_core::time::Timestamp;
use redrive_core::workers::Runs;
use redrive_store::contract::{Lane, LeaseJobs, LeasedJobs, Only, SettleJobs, Settled, WorkerView};

use super::{Breakers, TURNS_MAX};
use crate::engine::Redrive;
use crate::error::Error;
use crate::events::Happening;
use crate::pipeline::Pipeline;

/// At most so many jobs become letters in one transaction.
const BATCH: u32 = 256;

/// Jobs that became letters because their target stayed away.
#[derive(Default)]
pub(crate) struct GivenUp {
    /// Which.
    pub(crate) letters: Vec<JobId>,
    /// Whether there may be more.
    pub(crate) more: bool,
}

impl Breakers {
    /// The lanes of a pipeline beside which something is held, as far as is known.
    pub(crate) fn lanes(&self, name: &PipelineName) -> Vec<Lane> {
        self.with(name, |known| {
            known.held.iter().filter(|(_, held)| !held.jobs.is_empty()).map(|(lane, _)| *lane).collect()
        })
    }

    fn overdue(
        &self,
        (pipeline, lane): (&Pipeline, Lane),
        limits: (Duration, Timestamp),
        now: Timestamp,
    ) -> Vec<Overdue> {
        self.with(pipeline.name(), |known| {
            let held = known.held.get(&lane);
            held.map(|held| known.known.overdue(&held.jobs, limits, now)).unwrap_or_default()
        })
    }
}

impl Redrive {
    /// Returns whether no other worker works on a pipeline.
    pub(crate) async fn is_last_on(&self, pipeline: &PipelineName, worker: WorkerId) -> Result<bool, Error> {
        let workers = self.store.list_workers().await?;
        let works = |other: &WorkerView| other.runs.iter().any(|runs| runs.pipeline == *pipeline);
        Ok(!workers.iter().any(|other| other.alive && other.id != worker && works(other)))
    }

    /// Returns whether a worker works on a pipeline whose jobs do not wait without end. A store that cannot tell is asked again.
    pub(crate) async fn is_given_up_by_somebody(&self, pipeline: &PipelineName) -> bool {
        let gives_up = |runs: &Runs| runs.pipeline == *pipeline && !runs.waits_forever;
        let workers = self.store.list_workers().await.unwrap_or_default();
        workers.iter().any(|worker| worker.alive && worker.runs.iter().any(gives_up))
    }

    /// Makes letters of some of the jobs of a lane that have waited for their target for longer than this, since a time at the earliest.
    pub(crate) async fn give_up_waiting(
        &self,
        (pipeline, lane): (&Pipeline, Lane),
        limits: (Duration, Timestamp),
        worker: WorkerId,
    ) -> Result<GivenUp, Error> {
        let mut given_up = GivenUp::default();
        for overdue in self.breakers.overdue((pipeline, lane), limits, self.now()) {
            let leased = self.lease_overdue((pipeline, lane), &overdue, worker).await?;
            given_up.more |= leased.jobs.len() >= BATCH as usize;
            given_up.letters.extend(self.bury_overdue(pipeline, leased, &overdue, worker).await?);
        }
        Ok(given_up)
    }

    async fn lease_overdue(
        &self,
        (pipeline, lane): (&Pipeline, Lane),
        overdue: &Overdue,
        worker: WorkerId,
    ) -> Result<LeasedJobs, Error> {
        let name = pipeline.name();
        for _ in 0..TURNS_MAX {
            let now = self.now();
            let params = LeaseJobs {
                pipeline: name.clone(),
                lane,
                worker,
                definition: pipeline.definition().cloned(),
                token: LeaseToken::new(now, self.chance.bits()),
                limit: BATCH,
                until: now + pipeline.policy().lease,
                gates: Vec::new(),
                gates_seen: self.breakers.with(name, |known| known.known.seen()),
                freed: vec![overdue.target.clone()],
                with_tried: false,
                only: Some(Only::HeldSince(overdue.accepted_by)),
                now,
            };
            let mut leased = self.store.lease(params).await?;
            let Some(gates) = leased.gates.take() else {
                self.breakers.take_in_held(name, lane, leased.held.take());
                return Ok(leased);
            };
            // It may have closed meanwhile.
            self.breakers.learn_gates(name, gates);
            let shut = self.breakers.is_shut(name, &overdue.target);
            if !shut {
                break;
            }
        }
        Ok(LeasedJobs::default())
    }

    async fn bury_overdue(
        &self,
        pipeline: &Pipeline,
        leased: LeasedJobs,
        overdue: &Overdue,
        worker: WorkerId,
    ) -> Result<Vec<JobId>, Error> {
        if leased.jobs.is_empty() {
            return Ok(Vec::new());
        }
        let (rules, now) = (self.known_rules().await, self.now());
        let ending = Ending { at: now, duration: None, worker: None, chance: 0.0 };
        let settlements =
            leased.jobs.iter().map(|job| Settlement::new(job, give_up(job, &overdue.last, ending), &rules));
        // With the definition that they waited for: a retry finds its command by it.
        let settlements: Vec<_> = settlements.map(|settlement| settlement.tried_with(pipeline.definition())).collect();
        let params =
            SettleJobs { settlements: settlements.clone(), worker, breakers: Vec::new(), keep_late: false, now };
        let answers = self.settle(&pipeline.policy().breaker, params).await?;
        let answered = settlements.into_iter().zip(answers);
        let settled: Vec<_> = answered.filter(|(_, answer)| *answer == Settled::Applied).map(|(s, _)| s).collect();
        for settlement in &settled {
            self.events.tell_often(now, Some(worker), || Happening::settled(pipeline.name(), settlement));
        }
        Ok(settled.into_iter().map(|settlement| settlement.lease.job).collect())
    }
}
