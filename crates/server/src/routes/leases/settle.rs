//! `POST /leases/settle`

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use data_encoding::BASE64;
use redrive::leases::{BroughtBack, BroughtPayload, EndedJob};
use redrive::vault::Capture;
use redrive::{FailureReport, HandedOn};
use redrive_core::ids::{PipelineName, WorkerId};
use redrive_core::jobs::Lease;
use redrive_core::payloads::Response;
use redrive_core::settlements::Outcome;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::id::LeaseText;
use crate::access::Caller;
use crate::app::App;
use crate::asked::{Body, Text};
use crate::error::ApiError;

/// The most jobs of one request.
const JOBS_MAX: usize = 1_000;

/// How jobs ended.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = SettleJobs)]
pub struct Asked {
    /// Who ran them.
    #[schema(value_type = String)]
    worker: Text<WorkerId>,
    /// The jobs: at most 1,000.
    jobs: Vec<Ended>,
}

/// How a job ended.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = SettleJob)]
pub struct Ended {
    /// The right to settle it.
    #[schema(value_type = String)]
    lease: Text<LeaseText>,
    /// How it ended.
    verdict: Verdict,
    /// What came out of it, if it is done.
    #[schema(value_type = Option<Object>)]
    result: Option<Value>,
    /// What went wrong, if it failed: at least `message`; the server classifies.
    #[schema(value_type = Option<Object>)]
    failure: Option<FailureReport>,
    /// What it worked on, as evidence.
    payload: Option<Evidence>,
    /// Jobs that it hands on, if it is done: each with `input`, and `pipeline` and `key` where they are others.
    #[serde(default)]
    #[schema(value_type = Vec<Object>)]
    enqueue: Vec<HandedOn>,
    /// How long it ran, in milliseconds.
    duration_ms: Option<u64>,
}

/// How a job ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It was processed.
    Done,
    /// It failed.
    Failed,
    /// It took its process down.
    Crashed,
    /// Nothing was done: it is queued again, as it was.
    Returned,
}

/// A raw response, or any bytes.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Evidence {
    /// Its bytes, as text.
    text: Option<String>,
    /// Its bytes, in Base64.
    base64: Option<String>,
    /// The HTTP status that it came with.
    status: Option<u16>,
    /// The headers that it came with. Secrets are masked.
    #[serde(default)]
    headers: Vec<(String, String)>,
    /// Where it came from.
    url: Option<String>,
    /// How long it is said to be, if only the beginning is sent.
    total_bytes: Option<u64>,
}

/// What became of jobs, in their order.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = SettledJobs)]
pub struct Answer {
    jobs: Vec<Settled>,
}

/// What became of a job.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = SettledJob)]
pub struct Settled {
    #[schema(value_type = String)]
    lease: LeaseText,
    /// `ok`; `lost`, which is final; or `unkept`: what is to be kept of it cannot be for now, and the lease holds.
    result: &'static str,
    /// Why it is not settled.
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
}

pub async fn run(State(app): State<App>, caller: Caller, Body(asked): Body<Asked>) -> Result<Json<Answer>, ApiError> {
    if asked.jobs.len() > JOBS_MAX {
        return Err(ApiError::too_large(format!("{} jobs at once: at most {JOBS_MAX}", asked.jobs.len())).at("jobs"));
    }
    let leases: Vec<Lease> = asked.jobs.iter().map(|ended| ended.lease.0.0).collect();
    let pipelines = pipelines_of(&app, &leases).await?;
    caller.check_each(pipelines.values())?;
    for name in asked.jobs.iter().flat_map(|ended| &ended.enqueue).filter_map(|handed| handed.pipeline.as_ref()) {
        caller.check(name)?;
    }
    let mut told: HashMap<Lease, Settled> = HashMap::new();
    let mut by_pipeline: BTreeMap<&PipelineName, Vec<EndedJob>> = BTreeMap::new();
    for (at, ended) in asked.jobs.into_iter().enumerate() {
        let lease = ended.lease.0.0;
        match pipelines.get(&lease) {
            Some(name) => by_pipeline.entry(name).or_default().push(ended.brought(at)?),
            None => drop(told.insert(lease, settled(lease, BroughtBack::Stale))),
        }
    }
    let worker = app.redrive().remote_worker(Some(asked.worker.0), caller.name(), 0);
    for (name, ended) in by_pipeline {
        let brought: Vec<Lease> = ended.iter().map(|ended| ended.lease).collect();
        let answers = worker.settle(&app.pipeline(name)?, ended).await?;
        told.extend(brought.into_iter().zip(answers).map(|(lease, answer)| (lease, settled(lease, answer))));
    }
    let jobs = leases.iter().filter_map(|lease| told.remove(lease)).collect();
    Ok(Json(Answer { jobs }))
}

/// The pipelines of the jobs that leases are of, also of those that no longer hold.
async fn pipelines_of(app: &App, leases: &[Lease]) -> Result<HashMap<Lease, PipelineName>, ApiError> {
    let held = app.redrive().store().leased(leases.to_vec()).await?;
    let mut pipelines: HashMap<_, _> = held.into_iter().map(|job| (job.lease, job.pipeline)).collect();
    for lease in leases {
        if !pipelines.contains_key(lease)
            && let Some(detail) = app.redrive().store().get_job(lease.job).await?
        {
            pipelines.insert(*lease, detail.job.pipeline);
        }
    }
    Ok(pipelines)
}

fn settled(lease: Lease, answer: BroughtBack) -> Settled {
    let (result, why) = match answer {
        BroughtBack::Settled => ("ok", None),
        BroughtBack::Stale => ("lost", None),
        BroughtBack::Unkept(why) => ("unkept", Some(why)),
    };
    Settled { lease: LeaseText(lease), result, why }
}

impl Ended {
    fn brought(self, at: usize) -> Result<EndedJob, ApiError> {
        let Self { lease, verdict, result, failure, payload, enqueue, duration_ms } = self;
        let wrong = |field: &str, why: &str| ApiError::invalid(format!("jobs[{at}].{field}"), why);
        let failed = matches!(verdict, Verdict::Failed | Verdict::Crashed);
        if failed != failure.is_some() {
            let why = if failed { "say what went wrong" } else { "only what failed has a failure" };
            return Err(wrong("failure", why));
        }
        if verdict != Verdict::Done && (result.is_some() || !enqueue.is_empty()) {
            return Err(wrong("result", "only what is done has a result, or hands on"));
        }
        let outcome = match (verdict, failure) {
            (Verdict::Failed, Some(report)) => Outcome::Failed(report),
            (Verdict::Crashed, Some(report)) => Outcome::Crashed(report),
            (Verdict::Done, _) => Outcome::Done,
            _ => Outcome::Returned,
        };
        let payload = payload.map(|payload| payload.brought(&|why| wrong("payload", why))).transpose()?;
        let duration = duration_ms.map(Duration::from_millis);
        Ok(EndedJob { lease: lease.0.0, outcome, result, handed_on: enqueue, payload, duration })
    }
}

impl Evidence {
    fn brought(self, wrong: &dyn Fn(&str) -> ApiError) -> Result<BroughtPayload, ApiError> {
        let bytes = match (self.text, self.base64) {
            (Some(text), None) => text.into_bytes(),
            (None, Some(text)) => BASE64.decode(text.as_bytes()).map_err(|error| wrong(&error.to_string()))?,
            _ => return Err(wrong("expected text or base64")),
        };
        // It came in a body, which has an end.
        let written = Capture::begin(u64::MAX).and_then(|mut capture| capture.write(&bytes).map(|()| capture));
        let capture = written.map_err(|error| {
            tracing::warn!(%error, "a payload cannot be kept");
            ApiError::new(
                axum::http::StatusCode::SERVICE_UNAVAILABLE,
                "payload_unkept",
                "the payload cannot be kept for now",
            )
        })?;
        let response = Response { status: self.status, headers: self.headers, url: self.url, elapsed_ms: None };
        Ok(BroughtPayload { capture, response, total_bytes: self.total_bytes })
    }
}
