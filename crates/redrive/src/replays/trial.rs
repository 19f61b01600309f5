//! Trying letters: their handlers run over the saved payloads, and nothing is settled.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use redrive_core::actors::Actor;
use redrive_core::causes::{CauseId, CauseRules};
use redrive_core::dead::DeadLetter;
use redrive_core::definitions::DefinitionVersion;
use redrive_core::failures::Reason;
use redrive_core::fingerprint;
use redrive_core::ids::{JobId, LeaseToken, PipelineName, TryId, WorkerId};
use redrive_core::jobs::{Input, Lease, LeasedJob, Tally, edited};
use redrive_core::replays::{Exclusion, ReplayMode, TriedDetails, TriedWith, treat};
use redrive_core::settlements::{Ending, Outcome, decide};
use redrive_core::time::Timestamp;
use redrive_store::contract::{FindLetters, OpenTry, Selection, TriedLetter};
use redrive_store::{StoreError, host};
use serde::{Deserialize, Serialize};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::choose::wish;
use super::draft::Drafted;
use super::tries::defined;
use crate::engine::Redrive;
use crate::error::Error;
use crate::handler::{Job, Progress};
use crate::pipeline::Pipeline;
use crate::vault::Evidence;
use crate::worker::run::{guarded, hand_on};

/// Letters that are read at once.
const PAGE: u32 = 500;

/// A try that is wanted.
#[derive(Clone, Debug)]
pub struct NewTry {
    /// Who wants it.
    pub by: Actor,
    /// Which letters.
    pub selection: Selection,
    /// Whether letters that failed permanently are tried too.
    pub force: bool,
    /// Fields of the input to change.
    pub edits: Input,
}

/// What came of trying letters without settling anything.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Tried {
    /// What it is known by; none if the store cannot be written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<TryId>,
    /// Letters that were tried.
    pub tried: u64,
    /// Letters that would recover.
    pub recovered: u64,
    /// Letters of which it could not be found out what would become.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unknown: u64,
    /// Jobs that the letters would hand on, where that was told.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub follow: u64,
    /// Letters that were not tried, and why.
    pub excluded: BTreeMap<Exclusion, u64>,
    /// What the others would still fail for, most first.
    pub remaining: Vec<Remaining>,
    /// Whether it was stopped before the end.
    pub stopped: bool,
    /// The draft that was tried, if it was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub draft: Option<Drafted>,
}

const fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// A cause that would remain.
#[derive(Clone, Debug, Serialize, Deserialize)]
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
    /// Runs the handlers of letters over their saved payloads and settles nothing: what would recover, and what would still
    /// fail, for which causes. That is kept for a day, so that a replay may take what recovered. `told` hears how far it is.
    pub async fn try_replay(
        &self,
        pipelines: &[Pipeline],
        new: NewTry,
        stop: &CancellationToken,
        told: impl Fn(u64, u64),
    ) -> Result<Tried, Error> {
        self.try_draft(pipelines, (new, None), stop, told).await
    }

    /// The same by draft rules, which the pipelines have instead of those of their file.
    pub async fn try_draft(
        &self,
        pipelines: &[Pipeline],
        (new, draft): (NewTry, Option<Drafted>),
        stop: &CancellationToken,
        told: impl Fn(u64, u64),
    ) -> Result<Tried, Error> {
        let wish = wish(pipelines, Some(ReplayMode::Saved), new.force, &new.edits)?;
        let plan = self.plan_replay(&new.selection, &wish).await?;
        let mut tried_with = defined(pipelines);
        if draft.is_some() {
            // No replay takes what a draft recovered for what the rules of the file would.
            tried_with.values_mut().for_each(|version| *version = Some(DefinitionVersion::new("draft")));
        }
        let id = self.open_try(tried_with, &new).await?;
        let mut trial = Trial::new(self.clone(), id, pipelines, new.edits).await?;
        let mut cursor = None;
        loop {
            let params = FindLetters {
                selection: new.selection.clone(),
                opened: None,
                tried: None,
                host: host().to_owned(),
                whole: true,
                limit: PAGE,
                cursor,
            };
            let page = self.store.find_letters(params).await?;
            for found in page.items {
                if stop.is_cancelled() {
                    break;
                }
                if let (Ok(_), Some(letter)) = (treat(&found.facts, &wish), found.letter) {
                    trial.begin(letter).await?;
                    told(trial.tried.tried, plan.included);
                }
            }
            cursor = page.next;
            if cursor.is_none() || stop.is_cancelled() {
                break;
            }
        }
        let tried = trial.finish().await?;
        let tried = Tried { id, excluded: plan.excluded, stopped: stop.is_cancelled(), draft, ..tried };
        if let Some(id) = id {
            let outcome = serde_json::to_value(&tried).map_err(|error| Error::Internal(error.to_string()))?;
            self.store.end_try(id, outcome, self.now()).await?;
        }
        Ok(tried)
    }

    /// Makes the row of a try, unless the store cannot be written: letters can be tried all the same.
    pub(super) async fn open_try(&self, tried_with: TriedWith, new: &NewTry) -> Result<Option<TryId>, Error> {
        let now = self.now();
        let open = OpenTry {
            id: TryId::new(now, self.chance.bits()),
            by: new.by.clone(),
            selection: new.selection.clone(),
            edits: new.edits.clone(),
            tried_with,
            now,
        };
        let id = open.id;
        match self.store.open_try(open).await {
            Err(StoreError::ReadOnly { .. }) => return Ok(None),
            opened => opened?,
        }
        self.forget_tries().await?;
        Ok(Some(id))
    }
}

/// Letters being tried, as many at once as their pipelines allow.
struct Trial {
    redrive: Redrive,
    worker: WorkerId,
    pipelines: HashMap<PipelineName, Pipeline>,
    edits: Input,
    running: JoinSet<Result<Ended, Error>>,
    at_once: usize,
    tried: Tried,
    rules: Arc<CauseRules>,
    /// By the key that it is resolved to.
    remaining: HashMap<String, Remaining>,
    /// Where verdicts are kept, and those that wait for it.
    kept: Option<TryId>,
    verdicts: Vec<TriedLetter>,
}

/// A letter that was tried.
struct Ended {
    id: JobId,
    attempts: u32,
    /// What it would fail for, if it would.
    refailed: Option<Refailed>,
}

/// A letter that would fail again.
pub(super) struct Refailed {
    pub(super) key: String,
    pub(super) target: Option<String>,
    pub(super) remaining: Remaining,
}

impl Trial {
    async fn new(redrive: Redrive, kept: Option<TryId>, pipelines: &[Pipeline], edits: Input) -> Result<Self, Error> {
        let rules = redrive.cause_rules().await?;
        let worker = WorkerId::new(redrive.now(), redrive.chance.bits());
        let at_once = pipelines.iter().map(|pipeline| pipeline.concurrency).max().unwrap_or(1);
        Ok(Self {
            redrive,
            worker,
            pipelines: pipelines.iter().map(|pipeline| (pipeline.name.clone(), pipeline.clone())).collect(),
            edits,
            running: JoinSet::new(),
            at_once,
            tried: Tried::default(),
            rules,
            remaining: HashMap::new(),
            kept,
            verdicts: Vec::new(),
        })
    }

    async fn begin(&mut self, letter: DeadLetter) -> Result<(), Error> {
        if letter.saved_payload().is_none() {
            return Ok(());
        }
        let able = |pipeline: &&Pipeline| pipeline.works_from_saved(!self.edits.is_empty());
        let Some(pipeline) = self.pipelines.get(&letter.pipeline).filter(able).cloned() else {
            let why = "it cannot work from saved payloads".to_owned();
            return Err(Error::HandlerUnavailable { pipeline: letter.pipeline.clone(), why });
        };
        while self.running.len() >= self.at_once {
            self.take_one().await?;
        }
        let Some(job) = trial_of(&letter, &self.edits, self.redrive.now()) else { return Ok(()) };
        self.tried.tried += 1;
        self.running.spawn(try_one(self.redrive.clone(), pipeline, job, self.worker));
        Ok(())
    }

    async fn take_one(&mut self) -> Result<(), Error> {
        let Some(ended) = self.running.join_next().await else { return Ok(()) };
        let ended = ended.map_err(|panic| Error::Internal(format!("a trial ended: {panic}")))?;
        let Ended { id, attempts, refailed } = ended?;
        let recovered = refailed.is_none();
        let (mut key, mut message) = (None, None);
        match refailed {
            None => self.tried.recovered += 1,
            Some(Refailed { key: own, target, remaining }) => {
                let resolved = self.rules.resolve(&own, target.as_deref(), &remaining.message).to_owned();
                (key, message) = (Some(resolved.clone()), Some(remaining.message.clone()));
                self.remaining.entry(resolved).and_modify(|known| known.letters += 1).or_insert(remaining);
            }
        }
        let details = TriedDetails::default();
        self.verdicts.push(TriedLetter { id, attempts, recovered, key, message, details });
        if self.verdicts.len() >= PAGE as usize {
            self.keep().await?;
        }
        Ok(())
    }

    /// Keeps the verdicts that wait for it.
    async fn keep(&mut self) -> Result<(), Error> {
        let verdicts = std::mem::take(&mut self.verdicts);
        if let Some(id) = self.kept.filter(|_| !verdicts.is_empty()) {
            self.redrive.store.note_tried(id, verdicts).await?;
        }
        Ok(())
    }

    async fn finish(mut self) -> Result<Tried, Error> {
        while !self.running.is_empty() {
            self.take_one().await?;
        }
        self.keep().await?;
        let (tried, groups) = (self.tried, self.remaining);
        self.redrive.recognised(tried, groups).await
    }
}

impl Redrive {
    /// The same with what letters would still fail for, by their keys: most first, each with the cause that it is known by.
    pub(super) async fn recognised(&self, tried: Tried, groups: HashMap<String, Remaining>) -> Result<Tried, Error> {
        let (keys, mut remaining): (Vec<_>, Vec<_>) = groups.into_iter().unzip();
        for (remaining, cause) in remaining.iter_mut().zip(self.store.recognise(keys).await?) {
            remaining.cause = cause;
        }
        remaining.sort_by(|a, b| b.letters.cmp(&a.letters).then_with(|| a.title.cmp(&b.title)));
        Ok(Tried { remaining, ..tried })
    }
}

/// A letter as the job that is tried: from its saved payload, with fields of its input changed. Nothing if it has none, or they do not
/// fit.
pub(super) fn trial_of(letter: &DeadLetter, edits: &Input, now: Timestamp) -> Option<LeasedJob> {
    let (input, target) = edited(&letter.input, edits, letter.target.as_deref())?;
    Some(LeasedJob {
        lease: Lease { job: letter.id, token: LeaseToken::new(now, 0), epoch: 0 },
        number: letter.number.unwrap_or_default(),
        pipeline: letter.pipeline.clone(),
        round: letter.round.clone(),
        key: letter.key.clone(),
        target,
        input,
        tally: Tally {
            attempts: letter.attempts,
            attempts_before: letter.attempts,
            crashes: letter.crashes,
            replays: letter.replays.saturating_add(1),
            suspect: false,
        },
        accepted_at: letter.accepted_at,
        progress: None,
        saved: Some(letter.saved_payload().cloned()?),
        automatic: false,
        tried: Vec::new(),
        probe: false,
        origin: letter.origin.clone(),
        edited: letter.original.is_some() || !edits.is_empty(),
    })
}

async fn try_one(redrive: Redrive, pipeline: Pipeline, job: LeasedJob, worker: WorkerId) -> Result<Ended, Error> {
    // How far it gets is noted nowhere.
    let work = Job::new(&job, worker, &pipeline, Evidence::default(), Progress::default());
    let unavailable = |(_, why)| Error::HandlerUnavailable { pipeline: pipeline.name.clone(), why };
    let ended = guarded(&pipeline, &pipeline.handler, work, std::time::Duration::ZERO).await.map_err(unavailable)?;
    // A letter that may not hand on what it hands on would fail.
    let (outcome, _, _) = hand_on(&pipeline, &job, ended, redrive.now());
    let refailed = came_to(&redrive, &pipeline, &job, (outcome, worker));
    Ok(Ended { id: job.lease.job, attempts: job.tally.attempts, refailed })
}

/// What a letter would fail for, if it would.
pub(super) fn came_to(
    redrive: &Redrive,
    pipeline: &Pipeline,
    job: &LeasedJob,
    (outcome, worker): (Outcome, WorkerId),
) -> Option<Refailed> {
    let ending = Ending { at: redrive.now(), duration: None, worker: Some(worker), chance: 0.0 };
    let failure = decide(&pipeline.policy, job, outcome, ending).failure?;
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
    Some(Refailed { key: print.key, target: job.target.clone(), remaining })
}
