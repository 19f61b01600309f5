//! Working here on jobs that a server has: leases come over HTTP, handlers run in this process, renewing the leases is the heartbeat, and
//! what came of each is settled there. While the server is away what runs goes on, and is settled when it is back.
//!
//! - `lane`: the jobs of one pipeline; `idle`: when nothing of them is left; `lease`: jobs as they come; `settle`: what came of them; `evidence`: what they worked on
//! - `reload`: a worker makes way for one with newer pipelines
//! - `tries`: the same with letters that are only tried: nothing is written, nothing is settled
//!
//! A lease that is lost ends its job here: somebody else has it. A worker that is told to stop returns what it has not begun.

mod evidence;
mod idle;
mod lane;
mod lease;
mod reload;
mod settle;
mod tries;

use std::collections::{BTreeSet, HashMap};
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use redrive::chance::{Chance, SystemChance};
use redrive::clock::{Clock, SystemClock};
use redrive::good::GoodPages;
use redrive::handler::NotesProgress;
use redrive::worker::reload::Source;
use redrive::worker::{Running, Until, WorkDoneSoFar, Worker};
use redrive::{CancellationToken, Error, Pipeline};
use redrive_core::hand_on::feeders;
use redrive_core::ids::{PipelineName, ReplayId, TryId, WorkerId};
use redrive_core::jobs::Lease;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use self::lane::Lane;
use self::reload::Slots;
use crate::desk::Desk;
use crate::replays::runs;
use crate::server::Server;

/// The shortest and the longest lease, in seconds.
const TTL_SECS: (u64, u64) = (5, 3_600);

/// How long a server that does not answer is waited for by who only says that it leaves.
const LAST_WORD: Duration = Duration::from_secs(2);

/// Somebody who works: over the store of this process, or for a server.
pub enum AnyWorker {
    /// The engine's own.
    Here(Worker),
    /// For a server.
    There(RemoteWorker),
}

/// Works on jobs that a server has.
pub struct RemoteWorker {
    shared: Arc<Shared>,
    pipelines: Vec<Pipeline>,
    source: Option<Box<dyn Source>>,
}

/// What a worker does alone, if it does something alone.
#[derive(Clone, Copy)]
enum Operation {
    Replay(ReplayId),
    Try(TryId),
}

impl Serialize for Operation {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Replay(id) => id.serialize(serializer),
            Self::Try(id) => id.serialize(serializer),
        }
    }
}

/// What the lanes of a worker share.
struct Shared {
    server: Server,
    id: WorkerId,
    host: String,
    only: Option<Operation>,
    /// What it runs for its pipelines, as the server is told.
    runs: Vec<Value>,
    /// Whether letters of all replays are worked on, besides the queues.
    replays: bool,
    max_wait: Option<Duration>,
    /// Set if jobs wait without end for a target that stays away.
    waits_forever: bool,
    /// Cancelled when another worker takes its place: it begins nothing more.
    retired: CancellationToken,
    hurry: CancellationToken,
    running: Running,
    /// Pages that worked, as far as this worker brings them.
    good: GoodPages,
    slots: Slots,
    done: WorkDoneSoFar,
    /// Pipelines of which nothing more is to be expected here: they cannot work, or wait in vain.
    given_up: Mutex<BTreeSet<PipelineName>>,
    /// The leases that it has, and what ends the job of each.
    held: Mutex<HashMap<Lease, CancellationToken>>,
}

impl Desk {
    /// A worker for pipelines, to be run.
    pub fn worker(&self, pipelines: Vec<Pipeline>) -> AnyWorker {
        match self {
            Self::Here(redrive) => AnyWorker::Here(redrive.worker(pipelines)),
            Self::There(server) => AnyWorker::There(RemoteWorker::new(server.clone(), pipelines)),
        }
    }
}

impl AnyWorker {
    /// See [`Worker::only_replay`].
    pub fn only_replay(self, id: ReplayId) -> Self {
        match self {
            Self::Here(worker) => Self::Here(worker.only_replay(id)),
            Self::There(worker) => Self::There(worker.with(|shared| shared.only = Some(Operation::Replay(id)))),
        }
    }

    /// See [`Worker::with_replays`].
    pub fn with_replays(self) -> Self {
        match self {
            Self::Here(worker) => Self::Here(worker.with_replays()),
            Self::There(worker) => Self::There(worker.with(|shared| shared.replays = true)),
        }
    }

    /// See [`Worker::following`].
    pub fn following(self, source: impl Source + 'static) -> Self {
        match self {
            Self::Here(worker) => Self::Here(worker.following(source)),
            Self::There(worker) => Self::There(RemoteWorker { source: Some(Box::new(source)), ..worker }),
        }
    }

    /// See [`Worker::max_wait`].
    pub fn max_wait(self, max_wait: Duration) -> Self {
        match self {
            Self::Here(worker) => Self::Here(worker.max_wait(max_wait)),
            Self::There(worker) => Self::There(worker.with(|shared| shared.max_wait = Some(max_wait))),
        }
    }

    /// See [`Worker::wait_forever`].
    pub fn wait_forever(self) -> Self {
        match self {
            Self::Here(worker) => Self::Here(worker.wait_forever()),
            Self::There(worker) => Self::There(worker.wait_forever()),
        }
    }

    /// See [`Worker::hurry`].
    pub fn hurry(&self) -> CancellationToken {
        match self {
            Self::Here(worker) => worker.hurry(),
            Self::There(worker) => worker.shared.hurry.clone(),
        }
    }

    /// See [`Worker::running`].
    pub fn running(&self) -> Running {
        match self {
            Self::Here(worker) => worker.running(),
            Self::There(worker) => worker.shared.running.clone(),
        }
    }

    /// See [`Worker::work_done`].
    pub fn work_done(&self) -> WorkDoneSoFar {
        match self {
            Self::Here(worker) => worker.work_done(),
            Self::There(worker) => worker.shared.done.clone(),
        }
    }

    /// See [`Worker::run`].
    pub async fn run(self, until: Until, stop: CancellationToken) -> Result<(), Error> {
        match self {
            Self::Here(worker) => worker.run(until, stop).await,
            Self::There(worker) => worker.run(until, stop).await,
        }
    }
}

impl RemoteWorker {
    fn new(server: Server, pipelines: Vec<Pipeline>) -> Self {
        let shared = Shared {
            runs: runs(&pipelines, false),
            server,
            id: WorkerId::new(SystemClock.now(), SystemChance.bits()),
            host: redrive::worker::host(),
            only: None,
            replays: false,
            max_wait: None,
            waits_forever: false,
            retired: CancellationToken::new(),
            hurry: CancellationToken::new(),
            running: Running::default(),
            good: GoodPages::default(),
            slots: Slots::default(),
            done: WorkDoneSoFar::default(),
            given_up: Mutex::default(),
            held: Mutex::default(),
        };
        Self { shared: Arc::new(shared), pipelines, source: None }
    }

    /// The worker that takes the place of another, with pipelines as they are now.
    fn after(former: &Shared, pipelines: Vec<Pipeline>) -> Self {
        let worker = Self::new(former.server.clone(), pipelines).with(|shared| {
            (shared.only, shared.replays, shared.max_wait) = (former.only, former.replays, former.max_wait);
            (shared.hurry, shared.running) = (former.hurry.clone(), former.running.clone());
            (shared.slots, shared.done) = (former.slots.clone(), former.done.clone());
        });
        if former.waits_forever { worker.wait_forever() } else { worker }
    }

    fn wait_forever(mut self) -> Self {
        self.pipelines = self.pipelines.into_iter().map(Pipeline::waiting_forever).collect();
        let runs = runs(&self.pipelines, false);
        self.with(|shared| (shared.runs, shared.waits_forever) = (runs, true))
    }

    fn with(mut self, change: impl FnOnce(&mut Shared)) -> Self {
        if let Some(shared) = Arc::get_mut(&mut self.shared) {
            change(shared);
        }
        self
    }

    async fn run(mut self, until: Until, stop: CancellationToken) -> Result<(), Error> {
        match self.source.take() {
            Some(source) => reload::run(self, source, until, stop).await,
            None => self.run_as_it_is(until, stop).await,
        }
    }

    async fn run_as_it_is(self, until: Until, stop: CancellationToken) -> Result<(), Error> {
        let Self { shared, pipelines, .. } = self;
        let _working = shared.server.keep_waiting();
        let ttl = pipelines.iter().map(|pipeline| pipeline.policy().lease).min().unwrap_or_default();
        let ttl = Duration::from_secs(ttl.as_secs().clamp(TTL_SECS.0, TTL_SECS.1));
        let mut upkeep = JoinSet::new();
        upkeep.spawn(renew(Arc::clone(&shared), ttl));
        let ending = stop.child_token();
        if shared.only.is_none() && matches!(until, Until::Stopped) {
            upkeep.spawn(tries::take_part(shared.server.clone(), pipelines.clone(), ending.clone()));
        }
        let (retired, making_way) = (shared.retired.clone(), ending.clone());
        upkeep.spawn(async move {
            retired.cancelled().await;
            making_way.cancel();
        });
        let (hurried, stopped) = (Arc::clone(&shared), stop.clone());
        upkeep.spawn(async move {
            stopped.cancelled().await;
            tokio::time::sleep(lane::GRACE).await;
            hurried.hurry.cancel();
        });
        let mut lanes = JoinSet::new();
        let hands_on = |pipeline: &Pipeline| (pipeline.name().clone(), pipeline.hands_on_to().cloned().collect());
        let handing_on: Vec<_> = pipelines.iter().map(hands_on).collect();
        for pipeline in pipelines {
            let feeders = feeders(pipeline.name(), &handing_on).into_iter().cloned().collect();
            let lane = Lane::new(Arc::clone(&shared), pipeline, feeders, ttl);
            lanes.spawn(lane.run(until.clone(), (ending.clone(), stop.clone())));
        }
        let mut ended = Ok(());
        let mut given_up = pin!(shared.given_up_on());
        loop {
            let lane = tokio::select! {
                lane = lanes.join_next() => lane,
                () = &mut given_up => {
                    lanes.shutdown().await;
                    let left = shared.held().len();
                    tracing::warn!(left, "the server does not answer: these tasks are not settled, they run again");
                    break;
                }
            };
            let Some(lane) = lane else { break };
            let lane = lane.unwrap_or_else(|panic| Err(Error::Internal(format!("a pipeline's work ended: {panic}"))));
            // A pipeline that cannot work, or waits in vain, keeps others from nothing.
            if !matches!(lane, Ok(()) | Err(Error::Held { .. } | Error::WaitedInVain(_))) {
                ending.cancel();
            }
            ended = ended.and(lane);
        }
        upkeep.shutdown().await;
        shared.leave().await;
        ended
    }
}

impl Shared {
    /// A lease as the server knows it.
    fn text_of(&self, lease: &Lease) -> String {
        match self.only {
            Some(Operation::Try(id)) => format!("{}.{}.{id}", lease.job, lease.token),
            _ => lease.to_string(),
        }
    }

    /// Returns when a worker that hurries need not wait for its server any longer.
    async fn given_up_on(&self) {
        self.hurry.cancelled().await;
        tokio::time::sleep(settle::LAST_MOMENT * 2).await;
    }

    /// Takes the worker off the server's list: it has nothing any more. One that does not answer forgets it by itself.
    async fn leave(&self) {
        if !self.held().is_empty() {
            return;
        }
        let left = self.server.delete(&["workers", &self.id.to_string()]).done();
        match tokio::time::timeout(LAST_WORD, left).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::debug!(%error, "the server was not told that a worker left"),
            Err(_) => tracing::debug!("the server was not told that a worker left: it does not answer"),
        }
    }

    fn is_try(&self) -> bool {
        matches!(self.only, Some(Operation::Try(_)))
    }

    fn given_up(&self) -> MutexGuard<'_, BTreeSet<PipelineName>> {
        self.given_up.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn held(&self) -> MutexGuard<'_, HashMap<Lease, CancellationToken>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Deserialize)]
struct Renewed {
    /// In the order in which they were sent.
    leases: Vec<RenewedLease>,
}

#[derive(Deserialize)]
struct RenewedLease {
    result: String,
}

/// Renews the leases again and again; the jobs of those that are lost end.
async fn renew(shared: Arc<Shared>, ttl: Duration) {
    loop {
        tokio::time::sleep(ttl / 3).await;
        let leases: Vec<Lease> = shared.held().keys().copied().collect();
        for some in leases.chunks(1_000) {
            let texts: Vec<_> = some.iter().map(|lease| shared.text_of(lease)).collect();
            let asked = json!({ "worker": shared.id, "leases": texts, "ttl": ttl.as_secs() });
            let ask = shared.server.post(&["leases", "renew"]).body(&asked);
            let Ok(ask) = ask else { continue };
            match ask.read::<Renewed>().await {
                Ok(renewed) => {
                    let lost = some.iter().zip(renewed.leases).filter(|(_, renewed)| renewed.result == "lost");
                    let held = shared.held();
                    lost.filter_map(|(lease, _)| held.get(lease)).for_each(CancellationToken::cancel);
                }
                Err(error) => tracing::warn!(%error, "leases were not renewed"),
            }
        }
    }
}

#[derive(Deserialize)]
struct Noted {
    result: String,
}

#[async_trait]
impl NotesProgress for Shared {
    async fn note(&self, lease: Lease, progress: Option<Value>) -> Result<bool, String> {
        // How far a letter gets in a try is noted nowhere.
        if self.is_try() {
            return Ok(true);
        }
        let asked = json!({ "worker": self.id, "lease": lease.to_string(), "progress": progress });
        let ask = self.server.post(&["leases", "progress"]).body(&asked).map_err(|error| error.to_string())?;
        Ok(ask.read::<Noted>().await.map_err(|error| error.to_string())?.result == "ok")
    }
}
