//! Jobs, for who holds a [`Redrive`]: looking at one in any state, and cancelling.

use redrive_core::actors::Actor;
use redrive_core::ids::{IdEnding, JobId, JobRef};
use redrive_core::state::JobState;
use redrive_store::contract::{CancelJobs, JobDetail};
use serde::{Deserialize, Serialize};

use crate::engine::Redrive;
use crate::error::{Error, ErrorKind};

/// Jobs that are cancelled in one transaction.
const STEP: usize = 500;

/// Why something that was asked about a job cannot be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum JobError {
    /// There is no such job.
    #[error("no task {0}")]
    Unknown(JobId),
    /// None ever had this number.
    #[error("no task has the number {0}")]
    NoNumber(i64),
    /// No id ends so.
    #[error("no task's id ends with {0}")]
    NoEnding(IdEnding),
    /// Several ids end so.
    #[error("the ids of several tasks end with {0}: give more of it")]
    Ambiguous(IdEnding),
    /// Digits that are one job's number and the end of another's id, or the end of several.
    #[error("{digits} may mean task {one} or task {other}, by a number or by the end of an id: give the whole id")]
    NumberOrEnding {
        /// What was given.
        digits: i64,
        /// One job.
        one: JobId,
        /// Another one.
        other: JobId,
    },
    /// It has ended already.
    #[error("task {id} is {}: only tasks that are queued or running can be cancelled", state.said())]
    Ended {
        /// The job.
        id: JobId,
        /// Where it is.
        state: JobState,
    },
}

impl JobError {
    /// What it means to who asked.
    pub const fn kind(&self) -> ErrorKind {
        match self {
            Self::Unknown(_) | Self::NoNumber(_) | Self::NoEnding(_) => ErrorKind::Missing,
            Self::Ambiguous(_) | Self::NumberOrEnding { .. } => ErrorKind::Invalid,
            Self::Ended { .. } => ErrorKind::Refused,
        }
    }
}

/// What became of jobs that were to be cancelled.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cancelled {
    /// Jobs that were cancelled.
    pub jobs: Vec<JobId>,
    /// Why the others were not.
    pub refused: Vec<JobError>,
}

impl Redrive {
    /// The job that is named by its number, or by the end of its id. A whole id is believed. Digits that are the number of one and
    /// the end of a dead letter's id mean neither.
    pub async fn find_job(&self, named: &JobRef) -> Result<JobId, Error> {
        Ok(meant(*named, &self.store.find_jobs(*named).await?)?)
    }

    /// The jobs that are named so, in their order.
    pub async fn find_jobs(&self, named: &[JobRef]) -> Result<Vec<JobId>, Error> {
        let mut ids = Vec::with_capacity(named.len());
        for named in named {
            ids.push(self.find_job(named).await?);
        }
        Ok(ids)
    }

    /// A job in any state, with its history.
    pub async fn job(&self, id: JobId) -> Result<JobDetail, Error> {
        Ok(self.store.get_job(id).await?.ok_or(JobError::Unknown(id))?)
    }

    /// Discards jobs that are queued or leased, with a record; says which were not, and why. One that runs goes on no longer
    /// than until its worker's next beat, and what comes out of it does not count.
    pub async fn cancel_jobs(&self, ids: Vec<JobId>, why: &str, by: &Actor) -> Result<Cancelled, Error> {
        let mut jobs = Vec::new();
        for step in ids.chunks(STEP) {
            let params = CancelJobs { ids: step.to_vec(), by: by.clone(), why: why.to_owned(), now: self.now() };
            jobs.extend(self.store.cancel_jobs(params).await?);
        }
        let mut refused = Vec::new();
        for id in ids.into_iter().filter(|id| !jobs.contains(id)) {
            refused.push(match self.store.get_job(id).await? {
                Some(detail) => JobError::Ended { id, state: detail.job.state },
                None => JobError::Unknown(id),
            });
        }
        Ok(Cancelled { jobs, refused })
    }
}

/// The one job that is meant, of those that are named so.
fn meant(named: JobRef, found: &[JobId]) -> Result<JobId, JobError> {
    match (found, named) {
        ([], JobRef::Id(id)) => Ok(id),
        ([], JobRef::Number(number)) => Err(JobError::NoNumber(number)),
        ([], JobRef::Ending(ending)) => Err(JobError::NoEnding(ending)),
        ([_, _, ..], JobRef::Ending(ending)) => Err(JobError::Ambiguous(ending)),
        ([one, other, ..], JobRef::Number(digits)) => {
            Err(JobError::NumberOrEnding { digits, one: *one, other: *other })
        }
        ([id, ..], _) => Ok(*id),
    }
}

#[cfg(test)]
mod tests {
    use redrive_core::time::Timestamp;

    use super::*;

    #[test]
    fn digits_that_mean_two_jobs_mean_neither() {
        let id = |n: u128| JobId::new(Timestamp::from_millis(0), n);
        assert_eq!(meant(JobRef::Number(1_000), &[id(1)]), Ok(id(1)));
        let refused = meant(JobRef::Number(1_000), &[id(1), id(0x1000)]).expect_err("two");
        assert_eq!(refused.kind(), ErrorKind::Invalid);
        for named in ["1000 may mean", &id(1).to_string(), &id(0x1000).to_string(), "give the whole id"] {
            assert!(refused.to_string().contains(named), "{refused}");
        }
        assert_eq!(meant(JobRef::Number(5), &[]), Err(JobError::NoNumber(5)));
    }
}
