//! What is wanted of `POST /leases`, and finding it: in the queues, in the lanes of replays, or among the letters of a try.

use std::collections::HashSet;
use std::time::Duration;

use redrive::Pipeline;
use redrive::contract::{Lane, LeasedJobs, OpenInTry, ReplayView};
use redrive::leases::RemoteWorker;
use redrive::replays::LetterInTry;
use redrive_core::ids::{PipelineName, ReplayId, TryId};
use redrive_core::jobs::LeasedJob;
use redrive_core::replays::ReplayState;
use redrive_core::time::Timestamp;
use redrive_core::workers::TakesReplays;

use super::lease::Asked;
use crate::access::Caller;
use crate::app::App;
use crate::error::ApiError;
use crate::runs::{self, Runs};

/// The most jobs of one lease.
const JOBS_MAX: u32 = 1_000;

/// The most pipelines of one lease.
const PIPELINES_MAX: usize = 100;

/// The longest that is waited for jobs, in seconds.
const WAIT_SECS_MAX: u64 = 30;

/// How long a lease lasts, in seconds: unless something else is asked for, at least and at most.
const TTL_SECS: (u64, u64, u64) = (60, 5, 3_600);

/// The most open letters of a try that are counted.
const OPEN_MAX: u32 = 1_000;

/// Open replays that are looked at.
const REPLAYS_MAX: u32 = 100;

/// The operation whose letters are wanted.
#[derive(Clone, Copy)]
enum Operation {
    Replay(ReplayId),
    Try(TryId),
}

/// What is wanted, checked.
pub struct Wanted {
    op: Option<Operation>,
    pipelines: Vec<PipelineName>,
    runs: Vec<Runs>,
    queues_only: bool,
    group: Option<String>,
    max: u32,
    own_process: bool,
    pub wait: Duration,
    ttl: Duration,
}

/// What was found.
pub struct Found {
    pub jobs: Vec<LeasedJob>,
    pub tried: Vec<LetterInTry>,
    pub until: Timestamp,
    pub next_due: Option<Timestamp>,
    /// Whether there is something that waits until what its worker has already has ended.
    pub is_held_back: bool,
    /// How much is open, and whether it rests, as it was seen before; not told of operations.
    pub standing: Option<(u64, bool)>,
}

impl Found {
    pub fn is_empty(&self) -> bool {
        self.jobs.is_empty() && self.tried.is_empty()
    }
}

impl Wanted {
    pub async fn of(app: &App, caller: &Caller, mut asked: Asked) -> Result<Self, ApiError> {
        let within = |field: &'static str, value: u64, least: u64, most: u64| match (least..=most).contains(&value) {
            true => Ok(value),
            false => Err(ApiError::invalid(field, format!("{field} is {value}: expected {least} to {most}"))),
        };
        if asked.pipelines.is_empty() {
            return Err(ApiError::invalid("pipelines", "name at least one pipeline"));
        }
        // Each is looked at, and with it its replays.
        let mut seen = HashSet::new();
        asked.pipelines.retain(|name| seen.insert(name.clone()));
        if asked.pipelines.len() > PIPELINES_MAX {
            let why = format!("{} pipelines at once: at most {PIPELINES_MAX}", asked.pipelines.len());
            return Err(ApiError::too_large(why).at("pipelines"));
        }
        runs::check(&asked.runs)?;
        if asked.queues_only && asked.op.is_some() {
            return Err(ApiError::invalid("queues_only", "an operation has no queue"));
        }
        let (usual, least, most) = TTL_SECS;
        let max = within("max", asked.max.unwrap_or(1).into(), 1, JOBS_MAX.into())?;
        let wait = Duration::from_secs(within("wait", asked.wait.unwrap_or(0), 0, WAIT_SECS_MAX)?);
        let ttl = Duration::from_secs(within("ttl", asked.ttl.unwrap_or(usual), least, most)?);
        let op = match &asked.op {
            Some(id) => Some(operation(app, caller, id.0).await?),
            None => None,
        };
        Ok(Self {
            op,
            pipelines: asked.pipelines,
            runs: asked.runs,
            queues_only: asked.queues_only,
            group: asked.group,
            max: u32::try_from(max).unwrap_or(JOBS_MAX),
            own_process: asked.own_process,
            wait,
            ttl,
        })
    }

    /// The operation, by its id.
    pub fn op_id(&self) -> Option<ReplayId> {
        self.op.map(|op| match op {
            Operation::Replay(id) => id,
            Operation::Try(id) => ReplayId::from_bytes(*id.as_bytes()),
        })
    }

    /// Leases what there is, lane by lane, until it is enough.
    pub async fn lease(&self, app: &App, worker: &RemoteWorker) -> Result<Found, ApiError> {
        let until = app.redrive().now() + self.ttl;
        let mut found =
            Found { jobs: Vec::new(), tried: Vec::new(), until, next_due: None, is_held_back: false, standing: None };
        if let Some(Operation::Try(id)) = self.op {
            let whose = (self.pipelines.as_slice(), self.group.as_deref());
            found.tried = worker.lease_tried(id, whose, self.max, self.ttl).await?;
            return Ok(found);
        }
        let pipelines = runs::pipelines(app, &self.runs, &self.pipelines)?;
        let replays = match self.op_id() {
            _ if self.queues_only => (TakesReplays::None, 0),
            Some(replay) => (TakesReplays::One { replay }, REPLAYS_MAX),
            None => (TakesReplays::All, REPLAYS_MAX),
        };
        let mut outlook = worker.look(&pipelines, replays).await?;
        found.standing = self.op.is_none().then_some((outlook.open, outlook.paused));
        outlook.replays.retain(|replay| self.op_id().is_none_or(|id| id == replay.id));
        if !self.own_process && worker.is_alone(&outlook).await? {
            found.is_held_back = true;
            return Ok(found);
        }
        self.lease_lanes(app, worker, (&pipelines, &outlook.replays), &mut found).await?;
        if self.own_process {
            return Ok(found);
        }
        let leased = std::mem::take(&mut found.jobs);
        let many = leased.len();
        found.jobs = worker.together(&pipelines, leased).await?;
        if many > 0 && found.jobs.is_empty() {
            (found.is_held_back, found.next_due) = (true, None);
        }
        Ok(found)
    }

    async fn lease_lanes(
        &self,
        app: &App,
        worker: &RemoteWorker,
        (pipelines, replays): (&[Pipeline], &[ReplayView]),
        found: &mut Found,
    ) -> Result<(), ApiError> {
        if !self.runs.is_empty() {
            // Of versions that nobody has here nobody sends letters, either.
            for replay in replays {
                let again = app.redrive().advance_replay(replay.clone(), pipelines).await?;
                found.next_due = [found.next_due, again].into_iter().flatten().min();
            }
        }
        for pipeline in pipelines {
            let name = pipeline.name();
            let queue = self.op.is_none().then_some(Lane::Queue);
            let of_replays = replays.iter().filter(|replay| replay.pipelines.contains(name));
            for lane in queue.into_iter().chain(of_replays.map(|replay| Lane::Replay(replay.id))) {
                let room = self.max - u32::try_from(found.jobs.len()).unwrap_or(self.max).min(self.max);
                if room == 0 {
                    return Ok(());
                }
                let LeasedJobs { jobs, next_due, .. } =
                    worker.lease(pipeline, (lane, self.group.as_deref()), room, self.ttl).await?;
                found.jobs.extend(jobs);
                found.next_due = [found.next_due, next_due].into_iter().flatten().min();
            }
        }
        Ok(())
    }

    /// Whether an operation is asked for, and nothing of it is open any more.
    pub async fn is_over(&self, app: &App) -> Result<bool, ApiError> {
        Ok(self.op.is_some() && self.standing(app).await?.0 == 0)
    }

    /// How much is open, and whether it rests.
    pub async fn standing(&self, app: &App) -> Result<(u64, bool), ApiError> {
        let names = &self.pipelines;
        let store = app.redrive().store();
        if let Some(Operation::Try(id)) = self.op {
            let open = match app.redrive().end_try_if_over(id).await? {
                true => 0,
                false => self.open_in_try(app, id).await?,
            };
            return Ok((open, false));
        }
        let pauses = store.pauses().await?;
        let paused = names.iter().any(|name| pauses.contains_key(name));
        if let Some(Operation::Replay(id)) = self.op {
            let replay = store.get_replay(id).await?.ok_or_else(|| no_operation(id))?;
            let open = if replay.is_open() { replay.progress.pending + replay.progress.running } else { 0 };
            return Ok((open, paused || replay.state == ReplayState::Paused));
        }
        let ledgers = store.ledgers().await?;
        let open: i64 = names.iter().filter_map(|name| ledgers.get(name)).map(|ledger| ledger.open()).sum();
        Ok((u64::try_from(open).unwrap_or(0), paused))
    }

    /// Letters of a try that are of these pipelines, and of the group, and have no verdict yet.
    async fn open_in_try(&self, app: &App, id: TryId) -> Result<u64, ApiError> {
        let (pipelines, group) = (self.pipelines.clone(), self.group.clone());
        Ok(app.redrive().store().open_in_try(OpenInTry { id, pipelines, group, limit: OPEN_MAX }).await?)
    }
}

/// The operation that an id is of. One of other pipelines than a token's is as unknown as one that there is not.
async fn operation(app: &App, caller: &Caller, id: ReplayId) -> Result<Operation, ApiError> {
    if let Some(replay) = app.redrive().store().get_replay(id).await? {
        let is_seen = caller.covers_any(&replay.pipelines);
        return is_seen.then_some(Operation::Replay(id)).ok_or_else(|| no_operation(id));
    }
    let tried = TryId::from_bytes(*id.as_bytes());
    let found = app.redrive().store().get_try(tried).await?;
    let found = found.filter(|found| caller.covers_any(found.tried_with.keys()));
    found.map(|_| Operation::Try(tried)).ok_or_else(|| no_operation(id))
}

fn no_operation(id: ReplayId) -> ApiError {
    ApiError::missing(format!("no replay and no try {id}")).at("op")
}
