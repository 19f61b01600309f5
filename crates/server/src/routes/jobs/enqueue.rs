//! `POST /jobs`

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use redrive::contract::EnqueuedJob;
use redrive_core::ids::{PipelineName, RoundName};
use redrive_core::jobs::{Input, NewJob, Origin};
use redrive_core::state::JobState;
use serde::{Deserialize, Serialize};
use serde_json::Map;
use utoipa::ToSchema;

use crate::access::Caller;
use crate::app::App;
use crate::asked::Body;
use crate::error::ApiError;

/// The most jobs of one request.
const JOBS_MAX: usize = 10_000;

/// Jobs that are to be accepted, all or none.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = EnqueueJobs)]
pub struct Asked {
    /// The pipeline that they are for.
    #[schema(value_type = String)]
    pipeline: PipelineName,
    /// The round that they belong to.
    #[schema(value_type = Option<String>)]
    round: Option<RoundName>,
    /// The jobs: at most 10,000.
    jobs: Vec<Job>,
}

/// One job.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = EnqueueJob)]
pub struct Job {
    /// What is to be done.
    #[schema(value_type = Object)]
    input: Input,
    /// What it is known by; `key` of the input if it is left out.
    key: Option<String>,
    /// What it asks; `target` or the host of `url` of the input if it is left out.
    target: Option<String>,
}

/// What became of the jobs, in their order.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = EnqueuedJobs)]
pub struct Answer {
    jobs: Vec<Enqueued>,
}

/// What became of a job.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = EnqueuedJob)]
pub struct Enqueued {
    /// The job that has the key.
    id: String,
    /// `accepted`, or `known` if its key was known already.
    result: &'static str,
    /// Where the job is, if it was known.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    state: Option<JobState>,
}

pub async fn run(
    State(app): State<App>,
    caller: Caller,
    Body(asked): Body<Asked>,
) -> Result<(StatusCode, Json<Answer>), ApiError> {
    let Asked { pipeline, round, jobs } = asked;
    caller.check(&pipeline)?;
    if jobs.len() > JOBS_MAX {
        return Err(ApiError::too_large(format!("{} jobs at once: at most {JOBS_MAX}", jobs.len())).at("jobs"));
    }
    let fixed = app.setting().fixed_target(&pipeline);
    let job = |asked: Job| {
        let own = app.redrive().new_job(asked.input);
        let target = fixed.clone().or(asked.target).or(own.target);
        let origin = Origin { kind: "api".to_owned(), group: None, details: Map::new() };
        NewJob { key: asked.key.or(own.key), target, round: round.clone(), origin: Some(origin), ..own }
    };
    let jobs: Vec<_> = jobs.into_iter().map(job).collect();
    let queued_max = app.setting().policy(&pipeline).queued_max;
    let answers = app.redrive().enqueue_jobs(&pipeline, queued_max, jobs).await?;
    let answer = Answer { jobs: answers.into_iter().map(told).collect() };
    Ok((StatusCode::CREATED, Json(answer)))
}

fn told(answer: EnqueuedJob) -> Enqueued {
    match answer {
        EnqueuedJob::Accepted(id) => Enqueued { id: id.to_string(), result: "accepted", state: None },
        EnqueuedJob::Known { id, state, .. } => Enqueued { id: id.to_string(), result: "known", state: Some(state) },
    }
}
