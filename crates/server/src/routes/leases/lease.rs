//! `POST /leases`

use std::collections::HashMap;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use redrive::contract::{Change, Topic};
use redrive::replays::LetterInTry;
use redrive_core::failures::Failure;
use redrive_core::ids::{PipelineName, ReplayId, RoundName, WorkerId};
use redrive_core::jobs::{Input, LeasedJob, Origin};
use redrive_core::payloads::Payload;
use redrive_core::time::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::id::LeaseText;
use super::wanted::Wanted;
use crate::access::Caller;
use crate::app::App;
use crate::asked::{Body, Text, called};
use crate::error::ApiError;
use crate::runs::Runs;
use crate::shapes;

/// Which jobs, how many, for how long.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = LeaseJobs)]
pub struct Asked {
    /// Who asks: `worker` of an earlier answer, so that it stays the same worker.
    #[schema(value_type = Option<shapes::Uuid>)]
    worker: Option<Text<WorkerId>>,
    /// Where that is, for people.
    #[serde(default, deserialize_with = "called")]
    host: Option<String>,
    /// The pipelines: at most 100.
    #[schema(value_type = Vec<shapes::Name>, min_items = 1)]
    pub(super) pipelines: Vec<PipelineName>,
    /// Only letters of this operation: the id of a replay, or of a try, whose letters come with their saved payloads and are settled
    /// by a verdict that changes nothing. If left out: jobs of the queues, and then letters of all replays.
    #[serde(alias = "replay")]
    #[schema(value_type = Option<shapes::Uuid>)]
    pub(super) op: Option<Text<ReplayId>>,
    /// Only jobs of the queues, and no letters of replays.
    #[serde(default)]
    pub(super) queues_only: bool,
    /// Only what is of this group: what a letter belongs to in the program that reported it (`origin.group`).
    #[serde(default, deserialize_with = "called")]
    pub(super) group: Option<String>,
    /// At most so many: 1 if left out, at most 1,000.
    #[schema(minimum = 1, maximum = 1000)]
    pub(super) max: Option<u32>,
    /// Whether each job runs in a process of its own. If not, a job that may have taken a process down comes alone (`alone`), once
    /// nothing else is leased, and nothing comes beside it.
    #[serde(default)]
    pub(super) own_process: bool,
    /// How long to wait if there are none, in seconds: not at all if left out, at most 30.
    #[schema(maximum = 30)]
    pub(super) wait: Option<u64>,
    /// How long the leases last, in seconds: 60 if left out, 5 to 3,600.
    #[schema(minimum = 5, maximum = 3600)]
    pub(super) ttl: Option<u64>,
    /// What the worker runs, where that is another version of a pipeline than the server's: it gets letters of replays that are for it.
    #[serde(default)]
    pub(super) runs: Vec<Runs>,
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
    /// Jobs of these pipelines, or letters of the operation, that have not come to their end: if there are none, and nothing was
    /// leased, all is done. Of a try at most 1,000 are counted.
    open: u64,
    /// Whether a pipeline of these, or the replay, is paused: nothing comes until it is resumed.
    paused: bool,
    /// When the next of them may be leased, if that is known and nothing was leased.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    next_due: Option<Timestamp>,
}

/// A job that was leased.
#[derive(Debug, Serialize)]
pub struct Leased {
    lease: LeaseText,
    until: Timestamp,
    /// When it must have come to its end, if its pipeline says how long an attempt may take: after that it is not renewed.
    #[serde(skip_serializing_if = "Option::is_none")]
    deadline: Option<Timestamp>,
    /// The replay or try that it is of, if one was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    op: Option<ReplayId>,
    /// `job`, `letter` if a replay sent it, or `try` if it is only tried.
    kind: &'static str,
    /// `saved` if the saved payload is what it is to be worked from, else `anew`.
    from: &'static str,
    /// By what its job is known, and its payload: `GET /payloads/{id}/bytes`.
    id: String,
    pipeline: PipelineName,
    #[serde(skip_serializing_if = "Option::is_none")]
    round: Option<RoundName>,
    number: i64,
    accepted_at: Timestamp,
    key: Option<String>,
    target: Option<String>,
    input: Input,
    attempt: u32,
    /// Attempts before the replay that sent it.
    attempts_before: u32,
    /// Of those, the ones of retries by name, which do not count towards the cap over all replays.
    uncounted: u32,
    /// Set if it is retried by name: none of its attempts until it ends counts towards the cap.
    by_name: bool,
    crashes: u32,
    /// Whether it may have taken a process down: it is to run with nothing beside it. If the process dies again, say so
    /// (`crashed`, or `POST /leases/died`).
    alone: bool,
    replays: u32,
    /// Whether a policy asked for its replay, and no person.
    automatic: bool,
    /// Whether it came over the network, or may have: whoever wrote it need not be trusted with what the worker can reach.
    from_network: bool,
    /// Whether its input is not the one that it was accepted with.
    edited: bool,
    /// Where it came from, if another system handed it over.
    #[serde(skip_serializing_if = "Option::is_none")]
    origin: Option<Origin>,
    /// The trace that it is part of, if it was given one.
    #[serde(skip_serializing_if = "Option::is_none")]
    traceparent: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    progress: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    saved: Option<Payload>,
    /// Of a letter in a try: what it died of.
    #[serde(skip_serializing_if = "Option::is_none")]
    failure: Option<Failure>,
}

/// Refuses a worker without a name if there are as many remote workers as may be.
async fn check_workers(app: &App) -> Result<(), ApiError> {
    let most = app.options().workers_max;
    let known = app.redrive().store().list_workers().await.map_err(redrive::Error::from)?;
    match known.iter().filter(|worker| worker.remote).count() >= most {
        true => {
            Err(ApiError::too_many(format!("{most} remote workers are known: send `worker` of an earlier response")))
        }
        false => Ok(()),
    }
}

pub async fn run(State(app): State<App>, caller: Caller, Body(asked): Body<Asked>) -> Result<Json<Answer>, ApiError> {
    caller.check_named(&asked.pipelines)?;
    let host = asked.host.clone();
    let worker = asked.worker.as_ref().map(|worker| worker.0);
    let is_nameless = worker.is_none();
    if is_nameless {
        check_workers(&app).await?;
    }
    let wanted = Wanted::of(&app, &caller, asked).await?;
    let host = host.unwrap_or_else(|| caller.name().to_owned());
    let worker = app.redrive().remote_worker(worker, &host, 0);
    let mut changes = app.redrive().store().changes();
    let deadline = tokio::time::Instant::now() + wanted.wait;
    loop {
        let found = wanted.lease(&app, &worker).await?;
        let left = deadline.saturating_duration_since(tokio::time::Instant::now());
        let enough = !found.is_empty() || left.is_zero() || app.stopping().is_cancelled();
        // An operation of which nothing is open will never have anything again.
        if enough || wanted.is_over(&app).await? {
            // Who got something has seen enough; who got nothing may take that for the end.
            let seen = found.standing.filter(|_| !found.is_empty());
            let (open, paused) = match seen {
                Some((open, paused)) => (open.max(found.jobs.len() as u64), paused),
                None => wanted.standing(&app).await?,
            };
            let (op, until) = (wanted.op_id(), found.until);
            let next_due = found.next_due.filter(|_| found.is_empty());
            let mut deadlines = HashMap::new();
            let jobs = found.jobs.into_iter().map(|job| {
                let known = deadlines.get(&job.pipeline).copied();
                let deadline = known.unwrap_or_else(|| {
                    let deadline = deadline_of(&app, &job.pipeline);
                    deadlines.insert(job.pipeline.clone(), deadline);
                    deadline
                });
                Leased { deadline, ..leased(job, until, op) }
            });
            let tried = found.tried.into_iter().map(|letter| in_try(letter, until, op));
            let leases: Vec<_> = jobs.chain(tried).collect();
            // It may never come again. If it does, it is on the list again with its next lease.
            if is_nameless && leases.is_empty() {
                worker.detach().await?;
            }
            return Ok(Json(Answer { worker: worker.id().to_string(), leases, open, paused, next_due }));
        }
        let due = found.next_due.map(|at| at.since(app.redrive().now()).max(Duration::from_millis(20)));
        let most = left.min(app.redrive().look_anyway_every()).min(due.unwrap_or(Duration::MAX));
        let interesting = async {
            // What was leased and given back rings, too: who waits for an idle moment looks now and then.
            if found.is_held_back {
                std::future::pending::<()>().await;
            }
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

fn deadline_of(app: &App, name: &PipelineName) -> Option<Timestamp> {
    let is_configured = app.setting().config.pipeline.contains_key(name);
    let pipeline = is_configured.then(|| app.pipeline(name).ok()).flatten()?;
    Some(app.redrive().now() + pipeline.policy().deadline)
}

fn leased(job: LeasedJob, until: Timestamp, op: Option<ReplayId>) -> Leased {
    Leased {
        lease: LeaseText::Job(job.lease),
        until,
        deadline: None,
        op,
        kind: if job.tally.replays > 0 { "letter" } else { "job" },
        from: if job.saved.is_some() { "saved" } else { "anew" },
        id: job.lease.job.to_string(),
        attempt: job.attempt(),
        attempts_before: job.tally.attempts_before,
        uncounted: job.tally.uncounted,
        by_name: job.tally.by_name,
        automatic: job.automatic,
        accepted_at: job.accepted_at,
        from_network: job.is_from_network(),
        round: job.round,
        edited: job.edited,
        traceparent: job.origin.as_ref().and_then(Origin::traceparent).map(str::to_owned),
        origin: job.origin,
        number: job.number,
        pipeline: job.pipeline,
        key: job.key,
        target: job.target,
        input: job.input,
        crashes: job.tally.crashes,
        alone: job.tally.suspect,
        replays: job.tally.replays,
        progress: job.progress,
        saved: job.saved,
        failure: None,
    }
}

fn in_try(LetterInTry { lease, job, letter }: LetterInTry, until: Timestamp, op: Option<ReplayId>) -> Leased {
    let failure = letter.failures.and_then(|failures| failures.into_iter().next_back());
    let lease = LeaseText::Tried(lease);
    Leased { lease, kind: "try", failure, ..leased(job, until, op) }
}
