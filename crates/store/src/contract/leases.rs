//! Leases: giving jobs to workers and taking their settlements, fenced by job and token.

use std::collections::BTreeMap;

use async_trait::async_trait;
use redrive_core::breakers::{BreakerChange, BreakerRow, Gate, Gates};
use redrive_core::crashes::LostLease;
use redrive_core::definitions::DefinitionVersion;
use redrive_core::ids::{LeaseToken, PipelineName, ReplayId, WorkerId};
use redrive_core::jobs::{Lease, LeasedJob};
use redrive_core::pipelines::Pause;
use redrive_core::settlements::Settlement;
use redrive_core::state::JobState;
use redrive_core::time::Timestamp;
use redrive_core::workers::{LastBeat, Runs};
use serde_json::Value;

use super::replays::ReplayView;
use crate::error::Result;

/// Leases, from the first to the settlement.
#[async_trait]
pub trait LeaseStore {
    /// Leases due jobs, oldest due first. Those of a target with a gate are leased as probes, as far as it lets them, and else
    /// held, untouched. Nothing is leased, and the gates are answered, if they are no longer those that were seen. A token that
    /// was used before is answered with what it has. Nothing of a pipeline that is paused is leased.
    async fn lease(&self, params: LeaseJobs) -> Result<LeasedJobs>;

    /// Notes that a worker begins to run jobs inside its own process, so that they are suspects if it dies.
    async fn start(&self, params: StartJobs) -> Result<()>;

    /// Notes how far the attempt under way got, for whoever runs the job next; says whether the lease still holds.
    async fn note_progress(&self, params: NoteProgress) -> Result<bool>;

    /// Settles jobs, answered in the order asked. A settlement whose lease is stale moves nothing and is kept; one whose
    /// payload is not registered is refused, by itself. One that was applied before is answered so again, and has no second effect.
    async fn settle(&self, params: SettleJobs) -> Result<SettledJobs>;

    /// The jobs that these leases hold, in no order; stale leases hold none. For who was handed a lease and nothing else.
    async fn leased(&self, leases: Vec<Lease>) -> Result<Vec<LeasedJob>>;

    /// Claims jobs for a process that is about to write their results to a file. Returns the leases that hold, or `None` if another
    /// process has a claim on one of them; nothing is claimed then. A claim ends with its lease or when its time is over.
    async fn claim_results(&self, params: ClaimResults) -> Result<Option<Vec<Lease>>>;

    /// Where the jobs of these leases were brought by who settled them with the lease, in the order asked; nothing where that was
    /// not done, or where something else has become of the job since. For who brings back a lease that no longer holds.
    async fn settled(&self, leases: Vec<Lease>) -> Result<Vec<Option<JobState>>>;

    /// All that has to be known before jobs are leased for a worker that lives elsewhere, at one moment: it is asked with every such
    /// request.
    async fn outlook(&self, params: AskOutlook) -> Result<Outlook>;

    /// Leases that ran out, or whose worker is known to be gone or has been silent for too long. They stay as they are until they are settled.
    async fn lost_leases(&self, params: FindLostLeases) -> Result<Vec<LostLease>>;
}

/// Asks for jobs to work on.
#[derive(Clone, Debug)]
pub struct LeaseJobs {
    /// The pipeline.
    pub pipeline: PipelineName,
    /// Which of its jobs.
    pub lane: Lane,
    /// The worker that asks.
    pub worker: WorkerId,
    /// The version of the pipeline's definition that it has: a replay that is pinned to another gives it nothing.
    pub definition: Option<DefinitionVersion>,
    /// The token the leases will have.
    pub token: LeaseToken,
    /// Only some of those that come first.
    pub only: Option<Only>,
    /// At most so many.
    pub limit: u32,
    /// When the leases run out.
    pub until: Timestamp,
    /// The targets whose breaker is not closed. Their due jobs are held, in a lane beside this one.
    pub gates: Vec<Gate>,
    /// The version of the gates that these were made from; nothing if none were seen yet.
    pub gates_seen: Option<u64>,
    /// Targets without a gate whose held jobs are leased first.
    pub freed: Vec<String>,
    /// Whether the proxies through which jobs failed before are told: a pipeline with several of them asks for it.
    pub with_tried: bool,
    /// The time.
    pub now: Timestamp,
}

/// Which jobs of a pipeline.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Lane {
    /// Those of its queue.
    #[default]
    Queue,
    /// The letters that a replay sent.
    Replay(ReplayId),
}

/// Which of the jobs that come first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Only {
    /// Those of a group of the system that handed them over.
    Group(String),
    /// Those of the freed targets that are held, and were accepted by then.
    HeldSince(Timestamp),
}

/// What a worker got.
#[derive(Clone, Debug, Default)]
pub struct LeasedJobs {
    /// The jobs.
    pub jobs: Vec<LeasedJob>,
    /// When the next job of the lane is due, if any waits that is not held; may be in the past. Not told to who got all that
    /// was asked for.
    pub next_due: Option<Timestamp>,
    /// How many jobs of each target are held beside the lane; told to who came with gates or freed targets, or has not seen the
    /// gates as they are.
    pub held: Option<BTreeMap<String, u64>>,
    /// The gates as they are, if they are not those that were seen. Nothing was leased then.
    pub gates: Option<Gates>,
    /// The pause of the pipeline, if somebody paused it. Nothing was leased then.
    pub paused: Option<Pause>,
}

/// Asks what is known before jobs are leased.
#[derive(Clone, Debug)]
pub struct AskOutlook {
    /// The worker that they are for.
    pub worker: WorkerId,
    /// The pipelines from which they come.
    pub pipelines: Vec<PipelineName>,
    /// At most so many open replays are told, the newest first.
    pub replays_max: u32,
}

/// What is known before jobs are leased.
#[derive(Clone, Debug, Default)]
pub struct Outlook {
    /// The worker as it is on the list, if it is.
    pub listed: Option<Listed>,
    /// Whether it has a suspect, which runs alone.
    pub runs_alone: bool,
    /// The replays that are open.
    pub replays: Vec<ReplayView>,
    /// Jobs of the pipelines that have not come to their end.
    pub open: u64,
    /// Whether one of the pipelines is paused.
    pub paused: bool,
}

/// A worker on the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Its last heartbeat.
    pub seen_at: Timestamp,
    /// What it runs.
    pub runs: Vec<Runs>,
}

/// Notes that jobs begin to run.
#[derive(Clone, Debug)]
pub struct StartJobs {
    /// Their leases; stale ones are passed over.
    pub leases: Vec<Lease>,
    /// Whether each has a process of its own, so that it is no suspect if its worker dies. Also of those that ended inside it, until they
    /// are settled.
    pub own_process: bool,
}

/// Notes how far an attempt got.
#[derive(Clone, Debug)]
pub struct NoteProgress {
    /// Whose attempt.
    pub lease: Lease,
    /// How far; nothing to begin anew.
    pub progress: Option<Value>,
}

/// Asks for jobs whose results the caller alone writes.
#[derive(Clone, Debug)]
pub struct ClaimResults {
    /// Their leases; stale ones are passed over.
    pub leases: Vec<Lease>,
    /// The end of the claim that the caller has and renews, if it has one.
    pub renewed: Option<Timestamp>,
    /// When the claim ends; a time that is over gives it up.
    pub until: Timestamp,
    /// The time.
    pub now: Timestamp,
}

impl ClaimResults {
    /// Returns whether a job that is claimed until then is the caller's to claim.
    pub(crate) fn is_free(&self, claimed_until: Timestamp) -> bool {
        claimed_until <= self.now || Some(claimed_until) == self.renewed
    }
}

/// Asks for jobs to be settled.
#[derive(Clone, Debug)]
pub struct SettleJobs {
    /// What is to be written.
    pub settlements: Vec<Settlement>,
    /// The worker that settles.
    pub worker: WorkerId,
    /// What becomes of the breakers of their targets. A breaker that is another by now stops no settlement: what was said of its
    /// target is kept, to be folded in by who changes it next.
    pub breakers: Vec<BreakerChange>,
    /// Whether it is the holder of the leases who settles: what comes too late is kept as evidence, and what is sent again is known.
    /// A reaper that was not the first has no evidence to give, and what it settles was not settled by the holder.
    pub keep_late: bool,
    /// The time.
    pub now: Timestamp,
}

/// What became of settlements.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SettledJobs {
    /// Each, in the order asked.
    pub settled: Vec<Settled>,
    /// The breakers that there are of their targets, as they are now.
    pub breakers: Vec<BreakerRow>,
}

/// What became of a settlement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settled {
    /// The job moved.
    Applied,
    /// The lease was stale: nothing moved.
    Stale,
    /// Its payload is not registered, or no longer: nothing moved, and the lease still holds.
    PayloadGone,
}

/// Asks for leases that were lost.
#[derive(Clone, Debug)]
pub struct FindLostLeases {
    /// Only of these pipelines.
    pub pipelines: Vec<PipelineName>,
    /// Workers that were silent for too long after these heartbeats: theirs are lost, unless they sent another one.
    pub silent: Vec<LastBeat>,
    /// At most so many.
    pub limit: u32,
    /// The time.
    pub now: Timestamp,
}
