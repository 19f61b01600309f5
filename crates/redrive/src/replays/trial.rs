//! Trying letters: their handlers run over the saved payloads, and nothing is settled.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use redrive_core::actors::Actor;
use redrive_core::causes::{CauseId, CauseRules};
use redrive_core::dead::DeadLetter;
use redrive_core::failures::Reason;
use redrive_core::fingerprint;
use redrive_core::ids::{JobId, LeaseToken, PipelineName, TryId, WorkerId};
use redrive_core::jobs::{Input, Lease, LeasedJob, Tally, edited};
use redrive_core::replays::{Exclusion, TriedDetails, record_of};
use redrive_core::settlements::{Ending, Outcome, decide};
use redrive_core::time::Timestamp;
use redrive_store::contract::{Selection, TriedLetter};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::draft::{Drafted, GoodCheck};
use crate::engine::Redrive;
use crate::error::Error;
use crate::handler::{Job, Progress};
use crate::pipeline::Pipeline;
use crate::vault::Evidence;
use crate::worker::run::{guarded, hand_on};

/// Verdicts that are kept at once, at most, and how long they wait for it, about: who looks sees them grow.
const KEPT_AT_ONCE: usize = 500;
const KEEP_EVERY: Duration = Duration::from_millis(500);

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
    /// While it is under way: whether it is made by who began it, and by nobody who leases its letters.
    #[serde(default, skip_serializing_if = "is_false")]
    pub here: bool,
    /// While it is made by who began it: when they last said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen_at: Option<Timestamp>,
    /// While it is under way: whether it is for whoever works on its pipelines, wherever that is.
    #[serde(default, skip_serializing_if = "is_false")]
    pub for_workers: bool,
    /// Letters that were to be tried.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub of: u64,
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
    /// Why it was cut short, if something went wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// What would come of one of the letters that would recover.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub record: Option<TriedRecord>,
    /// Whether pages that worked still give the same record by the rules that were tried, where those are no draft.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub good: Option<GoodCheck>,
    /// The draft that was tried, if it was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub draft: Option<Drafted>,
}

const fn is_false(flag: &bool) -> bool {
    !*flag
}

const fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// What would come of a letter, as an example.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TriedRecord {
    /// The letter.
    pub letter: JobId,
    /// Its record.
    pub record: Value,
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

/// Letters being tried, as many at once as their pipelines allow.
pub(super) struct Trial {
    redrive: Redrive,
    worker: WorkerId,
    pipelines: HashMap<PipelineName, Pipeline>,
    edits: Input,
    running: JoinSet<Result<Ended, Error>>,
    at_once: usize,
    pub(super) tried: Tried,
    rules: Arc<CauseRules>,
    /// By the key that it is resolved to.
    remaining: HashMap<String, Remaining>,
    /// Where verdicts are kept, and those that wait for it.
    kept: Option<TryId>,
    verdicts: Vec<TriedLetter>,
    kept_at: Instant,
    /// Cancelled when it is to end, and by itself if somebody else ended the try: it is of this try alone.
    stop: CancellationToken,
}

/// A letter that was tried.
struct Ended {
    id: JobId,
    attempts: u32,
    pipeline: PipelineName,
    /// What would come out of it.
    result: Option<Value>,
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
    pub(super) async fn new(
        redrive: Redrive,
        kept: Option<TryId>,
        (pipelines, edits): (&[Pipeline], Input),
        stop: CancellationToken,
    ) -> Result<Self, Error> {
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
            kept_at: Instant::now(),
            stop,
        })
    }

    /// Begins to try a letter, as soon as there is room for it.
    pub(super) async fn begin(&mut self, letter: DeadLetter) -> Result<(), Error> {
        if letter.saved_payload().is_none() {
            return Ok(());
        }
        let able = |pipeline: &&Pipeline| pipeline.works_from_saved(!self.edits.is_empty());
        let Some(pipeline) = self.pipelines.get(&letter.pipeline).filter(able).cloned() else {
            let why = "it cannot work from saved payloads".to_owned();
            return Err(Error::HandlerUnavailable { pipeline: letter.pipeline.clone(), why });
        };
        while self.running.len() >= self.at_once && !self.stop.is_cancelled() {
            self.take_one().await?;
        }
        let Some(job) = trial_of(&letter, &self.edits, self.redrive.now()) else { return Ok(()) };
        self.running.spawn(try_one(self.redrive.clone(), pipeline, job, self.worker));
        Ok(())
    }

    async fn take_one(&mut self) -> Result<(), Error> {
        let is_waiting = !self.verdicts.is_empty();
        let ended = tokio::select! {
            biased;
            () = self.stop.cancelled() => return Ok(()),
            ended = self.running.join_next() => ended,
            // Who looks sees what there is, also while a letter takes long.
            () = tokio::time::sleep_until(self.kept_at + KEEP_EVERY), if is_waiting => return self.keep().await,
        };
        let Some(ended) = ended else { return Ok(()) };
        let ended = ended.map_err(|panic| Error::Internal(format!("a trial ended: {panic}")))?;
        let Ended { id, attempts, pipeline, result, refailed } = ended?;
        let recovered = refailed.is_none();
        let (mut key, mut message, mut details) = (None, None, TriedDetails::default());
        self.tried.tried += 1;
        match refailed {
            None => {
                self.tried.recovered += 1;
                if self.tried.record.is_none() {
                    details.record = result.and_then(|result| self.record_of(&pipeline, result));
                    self.tried.record = details.record.clone().map(|record| TriedRecord { letter: id, record });
                }
            }
            Some(Refailed { key: own, target, remaining }) => {
                let resolved = self.rules.resolve(&own, target.as_deref(), &remaining.message).to_owned();
                (key, message) = (Some(resolved.clone()), Some(remaining.message.clone()));
                details = details_of(&remaining);
                self.remaining.entry(resolved).and_modify(|known| known.letters += 1).or_insert(remaining);
            }
        }
        self.verdicts.push(TriedLetter { id, attempts, recovered, key, message, details });
        if self.verdicts.len() >= KEPT_AT_ONCE || self.kept_at.elapsed() >= KEEP_EVERY {
            self.keep().await?;
        }
        Ok(())
    }

    fn record_of(&self, pipeline: &PipelineName, result: Value) -> Option<Value> {
        let secrets = self.pipelines.get(pipeline)?.handler.secrets().cloned().unwrap_or_default();
        record_of(result, &secrets)
    }

    /// Keeps the verdicts that wait for it.
    async fn keep(&mut self) -> Result<(), Error> {
        let verdicts = std::mem::take(&mut self.verdicts);
        self.kept_at = Instant::now();
        if let Some(id) = self.kept.filter(|_| !verdicts.is_empty())
            && !self.redrive.store.note_tried(id, verdicts).await?
        {
            self.stop.cancel();
        }
        Ok(())
    }

    /// Waits for those that are being tried, unless it is to stop: those are given up then.
    pub(super) async fn finish(mut self, told: impl Fn(u64)) -> Result<Tried, Error> {
        while !self.running.is_empty() && !self.stop.is_cancelled() {
            self.take_one().await?;
            told(self.tried.tried);
        }
        self.running.abort_all();
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
            ..Tally::default()
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
    let (outcome, result, _) = hand_on(&pipeline, &job, ended, redrive.now());
    let refailed = came_to(&redrive, &pipeline, &job, (outcome, worker));
    Ok(Ended { id: job.lease.job, attempts: job.tally.attempts, pipeline: pipeline.name.clone(), result, refailed })
}

/// What is kept of why a letter would fail.
pub(super) fn details_of(remaining: &Remaining) -> TriedDetails {
    TriedDetails {
        reason: Some(remaining.reason),
        code: remaining.code.clone(),
        title: Some(remaining.title.clone()),
        ..TriedDetails::default()
    }
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
