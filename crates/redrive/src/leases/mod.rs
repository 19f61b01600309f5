//! Jobs for workers that live elsewhere and are reached through this process: a server hands them leases, keeps those up while
//! it hears from them, and settles what they bring back by the same rules as this engine's own workers: failures and what came
//! with payloads are masked, by the secrets that their pipeline's handler knows.
//!
//! Nothing is remembered here between two calls: a lease is enough to find its job, so that another process may answer the next
//! call. A worker that is not heard of any more loses its leases when they run out; [`Redrive::take_back`] returns them. Nobody is
//! blamed for that; but a worker whose process is [said to have died](RemoteWorker::died) leaves suspects, which run alone next.

mod alone;
mod claims;
mod late;
mod settling;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use redrive_core::definitions::Definition;
use redrive_core::failures::{FailureReport, Reason};
use redrive_core::hand_on::HandedOn;
use redrive_core::ids::{JobId, LeaseToken, PipelineName, WorkerId};
use redrive_core::jobs::{Lease, LeasedJob};
use redrive_core::payloads::{PayloadHash, Response};
use redrive_core::rules::result_of_failure;
use redrive_core::settlements::Outcome;
use redrive_core::time::Timestamp;
use redrive_core::workers::{Runs, TakesReplays};
use redrive_store::contract::{
    AskOutlook, Beat, Lane, LeaseJobs, LeasedJobs, NoteDefinitions, NoteProgress, Only, Outlook, StartJobs,
};
use serde_json::Value;

use self::settling::Settling;
use crate::config::Setting;
use crate::engine::Redrive;
use crate::error::Error;
use crate::pipeline::Pipeline;
use crate::vault::Capture;
use crate::worker;

/// After how long a worker that asks for jobs is noted to be there: long before it would be forgotten.
const HEARD_AGAIN_AFTER: Duration = Duration::from_secs(60);

/// The most pipelines that a worker is noted to run: of more, those that it asked for last.
const RUNS_MAX: usize = 1_000;

/// A worker that lives elsewhere.
#[derive(Clone)]
pub struct RemoteWorker {
    redrive: Redrive,
    id: WorkerId,
    host: String,
    pid: u32,
    /// How pipelines read what comes over the network, if that is to be gone by.
    setting: Option<Arc<Setting>>,
}

/// A job that came to an end elsewhere.
pub struct EndedJob {
    /// The right to settle it.
    pub lease: Lease,
    /// How it ended.
    pub outcome: Outcome,
    /// What came out of it, if it is done.
    pub result: Option<Value>,
    /// Lines that it printed before its result.
    pub log: Option<String>,
    /// Set if the worker has written the result itself: only the store keeps it then.
    pub is_written: bool,
    /// The jobs that it hands on, if it is done.
    pub handed_on: Vec<HandedOn>,
    /// What it worked on, for the vault, if there is such a thing.
    pub payload: Option<BroughtPayload>,
    /// How long it ran, if it did.
    pub duration: Option<Duration>,
}

impl EndedJob {
    /// One that took too long.
    fn overdue(lease: Lease, deadline: Duration, now: Timestamp) -> Self {
        let report = FailureReport::new(Reason::Timeout, format!("no result after {deadline:?}")).with_code("deadline");
        let (outcome, duration) = (Outcome::Failed(report), Some(now.since(leased_at(&lease))));
        let (result, log, is_written, handed_on) = (None, None, false, Vec::new());
        Self { lease, outcome, result, log, is_written, handed_on, payload: None, duration }
    }
}

/// When a lease began: its token was made then.
fn leased_at(lease: &Lease) -> Timestamp {
    let mut millis = [0; 8];
    millis[2..].copy_from_slice(&lease.token.as_bytes()[..6]);
    Timestamp::from_millis(i64::from_be_bytes(millis))
}

/// A payload that a worker brought.
pub struct BroughtPayload {
    /// Its bytes.
    pub bytes: BroughtBytes,
    /// What came with it.
    pub response: Response,
    /// How long it is said to be, where that is known.
    pub total_bytes: Option<u64>,
}

/// Where the bytes of a payload are that a worker brought.
pub enum BroughtBytes {
    /// Here.
    Here(Box<Capture>),
    /// In the vault: they were uploaded before.
    Uploaded {
        /// Their address.
        hash: PayloadHash,
        /// How many they are.
        size_bytes: u64,
    },
}

/// What became of a job that was brought back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BroughtBack {
    /// It is settled.
    Settled,
    /// It is settled as having failed, though it was brought as done: what it hands on is not taken.
    NotDone {
        /// Why.
        why: String,
        /// Whether it died of that.
        dies: bool,
    },
    /// The lease no longer held: nothing moved.
    Stale,
    /// What is to be kept of it cannot be, for now: nothing moved, and the lease holds.
    Unkept(String),
}

impl Redrive {
    /// A worker that lives elsewhere. Its id is a new one, or that which it had before.
    pub fn remote_worker(&self, id: Option<WorkerId>, host: &str, pid: u32) -> RemoteWorker {
        let id = id.unwrap_or_else(|| WorkerId::new(self.now(), self.chance.bits()));
        RemoteWorker { redrive: self.clone(), id, host: host.to_owned(), pid, setting: None }
    }

    /// Returns the leases of these pipelines that ran out, or whose workers are gone. A process that runs workers of its own
    /// does so by itself.
    pub async fn take_back(&self, pipelines: &[Pipeline]) -> Result<(), Error> {
        worker::take_back(self, pipelines).await
    }
}

impl RemoteWorker {
    pub(crate) const fn redrive(&self) -> &Redrive {
        &self.redrive
    }

    /// The same, over a network: what it hands on goes without what stands under secret names, as these pipelines have it.
    pub fn over_network(self, setting: Arc<Setting>) -> Self {
        Self { setting: Some(setting), ..self }
    }

    /// Its id.
    pub const fn id(&self) -> WorkerId {
        self.id
    }

    /// Puts the worker on the list: before that, what it leases counts as lost. To attach twice changes nothing.
    pub async fn attach(&self, pipelines: &[Pipeline]) -> Result<(), Error> {
        self.beat(pipelines, Vec::new(), self.redrive.now()).await.map(drop)
    }

    /// Takes the worker off the list; leases that it still has are lost.
    pub async fn detach(&self) -> Result<(), Error> {
        Ok(self.redrive.store.detach_worker(self.id).await?)
    }

    /// Looks at what has to be known before it is given jobs of these pipelines, with at most so many open replays, and has it on the
    /// list with what it runs: one of which nothing is heard for long is taken off it, and then its leases would count as lost. Most of
    /// the time it only looks.
    pub async fn look(
        &self,
        pipelines: &[Pipeline],
        (replays, replays_max): (TakesReplays, u32),
    ) -> Result<Outlook, Error> {
        let names = pipelines.iter().map(|pipeline| pipeline.name.clone()).collect();
        let outlook = self.redrive.store.outlook(AskOutlook { worker: self.id, pipelines: names, replays_max }).await?;
        let (now, listed) = (self.redrive.now(), outlook.listed.as_ref());
        let heard = listed.is_some_and(|listed| now.since(listed.seen_at) < HEARD_AGAIN_AFTER);
        let (known, own) = (
            listed.map(|listed| listed.runs.as_slice()).unwrap_or_default(),
            pipelines.iter().map(|own| own.runs(replays)),
        );
        if heard && own.clone().all(|own| known.contains(&own)) {
            return Ok(outlook);
        }
        let others = known.iter().filter(|known| pipelines.iter().all(|pipeline| pipeline.name != known.pipeline));
        let mut runs: Vec<Runs> = others.cloned().collect();
        // Who asks for one name after the other is not remembered to run them all.
        let over = (runs.len() + pipelines.len()).saturating_sub(RUNS_MAX);
        runs.drain(..over.min(runs.len()));
        runs.extend(own);
        let definitions: Vec<_> = pipelines.iter().filter_map(described).collect();
        if !definitions.is_empty() {
            // Before it is on the list: else it would not be looked at again for a while.
            self.redrive.store.note_definitions(NoteDefinitions { definitions, now }).await?;
        }
        self.beat_with(runs, Vec::new(), now).await?;
        Ok(outlook)
    }

    /// Leases jobs of a pipeline for so long, past the breakers: at most `limit`, of its queue or of a replay, and of a group if one
    /// is named. Says also when more may come. The worker has to be on the list: [`look`](Self::look) sees to it.
    pub async fn lease(
        &self,
        pipeline: &Pipeline,
        (lane, group): (Lane, Option<&str>),
        limit: u32,
        ttl: Duration,
    ) -> Result<LeasedJobs, Error> {
        let now = self.redrive.now();
        let params = LeaseJobs {
            pipeline: pipeline.name.clone(),
            lane,
            worker: self.id,
            definition: pipeline.definition().cloned(),
            // It goes over a network: whoever guessed it could settle the jobs.
            token: LeaseToken::new(now, self.redrive.chance.secret_bits()),
            limit,
            until: now + ttl,
            gates: Vec::new(),
            gates_seen: None,
            freed: Vec::new(),
            with_tried: pipeline.policy.proxies.is_choice(),
            only: group.map(|group| Only::Group(group.to_owned())),
            now,
        };
        Ok(self.redrive.lease(params).await?)
    }

    /// Makes letters of some of the jobs of a pipeline's queue that wait for a target that stays away, for who waits for it no longer; none
    /// of pipelines whose jobs wait for ever, or that another worker works on. Says which: there may be more unless there are none.
    pub async fn give_up_waiting(&self, pipeline: &Pipeline) -> Result<Vec<JobId>, Error> {
        if pipeline.policy.breaker.hold_max.is_none() || !self.redrive.is_last_on(&pipeline.name, self.id).await? {
            return Ok(Vec::new());
        }
        let (lane, limits) = ((pipeline, Lane::Queue), (Duration::ZERO, Timestamp::from_millis(0)));
        Ok(self.redrive.give_up_waiting(lane, limits, self.id).await?.letters)
    }

    /// Notes that the worker begins to run jobs. If they share its process, they are suspects when it is said to have [died](Self::died);
    /// those that have a process of their own are not to blame for it: only their own end is.
    pub async fn start(&self, leases: Vec<Lease>, own_process: bool) -> Result<(), Error> {
        Ok(self.redrive.store.start(StartJobs { leases, own_process }).await?)
    }

    /// Extends leases for so long from now, and says which of them still hold: jobs of the others are to be left.
    pub async fn extend(&self, pipelines: &[Pipeline], leases: Vec<Lease>, ttl: Duration) -> Result<Vec<Lease>, Error> {
        self.beat(pipelines, leases, self.redrive.now() + ttl).await
    }

    /// The same for who need not say again what it runs.
    pub async fn renew(&self, leases: Vec<Lease>, ttl: Duration) -> Result<Vec<Lease>, Error> {
        let workers = self.redrive.store.list_workers().await?;
        let runs = workers.into_iter().find(|worker| worker.id == self.id).map(|worker| worker.runs);
        self.beat_with(runs.unwrap_or_default(), leases, self.redrive.now() + ttl).await
    }

    /// Settles jobs of these pipelines that have been leased for longer than an attempt may take as having failed of that: whoever still
    /// runs them is to leave them.
    pub async fn time_out(&self, pipelines: &[Pipeline], leases: &[Lease]) -> Result<(), Error> {
        let now = self.redrive.now();
        let is_over = |lease: &Lease, deadline: Duration| now.since(leased_at(lease)) > deadline;
        let least = pipelines.iter().map(|pipeline| pipeline.policy.deadline).min().unwrap_or(Duration::MAX);
        let old: Vec<Lease> = leases.iter().filter(|lease| is_over(lease, least)).copied().collect();
        let held = if old.is_empty() { Vec::new() } else { self.redrive.store.leased(old).await? };
        for pipeline in pipelines {
            let deadline = pipeline.policy.deadline;
            let over = held.iter().filter(|job| job.pipeline == pipeline.name && is_over(&job.lease, deadline));
            let ended: Vec<_> = over.map(|job| EndedJob::overdue(job.lease, deadline, now)).collect();
            if !ended.is_empty() {
                self.settle(pipeline, ended).await?;
            }
        }
        Ok(())
    }

    /// Notes how far an attempt got, for who runs the job next; says whether the lease still holds.
    pub async fn note_progress(&self, lease: Lease, progress: Option<Value>) -> Result<bool, Error> {
        Ok(self.redrive.store.note_progress(NoteProgress { lease, progress }).await?)
    }

    /// Notes that jobs were processed while what came of that is not durable yet: the leases stay, and replays go on as if the letters were
    /// settled. Says which leases hold, in their order.
    pub async fn note_processed(&self, leases: Vec<Lease>) -> Result<Vec<bool>, Error> {
        Ok(self.redrive.store.note_processed(leases).await?)
    }

    /// Settles jobs of a pipeline as its policy has it, and says what became of each, in their order. Payloads are kept and
    /// results written before; if results cannot be written, nothing is settled.
    pub async fn settle(&self, pipeline: &Pipeline, ended: Vec<EndedJob>) -> Result<Vec<BroughtBack>, Error> {
        let leases = ended.iter().map(|ended| ended.lease).collect();
        let held = self.redrive.store.leased(leases).await?;
        self.settle_held(pipeline, ended, held).await
    }

    /// The same for who looked a moment ago which jobs the leases hold. It must be no longer: results of jobs that were lost since would
    /// be written.
    pub async fn settle_held(
        &self,
        pipeline: &Pipeline,
        ended: Vec<EndedJob>,
        held: Vec<LeasedJob>,
    ) -> Result<Vec<BroughtBack>, Error> {
        let mut held: HashMap<Lease, LeasedJob> = held.into_iter().map(|job| (job.lease, job)).collect();
        let (mut brought, mut taken, mut late) = (Vec::with_capacity(ended.len()), Vec::new(), Vec::new());
        let again = self.settled_before(pipeline, &ended, &held).await?;
        let mut settling = Settling::of(self, pipeline);
        for ended in ended {
            let lease = ended.lease;
            brought.push(match held.remove(&lease) {
                Some(job) if job.pipeline != pipeline.name => BroughtBack::Stale,
                Some(job) => match settling.take(job, ended).await {
                    Ok(()) => {
                        taken.push(brought.len());
                        BroughtBack::Settled
                    }
                    Err(why) => BroughtBack::Unkept(why),
                },
                None if again.contains(&lease) => BroughtBack::Settled,
                None => {
                    late.push(ended);
                    BroughtBack::Stale
                }
            });
        }
        self.keep_late(pipeline, late).await?;
        let answers = settling.settle().await?;
        for (place, answer) in taken.into_iter().zip(answers) {
            brought[place] = answer;
        }
        Ok(brought)
    }

    /// Of jobs whose lease no longer holds, those that were settled by it: they are brought back again because the answer was lost.
    async fn settled_before(
        &self,
        pipeline: &Pipeline,
        ended: &[EndedJob],
        held: &HashMap<Lease, LeasedJob>,
    ) -> Result<HashSet<Lease>, Error> {
        let lost: Vec<_> = ended.iter().filter(|ended| !held.contains_key(&ended.lease)).collect();
        if lost.is_empty() {
            return Ok(HashSet::new());
        }
        let into = self.redrive.store.settled(lost.iter().map(|ended| ended.lease).collect()).await?;
        let is_resent = |outcome: &Outcome, into| match outcome {
            Outcome::Failed(report) if result_of_failure(&pipeline.policy.rules, report).is_some() => {
                Outcome::Done.is_resent(into)
            }
            outcome => outcome.is_resent(into),
        };
        let again =
            lost.iter().zip(into).filter(|(ended, into)| into.is_some_and(|into| is_resent(&ended.outcome, into)));
        Ok(again.map(|(ended, _)| ended.lease).collect())
    }

    async fn beat(&self, pipelines: &[Pipeline], leases: Vec<Lease>, until: Timestamp) -> Result<Vec<Lease>, Error> {
        self.beat_with(pipelines.iter().map(|own| own.runs(TakesReplays::All)).collect(), leases, until).await
    }

    async fn beat_with(&self, runs: Vec<Runs>, leases: Vec<Lease>, until: Timestamp) -> Result<Vec<Lease>, Error> {
        let beat = Beat {
            worker: self.id,
            host: self.host.clone(),
            pid: self.pid,
            remote: true,
            runs,
            leases,
            until,
            now: self.redrive.now(),
        };
        Ok(self.redrive.store.beat(beat).await?)
    }
}

/// Returns the definition of a pipeline if more than its version is known. Results of its jobs are judged by it later.
fn described(pipeline: &Pipeline) -> Option<(PipelineName, Definition)> {
    let known = pipeline.definition.as_ref().filter(|known| !known.text.is_empty())?;
    Some((
        pipeline.name.clone(),
        Definition { text: known.text.clone(), ..Definition::of_version(known.version.clone()) },
    ))
}
