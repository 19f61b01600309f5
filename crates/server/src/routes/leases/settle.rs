//! `POST /leases/settle`

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use redrive::leases::{BroughtBack, EndedJob, RemoteWorker};
use redrive::replays::{EndedTry, TryVerdict};
use redrive::{FailureReport, HandedOn};
use redrive_core::ids::{PipelineName, TryId, WorkerId};
use redrive_core::jobs::{Lease, LeasedJob};
use redrive_core::settlements::Outcome;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::evidence::Evidence;
use super::id::LeaseText;
use super::keep::{held_by, pipelines_of};
use crate::access::Caller;
use crate::app::App;
use crate::asked::{Body, Text};
use crate::error::ApiError;
use crate::runs::{self, Runs};
use crate::shapes;

/// The most jobs of one request.
const JOBS_MAX: usize = 1_000;

/// How jobs ended, or what letters came to in a try.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = SettleJobs)]
pub struct Asked {
    /// Who ran them.
    #[schema(value_type = shapes::Uuid)]
    worker: Text<WorkerId>,
    /// The jobs: at most 1,000.
    jobs: Vec<Ended>,
    /// What the worker runs, where that is another version of a pipeline than the server's: what they were tried with.
    #[serde(default)]
    runs: Vec<Runs>,
}

/// How a job ended.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = SettleJob)]
pub struct Ended {
    /// The right to settle it.
    #[schema(value_type = shapes::LeaseText)]
    lease: Text<LeaseText>,
    /// How it ended.
    verdict: Verdict,
    /// Whether what came of it is durable: `false` if it was processed, and is yet to be written where it belongs. Its replay goes on
    /// then, and the lease stays: settle it again once it is.
    commit: Option<bool>,
    /// What came out of it, if it is done.
    #[schema(value_type = Option<Object>)]
    result: Option<Value>,
    /// Lines that it printed before its result. The last 16 KiB are kept.
    log: Option<String>,
    /// Set by a worker that has written the result itself. The server then does not write it to the pipeline's file.
    #[serde(default)]
    written: bool,
    /// What went wrong, if it failed: at least `message`; the server classifies.
    #[schema(value_type = Option<Object>)]
    failure: Option<FailureReport>,
    /// What it worked on, as evidence.
    payload: Option<Evidence>,
    /// How many items came out of it, where that is told instead of a result.
    items: Option<u64>,
    /// One of those, as an example.
    #[schema(value_type = Option<Object>)]
    sample: Option<Value>,
    /// In a try: how many jobs it would hand on; `enqueue` may name some of them, of which 5 are kept.
    follow: Option<u64>,
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
    /// In a try: it cannot be found out from what is saved; `failure` may say why.
    Unknown,
    /// Nothing was done: it is queued again, as it was.
    Returned,
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
    #[schema(value_type = shapes::LeaseText)]
    lease: LeaseText,
    /// `ok`; `lost`, which is final; or `unkept`: what is to be kept of it cannot be for now, and the lease holds.
    result: &'static str,
    /// Why it is not settled; with `ok`, why it was settled as having failed though it was brought as done: what it hands on is not
    /// taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
    /// Whether it is a dead letter by that.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    died: bool,
}

/// Settles in a task of its own: a client that leaves in the middle must not part a result from its settlement.
pub async fn run(State(app): State<App>, caller: Caller, Body(asked): Body<Asked>) -> Result<Json<Answer>, ApiError> {
    let settled = tokio::spawn(settle(app, caller, asked)).await;
    settled.unwrap_or_else(|error| Err(redrive::Error::Internal(error.to_string()).into()))
}

async fn settle(app: App, caller: Caller, asked: Asked) -> Result<Json<Answer>, ApiError> {
    if asked.jobs.len() > JOBS_MAX {
        return Err(ApiError::too_large(format!("{} jobs at once: at most {JOBS_MAX}", asked.jobs.len())).at("jobs"));
    }
    runs::check(&asked.runs)?;
    let leases: Vec<LeaseText> = asked.jobs.iter().map(|ended| ended.lease.0).collect();
    let mut seen = HashSet::new();
    if let Some(twice) = leases.iter().position(|lease| !seen.insert(lease)) {
        return Err(wrong_at(twice, "lease", "it is settled by this request already"));
    }
    let held = held_by(&app, &leases).await?;
    let all_held = held.len() == leases.len();
    let pipelines = pipelines_of(&app, &leases, &held).await?;
    caller.check_each(pipelines.values())?;
    for name in asked.jobs.iter().flat_map(|ended| &ended.enqueue).filter_map(|handed| handed.pipeline.as_ref()) {
        caller.check(name)?;
    }
    let worker = app.redrive().remote_worker(Some(asked.worker.0), caller.name(), 0).over_network(app.setting());
    // Who looks again after anything was waited for does not write results of what was lost meanwhile.
    let waits = !all_held || asked.jobs.iter().any(|ended| ended.payload.is_some() || ended.commit == Some(false));
    let held = (!waits).then_some(held);
    let mut settling = Settling { app: &app, caller: &caller, worker, runs: asked.runs, held, told: HashMap::new() };
    let (mut jobs, mut tried) = (BTreeMap::<_, Vec<EndedJob>>::new(), BTreeMap::<_, Vec<EndedTry>>::new());
    let mut processed = Vec::new();
    for (at, ended) in asked.jobs.into_iter().enumerate() {
        let lease = ended.lease.0;
        match (lease, pipelines.get(&lease)) {
            (_, None) => settling.tell(lease, BroughtBack::Stale),
            (LeaseText::Job(of), Some(_)) if ended.commit == Some(false) => {
                ended.check(&|field, why| wrong_at(at, field, why))?;
                processed.push(of);
            }
            (LeaseText::Job(_), Some(name)) => match settling.brought(ended, at).await? {
                Ok(ended) => jobs.entry(name).or_default().push(ended),
                Err(unkept) => settling.tell(lease, unkept),
            },
            (LeaseText::Tried(of), Some(name)) => {
                tried.entry((of.id, name)).or_default().push(EndedTry { lease: of, verdict: ended.tried(at)? });
            }
        }
    }
    settling.processed(processed).await?;
    settling.jobs(jobs).await?;
    settling.tried(tried).await?;
    let jobs = leases.iter().filter_map(|lease| settling.told.remove(lease)).collect();
    Ok(Json(Answer { jobs }))
}

/// Settlements under way.
struct Settling<'a> {
    app: &'a App,
    caller: &'a Caller,
    worker: RemoteWorker,
    runs: Vec<Runs>,
    /// The jobs that the leases hold, if nothing was waited for since they were looked at.
    held: Option<Vec<LeasedJob>>,
    told: HashMap<LeaseText, Settled>,
}

impl Settling<'_> {
    fn tell(&mut self, lease: LeaseText, answer: BroughtBack) {
        self.told.insert(lease, settled(lease, answer));
    }

    async fn processed(&mut self, leases: Vec<Lease>) -> Result<(), ApiError> {
        if leases.is_empty() {
            return Ok(());
        }
        let held = self.worker.note_processed(leases.clone()).await?;
        let answer = |held: bool| if held { BroughtBack::Settled } else { BroughtBack::Stale };
        leases.into_iter().zip(held).for_each(|(lease, held)| self.tell(LeaseText::Job(lease), answer(held)));
        Ok(())
    }

    async fn jobs(&mut self, jobs: BTreeMap<&PipelineName, Vec<EndedJob>>) -> Result<(), ApiError> {
        for (name, ended) in jobs {
            let brought: Vec<_> = ended.iter().map(|ended| LeaseText::Job(ended.lease)).collect();
            let pipeline = runs::pipeline(self.app, &self.runs, name)?;
            let answers = match self.held.take() {
                Some(held) => self.worker.settle_held(&pipeline, ended, held).await?,
                None => self.worker.settle(&pipeline, ended).await?,
            };
            brought.into_iter().zip(answers).for_each(|(lease, answer)| self.tell(lease, answer));
        }
        Ok(())
    }

    async fn tried(&mut self, tried: BTreeMap<(TryId, &PipelineName), Vec<EndedTry>>) -> Result<(), ApiError> {
        for ((id, name), ended) in tried {
            let brought: Vec<_> = ended.iter().map(|ended| LeaseText::Tried(ended.lease)).collect();
            let answers = self.worker.settle_tried(id, &runs::pipeline(self.app, &self.runs, name)?, ended).await?;
            let answer = |held: bool| if held { BroughtBack::Settled } else { BroughtBack::Stale };
            brought.into_iter().zip(answers).for_each(|(lease, held)| self.tell(lease, answer(held)));
        }
        Ok(())
    }

    /// A job as it is brought back, unless what is to be kept of it is not there.
    async fn brought(&self, ended: Ended, at: usize) -> Result<Result<EndedJob, BroughtBack>, ApiError> {
        let wrong = |field: &str, why: &str| wrong_at(at, field, why);
        ended.check(&wrong)?;
        let Ended {
            lease, verdict, result, log, written, failure, payload, items, sample, enqueue, duration_ms, ..
        } = ended;
        let LeaseText::Job(lease) = lease.0 else { return Err(wrong("lease", "it is of a letter in a try")) };
        let outcome = match (verdict, failure) {
            (Verdict::Unknown, _) => return Err(wrong("verdict", "only of a letter in a try it may not be known")),
            (Verdict::Failed, Some(report)) => Outcome::Failed(report),
            (Verdict::Crashed, Some(report)) => Outcome::Crashed(report),
            (Verdict::Done, _) => Outcome::Done,
            _ => Outcome::Returned,
        };
        let payload = match payload {
            None => None,
            Some(payload) => match payload.brought(self.app, self.caller, &|why| wrong("payload", why)).await? {
                Some(payload) => Some(payload),
                None => return Ok(Err(BroughtBack::Unkept("its payload was not uploaded: send it first".to_owned()))),
            },
        };
        let result = result.or_else(|| counted(items, sample));
        let duration = duration_ms.map(Duration::from_millis);
        Ok(Ok(EndedJob { lease, outcome, result, log, is_written: written, handed_on: enqueue, payload, duration }))
    }
}

/// What came out of a job that tells how many items it had, and maybe one of them.
fn counted(items: Option<u64>, sample: Option<Value>) -> Option<Value> {
    match (items, sample) {
        (None | Some(0), None) => None,
        (items, sample) => Some(json!({ "items": items.unwrap_or(1), "sample": sample })),
    }
}

fn wrong_at(at: usize, field: &str, why: &str) -> ApiError {
    ApiError::invalid(format!("jobs[{at}].{field}"), why)
}

fn settled(lease: LeaseText, answer: BroughtBack) -> Settled {
    let died = matches!(answer, BroughtBack::NotDone { dies: true, .. });
    let (result, why) = match answer {
        BroughtBack::Settled => ("ok", None),
        BroughtBack::NotDone { why, .. } => ("ok", Some(why)),
        BroughtBack::Stale => ("lost", None),
        BroughtBack::Unkept(why) => ("unkept", Some(why)),
    };
    Settled { lease, result, why, died }
}

impl Ended {
    /// Refuses what does not go together.
    fn check(&self, wrong: &dyn Fn(&str, &str) -> ApiError) -> Result<(), ApiError> {
        let failed = matches!(self.verdict, Verdict::Failed | Verdict::Crashed);
        if failed && self.failure.is_none() {
            return Err(wrong("failure", "say what went wrong"));
        }
        if !failed && self.verdict != Verdict::Unknown && self.failure.is_some() {
            return Err(wrong("failure", "only what failed has a failure"));
        }
        if self.commit == Some(false) && self.verdict != Verdict::Done {
            return Err(wrong("commit", "only what is done may be not durable yet"));
        }
        let came_out = self.result.is_some() || self.items.is_some() || self.sample.is_some();
        if self.verdict != Verdict::Done && (came_out || !self.enqueue.is_empty() || self.follow.is_some()) {
            return Err(wrong("result", "only what is done has a result, or hands on"));
        }
        Ok(())
    }

    /// What a letter came to in a try. What it brings is not kept: nothing is settled.
    fn tried(self, at: usize) -> Result<TryVerdict, ApiError> {
        self.check(&|field, why| wrong_at(at, field, why))?;
        let Self { verdict, result, failure, items, sample, follow, enqueue, .. } = self;
        Ok(match (verdict, failure) {
            (Verdict::Done, _) => {
                TryVerdict::Done { result: result.or_else(|| counted(items, sample)), follow, enqueue }
            }
            (Verdict::Returned, _) => TryVerdict::Returned,
            (Verdict::Unknown, failure) => {
                let why = failure.map(|failure| failure.message).filter(|why| !why.is_empty());
                TryVerdict::Unknown(why.unwrap_or_else(|| "it cannot be told from what is saved".to_owned()))
            }
            (Verdict::Failed | Verdict::Crashed, failure) => TryVerdict::Failed(Box::new(failure.unwrap_or_default())),
        })
    }
}
