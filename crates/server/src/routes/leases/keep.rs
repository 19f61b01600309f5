//! `POST /leases/start`, `/leases/renew`, `/leases/progress` and `/leases/give-up`

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use redrive_core::ids::{JobId, PipelineName, WorkerId};
use redrive_core::jobs::LeasedJob;
use redrive_core::workers::TakesReplays;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::id::{LeaseText, apart};
use crate::access::Caller;
use crate::app::App;
use crate::asked::{Body, Text};
use crate::error::ApiError;
use crate::runs::{self, Runs};
use crate::shapes;

/// The most leases of one request.
const LEASES_MAX: usize = 1_000;

/// How long leases last from now, in seconds, unless something else is asked for.
const TTL_SECS: u64 = 60;

/// Leases of a worker.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = KeepLeases)]
pub struct Asked {
    /// Who has them.
    #[schema(value_type = shapes::Uuid)]
    worker: Text<WorkerId>,
    /// The leases: at most 1,000.
    #[schema(value_type = Vec<shapes::LeaseText>)]
    leases: Vec<Text<LeaseText>>,
    /// To renew: for how long from now, in seconds: 60 if left out, 5 to 3,600.
    #[schema(minimum = 5, maximum = 3600)]
    ttl: Option<u64>,
}

/// Jobs that begin to run.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = StartLeases)]
pub struct Begun {
    /// Who runs them.
    #[schema(value_type = shapes::Uuid)]
    worker: Text<WorkerId>,
    /// The leases: at most 1,000.
    #[schema(value_type = Vec<shapes::LeaseText>)]
    leases: Vec<Text<LeaseText>>,
    /// Whether each has a process of its own: then none is a suspect if the worker dies.
    #[serde(default)]
    own_process: bool,
}

/// A worker whose process died.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = DeadWorker)]
pub struct Died {
    /// Who.
    #[schema(value_type = shapes::Uuid)]
    worker: Text<WorkerId>,
}

/// What became of leases, in their order.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = KeptLeases)]
pub struct Answer {
    leases: Vec<Kept>,
}

/// What became of a lease.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = KeptLease)]
pub struct Kept {
    #[schema(value_type = shapes::LeaseText)]
    lease: LeaseText,
    /// `ok`, or `lost`: its job is to be left.
    result: &'static str,
}

/// How far an attempt got.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NoteProgress)]
pub struct Progress {
    /// Who has the lease.
    #[schema(value_type = shapes::Uuid)]
    worker: Text<WorkerId>,
    /// The lease.
    #[schema(value_type = shapes::LeaseText)]
    lease: Text<LeaseText>,
    /// How far; nothing to begin anew.
    #[schema(value_type = Option<Object>)]
    progress: Option<Value>,
}

/// A worker that waits no longer for targets that stay away.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = WaitedEnough)]
pub struct WaitedEnough {
    /// The worker.
    #[schema(value_type = shapes::Uuid)]
    worker: Text<WorkerId>,
    /// The pipeline whose jobs wait.
    #[schema(value_type = shapes::Name)]
    pipeline: PipelineName,
    /// Versions that the worker runs, where they differ from the server's.
    #[serde(default)]
    runs: Vec<Runs>,
}

/// The jobs that became letters.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = GivenUpJobs)]
pub struct GivenUp {
    /// Their ids. There may be more unless there are none: ask again.
    #[schema(value_type = Vec<shapes::Uuid>)]
    letters: Vec<JobId>,
}

/// That it was noted: there is nothing to tell of it.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = NotedLeases)]
pub struct Noted {}

pub async fn start(State(app): State<App>, caller: Caller, Body(asked): Body<Begun>) -> Result<Json<Noted>, ApiError> {
    // Whether letters of a try have begun is noted nowhere.
    let (leases, _) = apart(&mine(&app, &caller, asked.leases).await?);
    let worker = app.redrive().remote_worker(Some(asked.worker.0), caller.name(), 0);
    worker.start(leases, asked.own_process).await?;
    Ok(Json(Noted {}))
}

pub async fn died(State(app): State<App>, caller: Caller, Body(asked): Body<Died>) -> Result<Json<Noted>, ApiError> {
    let id = asked.worker.0;
    let known = app.redrive().store().list_workers().await?.into_iter().find(|worker| worker.id == id);
    // Whoever says it twice, or of a worker that is forgotten, is told the same.
    let Some(known) = known else { return Ok(Json(Noted {})) };
    if !known.remote {
        return Err(ApiError::invalid("worker", "it has the store itself: that it died is noticed without being said"));
    }
    let pipelines: Vec<PipelineName> = known.runs.into_iter().map(|runs| runs.pipeline).collect();
    caller.check_each(&pipelines)?;
    app.redrive().remote_worker(Some(id), caller.name(), 0).died(&app.pipelines(&pipelines)).await?;
    Ok(Json(Noted {}))
}

pub async fn give_up(
    State(app): State<App>,
    caller: Caller,
    Body(asked): Body<WaitedEnough>,
) -> Result<Json<GivenUp>, ApiError> {
    caller.check_each([&asked.pipeline])?;
    runs::check(&asked.runs)?;
    let pipeline = runs::pipeline(&app, &asked.runs, &asked.pipeline)?;
    let worker = app.redrive().remote_worker(Some(asked.worker.0), caller.name(), 0);
    worker.look(std::slice::from_ref(&pipeline), (TakesReplays::All, 0)).await?;
    Ok(Json(GivenUp { letters: worker.give_up_waiting(&pipeline).await? }))
}

pub async fn renew(State(app): State<App>, caller: Caller, Body(asked): Body<Asked>) -> Result<Json<Answer>, ApiError> {
    let ttl = asked.ttl.unwrap_or(TTL_SECS);
    if !(5..=3_600).contains(&ttl) {
        return Err(ApiError::invalid("ttl", format!("ttl is {ttl}: expected 5 to 3600")));
    }
    let leases = mine(&app, &caller, asked.leases).await?;
    let worker = app.redrive().remote_worker(Some(asked.worker.0), caller.name(), 0);
    let ((jobs, tried), ttl) = (apart(&leases), Duration::from_secs(ttl));
    let mut held: HashSet<LeaseText> = HashSet::new();
    if !jobs.is_empty() {
        // Of a pipeline that nobody configured it is not known how long an attempt may take.
        worker.time_out(&app.pipelines(app.setting().config.pipeline.keys()), &jobs).await?;
        held.extend(worker.renew(jobs, ttl).await?.into_iter().map(LeaseText::Job));
    }
    if !tried.is_empty() {
        let answers = worker.renew_tried(tried.clone(), ttl).await?;
        held.extend(
            tried.into_iter().zip(answers).filter(|(_, holds)| *holds).map(|(lease, _)| LeaseText::Tried(lease)),
        );
    }
    let told = |lease: LeaseText| Kept { lease, result: if held.contains(&lease) { "ok" } else { "lost" } };
    Ok(Json(Answer { leases: leases.into_iter().map(told).collect() }))
}

pub async fn progress(
    State(app): State<App>,
    caller: Caller,
    Body(asked): Body<Progress>,
) -> Result<Json<Kept>, ApiError> {
    let told = asked.lease.0;
    let (leases, _) = apart(&mine(&app, &caller, vec![asked.lease]).await?);
    let Some(lease) = leases.into_iter().next() else {
        return Err(ApiError::invalid("lease", "how far a letter got in a try is kept nowhere"));
    };
    let worker = app.redrive().remote_worker(Some(asked.worker.0), caller.name(), 0);
    let holds = worker.note_progress(lease, asked.progress).await?;
    Ok(Json(Kept { lease: told, result: if holds { "ok" } else { "lost" } }))
}

/// The leases of a request, if they are for pipelines of who asks.
pub async fn mine(app: &App, caller: &Caller, leases: Vec<Text<LeaseText>>) -> Result<Vec<LeaseText>, ApiError> {
    if leases.len() > LEASES_MAX {
        return Err(ApiError::too_large(format!("{} leases at once: at most {LEASES_MAX}", leases.len())).at("leases"));
    }
    let leases: Vec<LeaseText> = leases.into_iter().map(|lease| lease.0).collect();
    if !caller.covers_all() {
        let held = held_by(app, &leases).await?;
        caller.check_each(pipelines_of(app, &leases, &held).await?.values())?;
    }
    Ok(leases)
}

/// The jobs that leases hold.
pub async fn held_by(app: &App, leases: &[LeaseText]) -> Result<Vec<LeasedJob>, ApiError> {
    let (jobs, _) = apart(leases);
    Ok(if jobs.is_empty() { Vec::new() } else { app.redrive().store().leased(jobs).await? })
}

/// The pipelines of what leases are of, also of those that no longer hold.
pub async fn pipelines_of(
    app: &App,
    leases: &[LeaseText],
    held: &[LeasedJob],
) -> Result<HashMap<LeaseText, PipelineName>, ApiError> {
    let (jobs, tried) = apart(leases);
    let mut pipelines: HashMap<_, _> =
        held.iter().map(|job| (LeaseText::Job(job.lease), job.pipeline.clone())).collect();
    let others = jobs.into_iter().map(|lease| (LeaseText::Job(lease), lease.job));
    let others = others.chain(tried.into_iter().map(|lease| (LeaseText::Tried(lease), lease.job)));
    for (lease, job) in others {
        if !pipelines.contains_key(&lease)
            && let Some(detail) = app.redrive().store().get_job(job).await?
        {
            pipelines.insert(lease, detail.job.pipeline);
        }
    }
    Ok(pipelines)
}
