//! Jobs, in whatever state they are.

use redrive::Error;
use redrive::contract::{JobDetail, ListJobs, Page};
use redrive::jobs::{Cancelled, JobError};
use redrive_core::actors::Actor;
use redrive_core::ids::{JobId, JobRef};
use redrive_core::jobs::JobView;
use serde::Deserialize;
use serde_json::json;

use crate::desk::Desk;
use crate::page::{fields, page};
use crate::server::Server;

/// What became of jobs that were to be cancelled.
#[derive(Deserialize)]
struct Gone {
    cancelled: Vec<JobId>,
    #[serde(default)]
    why_not: Vec<JobError>,
}

impl Desk {
    /// See [`redrive::Redrive::find_job`].
    pub async fn find_job(&self, named: &JobRef) -> Result<JobId, Error> {
        match (self, named) {
            (Self::Here(redrive), _) => redrive.find_job(named).await,
            // Whether it is there is seen when something is asked of it.
            (Self::There(_), JobRef::Id(id)) => Ok(*id),
            (Self::There(server), JobRef::Number(number)) => job_id(server, &number.to_string()).await,
            (Self::There(server), JobRef::Ending(ending)) => {
                // Digits alone would be taken for a number.
                let digits = ending.to_string();
                let (first, rest) = digits.split_at(1);
                job_id(server, &format!("{first}-{rest}")).await
            }
        }
    }

    /// See [`redrive::Redrive::find_jobs`].
    pub async fn find_jobs(&self, named: &[JobRef]) -> Result<Vec<JobId>, Error> {
        let mut ids = Vec::with_capacity(named.len());
        for named in named {
            ids.push(self.find_job(named).await?);
        }
        Ok(ids)
    }

    /// See [`redrive::Redrive::job`].
    pub async fn job(&self, id: JobId) -> Result<JobDetail, Error> {
        match self {
            Self::Here(redrive) => redrive.job(id).await,
            Self::There(server) => server.get(&["jobs", &id.to_string()]).read().await,
        }
    }

    /// A page of jobs, newest first.
    pub async fn list_jobs(&self, params: ListJobs) -> Result<Page<JobView>, Error> {
        let server = match self {
            Self::Here(redrive) => return Ok(redrive.store().list_jobs(params).await?),
            Self::There(server) => server,
        };
        let ListJobs { filter, limit, cursor } = params;
        page(limit, cursor, async |limit, cursor| {
            let asked = json!({
                "pipeline": filter.pipeline, "state": filter.states, "reason": filter.reason, "code": filter.code,
                "target": filter.target, "since": filter.since, "until": filter.until, "text": filter.text,
                "limit": limit, "cursor": cursor,
            });
            server.get(&["jobs"]).query(fields(asked)).read().await
        })
        .await
    }

    /// See [`redrive::Redrive::cancel_jobs`]. A server knows by itself who it is by.
    pub async fn cancel_jobs(&self, ids: Vec<JobId>, why: &str, by: &Actor) -> Result<Cancelled, Error> {
        match self {
            Self::Here(redrive) => redrive.cancel_jobs(ids, why, by).await,
            Self::There(server) => {
                let asked = json!({ "ids": ids, "why": why });
                let Gone { cancelled, why_not } = server.post(&["jobs", "cancel"]).body(&asked)?.read().await?;
                Ok(Cancelled { jobs: cancelled, refused: why_not })
            }
        }
    }
}

/// The id of the job that a server knows by a name.
async fn job_id(server: &Server, name: &str) -> Result<JobId, Error> {
    Ok(server.get(&["jobs", name]).read::<JobDetail>().await?.job.id)
}
