//! `POST /leases`

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use redrive::contract::{Change, Lane, LeasedJobs, ListReplays, Topic};
use redrive::leases::RemoteWorker;
use redrive_core::ids::{PipelineName, ReplayId, WorkerId};
use redrive_core::jobs::{Input, LeasedJob};
use redrive_core::payloads::Payload;
use redrive_core::replays::ReplayState;
use redrive_core::time::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::id::LeaseText;
use crate::access::Caller;
use crate::app::App;
use crate::asked::{Body, Text};
use crate::error::ApiError;

/// The most jobs of one lease.
const JOBS_MAX: u32 = 1_000;

/// The longest that is waited for jobs, in seconds.
const WAIT_SECS_MAX: u64 = 30;

/// How long a lease lasts, in seconds: unless something else is asked for, at least and at most.
const TTL_SECS: (u64, u64, u64) = (60, 5, 3_600);

/// The longest between two looks while jobs are waited for: hints may get lost.
const LOOK_ANYWAY: Duration = Duration::from_secs(2);

/// Open replays that are looked at.
const REPLAYS_MAX: u32 = 100;

/// Which jobs, how many, for how long.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = LeaseJobs)]
pub struct Asked {
    /// Who asks: `worker` of an earlier answer, so that it stays the same worker.
    #[schema(value_type = Option<String>)]
    worker: Option<Text<WorkerId>>,
    /// Where that is, for people.
    host: Option<String>,
    /// The pipelines.
    #[schema(value_type = Vec<String>)]
    pipelines: Vec<PipelineName>,
    /// Only letters that this replay sent; else jobs of the queues, and then letters of all replays.
    #[schema(value_type = Option<String>)]
    replay: Option<Text<ReplayId>>,
    /// At most so many: 1 if left out, at most 1,000.
    max: Option<u32>,
    /// How long to wait if there are none, in seconds: not at all if left out, at most 30.
    wait: Option<u64>,
    /// How long the leases last, in seconds: 60 if left out, 5 to 3,600.
    ttl: Option<u64>,
}

/// Jobs that were leased.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = LeasedJobs)]
pub struct Answer {
    /// Who has them; to be sent along with all that follows.
    worker: String,
    /// The jobs.
    #[schema(value_type = Vec<Object>)]
    leases: Vec<Leased>,
    /// Jobs of these pipelines, or letters of the replay, that have not come to their end.
    open: u64,
    /// Whether a pipeline of these, or the replay, is paused: nothing comes until it is resumed.
    paused: bool,
}

/// A job that was leased.
#[derive(Debug, Serialize)]
pub struct Leased {
    lease: LeaseText,
    until: Timestamp,
    /// `job`, or `letter` if a replay sent it.
    kind: &'static str,
    /// `saved` if the saved payload is what it is to be worked from, else `anew`.
    from: &'static str,
    pipeline: PipelineName,
    number: i64,
    key: Option<String>,
    target: Option<String>,
    input: Input,
    attempt: u32,
    crashes: u32,
    replays: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    progress: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    saved: Option<Payload>,
}

pub async fn run(State(app): State<App>, caller: Caller, Body(asked): Body<Asked>) -> Result<Json<Answer>, ApiError> {
    let wanted = Wanted::of(&asked)?;
    caller.check_each(&asked.pipelines)?;
    let host = asked.host.unwrap_or_else(|| caller.name().to_owned());
    let worker = app.redrive().remote_worker(asked.worker.map(|worker| worker.0), &host, 0);
    let mut changes = app.redrive().store().changes();
    let deadline = tokio::time::Instant::now() + wanted.wait;
    loop {
        let found = wanted.lease(&app, &worker, &asked.pipelines).await?;
        let left = deadline.saturating_duration_since(tokio::time::Instant::now());
        if !found.jobs.is_empty() || left.is_zero() || app.stopping().is_cancelled() {
            let (open, paused) = wanted.standing(&app, &asked.pipelines).await?;
            let leases = found.jobs.into_iter().map(|job| leased(job, found.until)).collect();
            return Ok(Json(Answer { worker: worker.id().to_string(), leases, open, paused }));
        }
        let due = found.next_due.map(|at| at.since(app.redrive().now()).max(Duration::from_millis(20)));
        let most = left.min(LOOK_ANYWAY).min(due.unwrap_or(LOOK_ANYWAY));
        let interesting = async {
            loop {
                let change = changes.next().await.unwrap_or(Change::ALL);
                if change.is_about_any(&[Topic::Jobs, Topic::Replays, Topic::Breakers, Topic::Pipelines]) {
                    return;
                }
            }
        };
        tokio::select! {
            () = interesting => {}
            () = app.stopping().cancelled() => {}
            () = tokio::time::sleep(most) => {}
        }
    }
}

/// What is wanted, checked.
struct Wanted {
    replay: Option<ReplayId>,
    max: u32,
    wait: Duration,
    ttl: Duration,
}

/// What was found.
struct Found {
    jobs: Vec<LeasedJob>,
    until: Timestamp,
    next_due: Option<Timestamp>,
}

impl Wanted {
    fn of(asked: &Asked) -> Result<Self, ApiError> {
        let within = |field: &'static str, value: u64, least: u64, most: u64| match (least..=most).contains(&value) {
            true => Ok(value),
            false => Err(ApiError::invalid(field, format!("{field} is {value}: expected {least} to {most}"))),
        };
        if asked.pipelines.is_empty() {
            return Err(ApiError::invalid("pipelines", "name at least one pipeline"));
        }
        let (usual, least, most) = TTL_SECS;
        let max = within("max", asked.max.unwrap_or(1).into(), 1, JOBS_MAX.into())?;
        Ok(Self {
            replay: asked.replay.as_ref().map(|replay| replay.0),
            max: u32::try_from(max).unwrap_or(JOBS_MAX),
            wait: Duration::from_secs(within("wait", asked.wait.unwrap_or(0), 0, WAIT_SECS_MAX)?),
            ttl: Duration::from_secs(within("ttl", asked.ttl.unwrap_or(usual), least, most)?),
        })
    }

    /// Leases what there is, lane by lane, until it is enough.
    async fn lease(&self, app: &App, worker: &RemoteWorker, names: &[PipelineName]) -> Result<Found, ApiError> {
        let until = app.redrive().now() + self.ttl;
        let mut found = Found { jobs: Vec::new(), until, next_due: None };
        let replays = self.replays(app).await?;
        for name in names {
            let pipeline = app.pipeline(name)?;
            let queue = self.replay.is_none().then_some(Lane::Queue);
            let of_replays = replays.iter().filter(|(_, pipelines)| pipelines.contains(name));
            for lane in queue.into_iter().chain(of_replays.map(|(id, _)| Lane::Replay(*id))) {
                let room = self.max - u32::try_from(found.jobs.len()).unwrap_or(self.max).min(self.max);
                if room == 0 {
                    return Ok(found);
                }
                let LeasedJobs { jobs, next_due, .. } = worker.lease(&pipeline, lane, room, self.ttl).await?;
                found.jobs.extend(jobs);
                found.next_due = [found.next_due, next_due].into_iter().flatten().min();
            }
        }
        Ok(found)
    }

    /// The replays whose letters may be leased.
    async fn replays(&self, app: &App) -> Result<Vec<(ReplayId, std::collections::BTreeSet<PipelineName>)>, ApiError> {
        let params = ListReplays { open_only: true, limit: REPLAYS_MAX, cursor: None };
        let open = app.redrive().store().list_replays(params).await?.items;
        let wanted = open.into_iter().filter(|replay| self.replay.is_none_or(|id| id == replay.id));
        Ok(wanted.map(|replay| (replay.id, replay.pipelines)).collect())
    }

    /// How much is open, and whether it rests.
    async fn standing(&self, app: &App, names: &[PipelineName]) -> Result<(u64, bool), ApiError> {
        let pauses = app.redrive().store().pauses().await?;
        let paused = names.iter().any(|name| pauses.contains_key(name));
        if let Some(id) = self.replay {
            let Some(replay) = app.redrive().store().get_replay(id).await? else {
                return Err(ApiError::missing(format!("no replay {id}")).at("replay"));
            };
            let open = if replay.is_open() { replay.progress.pending + replay.progress.running } else { 0 };
            return Ok((open, paused || replay.state == ReplayState::Paused));
        }
        let ledgers = app.redrive().store().ledgers().await?;
        let open: i64 = names.iter().filter_map(|name| ledgers.get(name)).map(|ledger| ledger.open()).sum();
        Ok((u64::try_from(open).unwrap_or(0), paused))
    }
}

fn leased(job: LeasedJob, until: Timestamp) -> Leased {
    Leased {
        lease: LeaseText(job.lease),
        until,
        kind: if job.tally.replays > 0 { "letter" } else { "job" },
        from: if job.saved.is_some() { "saved" } else { "anew" },
        attempt: job.attempt(),
        number: job.number,
        pipeline: job.pipeline,
        key: job.key,
        target: job.target,
        input: job.input,
        crashes: job.tally.crashes,
        replays: job.tally.replays,
        progress: job.progress,
        saved: job.saved,
    }
}
