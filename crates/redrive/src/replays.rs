//! Replays, for who holds a [`Redrive`]: what would recover, and choosing what to work from.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use redrive_core::causes::CauseId;
use redrive_core::dead::{DeadLetter, Gate};
use redrive_core::failures::Reason;
use redrive_core::fingerprint;
use redrive_core::ids::{JobId, LeaseToken, PipelineName, ReplayId, WorkerId};
use redrive_core::jobs::{Input, Lease, LeasedJob, Tally, edited};
use redrive_core::replays::{Exclusion, Pacing, ReplayMode};
use redrive_core::settlements::{Ending, Outcome, decide};
use redrive_store::contract::{
    CountDead, DeadBy, DeadCount, DeadFilter, ListDead, PlanReplay, ReplayPlan, Selection, StartReplay,
};
use serde::Serialize;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::engine::Redrive;
use crate::error::Error;
use crate::handler::{Job, Progress};
use crate::pipeline::Pipeline;
use crate::vault::Evidence;
use crate::worker::run::guarded;

/// Letters that are read at once.
const PAGE: u32 = 500;

/// A replay that is wanted.
#[derive(Clone, Debug)]
pub struct NewReplay {
    /// What it is called.
    pub name: String,
    /// Who wants it.
    pub actor: String,
    /// Which letters.
    pub selection: Selection,
    /// What they are to be worked from.
    pub mode: ReplayMode,
    /// Why letters that failed permanently go too, if they do.
    pub force_why: Option<String>,
    /// How fast.
    pub pacing: Pacing,
    /// Fields of the input to change.
    pub edits: Input,
}

/// What came of trying letters without settling anything.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Tried {
    /// Letters that were tried.
    pub tried: u64,
    /// Letters that would recover.
    pub recovered: u64,
    /// Letters that were not tried, and why.
    pub excluded: BTreeMap<Exclusion, u64>,
    /// What the others would still fail for, most first.
    pub remaining: Vec<Remaining>,
    /// Whether it was stopped before the end.
    pub stopped: bool,
}

/// A cause that would remain.
#[derive(Clone, Debug, Serialize)]
pub struct Remaining {
    /// How many letters would fail for it.
    pub letters: u64,
    /// Why.
    pub reason: Reason,
    /// The code.
    pub code: Option<String>,
    /// The message without what varies.
    pub title: String,
    /// The cause, if it is known already.
    pub cause: Option<CauseId>,
    /// One of the letters.
    pub example: JobId,
    /// What that one would say.
    pub message: String,
}

impl Redrive {
    /// What a replay would send, and what not; nothing happens.
    pub async fn plan_replay(&self, selection: Selection, mode: ReplayMode, force: bool) -> Result<ReplayPlan, Error> {
        let params = PlanReplay { selection, mode, force, automatic: None, now: self.now() };
        Ok(self.store.plan_replay(params).await?)
    }

    /// Chooses the letters of a replay and claims them. A worker sends them; see [`Worker::only_replay`] and
    /// [`Worker::with_replays`](crate::worker::Worker::with_replays). Without a letter to send there is no replay.
    ///
    /// [`Worker::only_replay`]: crate::worker::Worker::only_replay
    pub async fn start_replay(&self, new: NewReplay) -> Result<(ReplayId, ReplayPlan), Error> {
        let now = self.now();
        let id = ReplayId::new(now, self.chance.bits());
        let NewReplay { name, actor, selection, mode, force_why, pacing, edits } = new;
        let plan = PlanReplay { selection, mode, force: force_why.is_some(), automatic: None, now };
        let params = StartReplay { id, name, actor, plan, force_why, pacing, edits };
        Ok((id, self.store.start_replay(params).await?))
    }

    /// Runs the handlers of letters over their saved payloads and settles nothing: what would recover, and what would still
    /// fail, for which causes. `told` hears how far it is.
    pub async fn try_replay(
        &self,
        pipelines: &[Pipeline],
        (selection, force): (Selection, bool),
        edits: &Input,
        stop: &CancellationToken,
        told: impl Fn(u64, u64),
    ) -> Result<Tried, Error> {
        let plan = self.plan_replay(selection.clone(), ReplayMode::Saved, force).await?;
        let mut trial = Trial::new(self.clone(), pipelines, edits.clone());
        let mut cursor = None;
        loop {
            let page = self.letters(&selection, cursor).await?;
            for letter in page.0.into_iter().filter(|letter| force || letter.gate != Gate::Never) {
                if stop.is_cancelled() {
                    break;
                }
                trial.begin(letter).await?;
                told(trial.tried.tried, plan.included);
            }
            cursor = page.1;
            if cursor.is_none() || stop.is_cancelled() {
                break;
            }
        }
        let tried = trial.finish().await?;
        Ok(Tried { excluded: plan.excluded, stopped: stop.is_cancelled(), ..tried })
    }

    /// A page of the letters that were chosen, with their failures.
    async fn letters(
        &self,
        selection: &Selection,
        cursor: Option<String>,
    ) -> Result<(Vec<DeadLetter>, Option<String>), Error> {
        if selection.ids.is_empty() {
            let filter =
                DeadFilter { until: Some(selection.filter.until.unwrap_or(self.now())), ..selection.filter.clone() };
            let params = ListDead { filter, limit: PAGE, cursor, with_failures: true };
            let page = self.store.list_dead(params).await?;
            return Ok((page.items, page.next));
        }
        let mut letters = Vec::new();
        for id in &selection.ids {
            letters.extend(self.store.get_dead(*id).await?);
        }
        Ok((letters, None))
    }
}

/// Letters being tried, as many at once as their pipelines allow.
struct Trial {
    redrive: Redrive,
    worker: WorkerId,
    pipelines: HashMap<PipelineName, Pipeline>,
    edits: Input,
    running: JoinSet<Result<Option<Refailed>, Error>>,
    at_once: usize,
    tried: Tried,
    remaining: HashMap<String, Remaining>,
}

/// A letter that would fail again.
struct Refailed {
    key: String,
    remaining: Remaining,
}

impl Trial {
    fn new(redrive: Redrive, pipelines: &[Pipeline], edits: Input) -> Self {
        let worker = WorkerId::new(redrive.now(), redrive.chance.bits());
        let at_once = pipelines.iter().map(|pipeline| pipeline.concurrency).max().unwrap_or(1);
        Self {
            redrive,
            worker,
            pipelines: pipelines.iter().map(|pipeline| (pipeline.name.clone(), pipeline.clone())).collect(),
            edits,
            running: JoinSet::new(),
            at_once,
            tried: Tried::default(),
            remaining: HashMap::new(),
        }
    }

    async fn begin(&mut self, letter: DeadLetter) -> Result<(), Error> {
        let payload = letter.failures.iter().flatten().rev().find_map(|failure| failure.payload.clone());
        let Some(payload) = payload.filter(|payload| !payload.truncated) else { return Ok(()) };
        let Some(pipeline) = self.pipelines.get(&letter.pipeline).cloned() else { return Ok(()) };
        let place = self.redrive.store.place_of_payload(payload.hash).await?;
        if place.is_none() {
            return Ok(());
        }
        while self.running.len() >= self.at_once {
            self.take_one().await?;
        }
        self.tried.tried += 1;
        let (input, target) = edited(&letter.input, &self.edits, letter.target.as_deref());
        let job = LeasedJob {
            lease: Lease { job: letter.id, token: LeaseToken::new(self.redrive.now(), 0), epoch: 0 },
            pipeline: letter.pipeline.clone(),
            key: letter.key.clone(),
            target,
            input,
            tally: Tally {
                attempts: letter.attempts,
                attempts_before: letter.attempts,
                crashes: letter.crashes,
                replays: letter.replays + 1,
                suspect: false,
            },
            accepted_at: letter.accepted_at,
            progress: None,
            saved: Some(payload),
        };
        self.running.spawn(try_one(self.redrive.clone(), pipeline, job, self.worker));
        Ok(())
    }

    async fn take_one(&mut self) -> Result<(), Error> {
        let Some(ended) = self.running.join_next().await else { return Ok(()) };
        let ended = ended.map_err(|panic| Error::Internal(format!("a trial ended: {panic}")))?;
        match ended? {
            None => self.tried.recovered += 1,
            Some(Refailed { key, remaining }) => {
                self.remaining.entry(key).and_modify(|known| known.letters += 1).or_insert(remaining);
            }
        }
        Ok(())
    }

    async fn finish(mut self) -> Result<Tried, Error> {
        while !self.running.is_empty() {
            self.take_one().await?;
        }
        let known = self.known_causes().await?;
        let mut remaining: Vec<Remaining> = self
            .remaining
            .into_iter()
            .map(|(key, remaining)| Remaining { cause: known.get(&key).cloned(), ..remaining })
            .collect();
        remaining.sort_by(|a, b| b.letters.cmp(&a.letters).then_with(|| a.title.cmp(&b.title)));
        Ok(Tried { remaining, ..self.tried })
    }

    /// The causes that the keys of what remains belong to already.
    async fn known_causes(&self) -> Result<HashMap<String, CauseId>, Error> {
        let keys: Vec<String> = self.remaining.keys().cloned().collect();
        Ok(self.redrive.store.causes_of_keys(keys).await?.into_iter().collect())
    }
}

async fn try_one(
    redrive: Redrive,
    pipeline: Pipeline,
    job: LeasedJob,
    worker: WorkerId,
) -> Result<Option<Refailed>, Error> {
    let progress = Progress::new(None, Arc::clone(&redrive.store), job.lease);
    let work = Job::new(&job, worker, &pipeline, Evidence::default(), progress);
    let unavailable = |why| Error::HandlerUnavailable { pipeline: pipeline.name.clone(), why };
    let (outcome, _) = guarded(&pipeline, work, std::time::Duration::ZERO).await.map_err(unavailable)?;
    if outcome == Outcome::Done {
        return Ok(None);
    }
    let ending = Ending { at: redrive.now(), duration: None, worker: Some(worker), chance: 0.0 };
    let Some(failure) = decide(&pipeline.policy, &job, outcome, ending).failure else { return Ok(None) };
    let print = fingerprint::of_failure(&pipeline.name, job.target.as_deref(), &failure);
    let remaining = Remaining {
        letters: 1,
        reason: failure.reason,
        code: failure.code,
        title: print.template,
        cause: None,
        example: job.lease.job,
        message: failure.message,
    };
    Ok(Some(Refailed { key: print.key, remaining }))
}

/// What to work from, where nobody said: the saved payloads if all of the letters have one and their handlers can, and if
/// it was what came that could not be used; else everything anew.
pub async fn choose_mode(
    redrive: &Redrive,
    pipelines: &[Pipeline],
    selection: &Selection,
    force: bool,
) -> Result<ReplayMode, Error> {
    let plan = redrive.plan_replay(selection.clone(), ReplayMode::Refetch, force).await?;
    let able = plan
        .pipelines
        .keys()
        .all(|name| pipelines.iter().any(|pipeline| pipeline.name == *name && pipeline.works_from_saved()));
    if !able || plan.included == 0 || plan.with_payload < plan.included {
        return Ok(ReplayMode::Refetch);
    }
    let by_reason = CountDead { filter: selection.filter.clone(), by: DeadBy::Reason, limit: u32::MAX };
    if !selection.ids.is_empty() {
        return Ok(ReplayMode::Saved);
    }
    let reasons = redrive.store.count_dead(by_reason).await?;
    let of_content = |count: &DeadCount| {
        let reason = count.value.as_deref().and_then(|name| name.parse::<Reason>().ok());
        reason.is_some_and(Reason::is_about_content)
    };
    Ok(if reasons.iter().all(of_content) { ReplayMode::Saved } else { ReplayMode::Refetch })
}
