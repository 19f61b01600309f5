//! `POST /jobs`

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use redrive::contract::EnqueuedJob;
use redrive::dead::Accepted;
use redrive_core::ids::{JobId, PipelineName, RoundName};
use redrive_core::jobs::{Input, InputTooLarge, NewJob, Origin, check_input, is_traceparent};
use redrive_core::state::JobState;
use redrive_core::time::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::access::Caller;
use crate::app::App;
use crate::asked::{Body, called};
use crate::error::ApiError;
use crate::shapes;

/// The most jobs of one request.
const JOBS_MAX: usize = 10_000;

/// Jobs that are to be accepted, all or none.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = EnqueueJobs)]
pub struct Asked {
    /// The pipeline that they are for.
    #[schema(value_type = shapes::Name)]
    pipeline: PipelineName,
    /// The round that they belong to.
    #[schema(value_type = Option<shapes::Name>)]
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
    /// What it belongs to where it comes from: `group` of a lease.
    #[serde(default, deserialize_with = "called")]
    group: Option<String>,
    /// The trace that it is part of, as the W3C's Trace Context writes it: it is kept with the job, and handed to who runs it.
    traceparent: Option<String>,
    /// What it asks; `target` or the host of `url` of the input if it is left out.
    #[serde(default, deserialize_with = "called")]
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
    /// `accepted`; `known` if its key was known already; or `withheld`: fields of its input have secret names, and were not taken, so
    /// that it is a dead letter until a replay supplies them.
    result: &'static str,
    /// Where the job is, unless it was accepted.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    state: Option<JobState>,
    /// When that job came to its end, if it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    ended_at: Option<Timestamp>,
    /// The fields that were not taken, by name or by JSON pointer.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    lost: Vec<String>,
}

pub async fn run(
    State(app): State<App>,
    caller: Caller,
    Body(asked): Body<Asked>,
) -> Result<(StatusCode, Json<Answer>), ApiError> {
    let Asked { pipeline, round, jobs } = asked;
    caller.check(&pipeline)?;
    app.admit_pipelines([&pipeline]).await?;
    if jobs.len() > JOBS_MAX {
        return Err(ApiError::too_large(format!("{} jobs at once: at most {JOBS_MAX}", jobs.len())).at("jobs"));
    }
    let wrong = |job: &Job| job.traceparent.as_deref().is_some_and(|trace| !is_traceparent(trace));
    if let Some(at) = jobs.iter().position(wrong) {
        return Err(ApiError::invalid(
            format!("jobs[{at}].traceparent"),
            "expected a traceparent of the W3C's Trace Context",
        ));
    }
    let setting = app.setting();
    let most = setting.input_bytes_max(&pipeline);
    for (at, job) in jobs.iter().enumerate() {
        let large = |why: InputTooLarge| ApiError::input_too_large(format!("jobs[{at}].input"), why);
        check_input(&job.input, most).map_err(large)?;
    }
    let fixed = setting.fixed_target(&pipeline);
    let job = |asked: Job| {
        let own = app.redrive().new_job(asked.input);
        let target = fixed.clone().or(asked.target).or(own.target);
        let key = asked.key.filter(|key| !key.is_empty()).or(own.key);
        let told = Origin::over_network("api").told(asked.group, asked.traceparent);
        NewJob { key, target, round: round.clone(), origin: Some(told), ..own }
    };
    let jobs: Vec<_> = jobs.into_iter().map(job).collect();
    let accepted = app.redrive().accept_jobs(&setting, &pipeline, jobs, &caller.actor()).await?;
    let answer = Answer { jobs: accepted.into_iter().map(told).collect() };
    Ok((StatusCode::CREATED, Json(answer)))
}

fn told(accepted: Accepted) -> Enqueued {
    let enqueued = |id: JobId, result, state, ended_at| {
        let lost = Vec::new();
        Enqueued { id: id.to_string(), result, state, ended_at, lost }
    };
    match accepted {
        Accepted::Enqueued(EnqueuedJob::Accepted(id)) => enqueued(id, "accepted", None, None),
        Accepted::Enqueued(EnqueuedJob::Known { id, state, ended_at }) => enqueued(id, "known", Some(state), ended_at),
        Accepted::Withheld { id, lost } => Enqueued { lost, ..enqueued(id, "withheld", Some(JobState::Dead), None) },
    }
}
