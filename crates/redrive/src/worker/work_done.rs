//! What came of the jobs that one worker ran. Others may work on the same pipelines: the ledger has what all of them did.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use redrive_core::counts::Death;
use redrive_core::ids::{JobId, PipelineName};
use redrive_core::settlements::{Decision, Destination, Settlement};

/// Letters that are noted.
const LETTERS_MAX: usize = 100_000;

/// What came of the jobs that a worker ran.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkDone {
    /// Jobs that are done.
    pub done: u64,
    /// Jobs that died for the first time.
    pub died: u64,
    /// The first 100,000 of them.
    pub letters: Vec<JobId>,
    /// Those of them that had waited too long for a target that stayed away.
    pub gave_up: u64,
    /// Jobs that rules discarded.
    pub discarded: u64,
    /// How many jobs were handed on, by the pipeline that they are for. One whose key is known there already counts too, though
    /// nothing comes of it.
    pub handed_on: BTreeMap<PipelineName, u64>,
}

/// End of a job, as far as a worker counts it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum JobEnd {
    /// It is done, or its failure counts as a result.
    Done,
    /// It died for the first time.
    Died,
    /// A rule discarded it.
    Discarded,
    /// It goes on, or died again.
    #[default]
    Other,
}

impl JobEnd {
    /// Returns the end that a decision is.
    pub fn from_decision(decision: &Decision) -> Self {
        match decision.destination {
            Destination::Done => Self::Done,
            Destination::Dead { .. } if decision.death() == Death::First => Self::Died,
            Destination::Discarded { .. } => Self::Discarded,
            Destination::Dead { .. } | Destination::Queue { .. } => Self::Other,
        }
    }
}

impl WorkDone {
    fn add_letter(&mut self, job: JobId) {
        self.died += 1;
        if self.letters.len() < LETTERS_MAX {
            self.letters.push(job);
        }
    }

    /// Adds a job that was settled.
    fn add(&mut self, job: JobId, end: JobEnd, handed_on: impl IntoIterator<Item = PipelineName>) {
        match end {
            JobEnd::Done => self.done += 1,
            JobEnd::Died => self.add_letter(job),
            JobEnd::Discarded => self.discarded += 1,
            JobEnd::Other => {}
        }
        for name in handed_on {
            *self.handed_on.entry(name).or_default() += 1;
        }
    }
}

/// What a worker has done so far, for who asks while it works or afterwards.
#[derive(Clone, Debug, Default)]
pub struct WorkDoneSoFar(Arc<Mutex<WorkDone>>);

impl WorkDoneSoFar {
    /// All of it.
    pub fn read(&self) -> WorkDone {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Adds a job that was settled by a server.
    pub fn note(&self, job: JobId, end: JobEnd, handed_on: impl IntoIterator<Item = PipelineName>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).add(job, end, handed_on);
    }

    /// Adds jobs that became letters because they had waited too long for their targets.
    pub fn note_given_up(&self, jobs: impl IntoIterator<Item = JobId>) {
        let mut work_done = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for job in jobs {
            work_done.add_letter(job);
            work_done.gave_up += 1;
        }
    }

    /// Adds settlements that were applied.
    pub(super) fn add<'a>(&self, settlements: impl Iterator<Item = &'a Settlement>) {
        let mut done = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for Settlement { lease, decision, handed_on, .. } in settlements {
            let receivers = handed_on.iter().map(|job| job.pipeline.clone());
            done.add(lease.job, JobEnd::from_decision(decision), receivers);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use redrive_core::time::Timestamp;

    #[test]
    fn all_that_died_are_counted_and_not_all_are_noted() {
        let mut done = WorkDone::default();
        (0..=LETTERS_MAX).for_each(|n| done.add_letter(JobId::new(Timestamp::from_millis(0), n as u128)));
        assert_eq!((done.died, done.letters.len()), (LETTERS_MAX as u64 + 1, LETTERS_MAX));
    }
}
