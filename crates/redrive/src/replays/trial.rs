//! Trying letters: their handlers run over the saved payloads, and nothing is settled.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use redrive_core::causes::CauseId;
use redrive_core::dead::DeadLetter;
use redrive_core::failures::Reason;
use redrive_core::fingerprint;
use redrive_core::ids::{JobId, LeaseToken, PipelineName, WorkerId};
use redrive_core::jobs::{Input, Lease, LeasedJob, Tally, edited};
use redrive_core::replays::{Exclusion, ReplayMode, treat};
use redrive_core::settlements::{Ending, Outcome, decide};
use redrive_store::contract::{FindLetters, Selection};
use serde::Serialize;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::choose::wish;
use crate::engine::Redrive;
use crate::error::Error;
use crate::handler::{Job, Progress};
use crate::pipeline::Pipeline;
use crate::vault::Evidence;
use crate::worker::run::guarded;
use redrive_store::host;

/// Letters that are read at once.
const PAGE: u32 = 500;

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
        let wish = wish(pipelines, Some(ReplayMode::Saved), force, !edits.is_empty())?;
        let plan = self.plan_replay(&selection, &wish).await?;
        let mut trial = Trial::new(self.clone(), pipelines, edits.clone());
        let mut cursor = None;
        loop {
            let params = FindLetters {
                selection: selection.clone(),
                opened: None,
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
        Ok(Tried { excluded: plan.excluded, stopped: stop.is_cancelled(), ..tried })
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
    /// By key, with the target of the example.
    remaining: HashMap<String, (Option<String>, Remaining)>,
}

/// A letter that would fail again.
struct Refailed {
    key: String,
    target: Option<String>,
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
        let Some(payload) = letter.saved_payload().cloned() else { return Ok(()) };
        let able = |pipeline: &&Pipeline| pipeline.works_from_saved(!self.edits.is_empty());
        let Some(pipeline) = self.pipelines.get(&letter.pipeline).filter(able).cloned() else {
            let why = "it cannot work from saved payloads".to_owned();
            return Err(Error::HandlerUnavailable { pipeline: letter.pipeline.clone(), why });
        };
        while self.running.len() >= self.at_once {
            self.take_one().await?;
        }
        let Some((input, target)) = edited(&letter.input, &self.edits, letter.target.as_deref()) else { return Ok(()) };
        self.tried.tried += 1;
        let job = LeasedJob {
            lease: Lease { job: letter.id, token: LeaseToken::new(self.redrive.now(), 0), epoch: 0 },
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
            saved: Some(payload),
            automatic: false,
            tried: Vec::new(),
            probe: false,
        };
        self.running.spawn(try_one(self.redrive.clone(), pipeline, job, self.worker));
        Ok(())
    }

    async fn take_one(&mut self) -> Result<(), Error> {
        let Some(ended) = self.running.join_next().await else { return Ok(()) };
        let ended = ended.map_err(|panic| Error::Internal(format!("a trial ended: {panic}")))?;
        match ended? {
            None => self.tried.recovered += 1,
            Some(Refailed { key, target, remaining }) => {
                self.remaining.entry(key).and_modify(|(_, known)| known.letters += 1).or_insert((target, remaining));
            }
        }
        Ok(())
    }

    async fn finish(mut self) -> Result<Tried, Error> {
        while !self.running.is_empty() {
            self.take_one().await?;
        }
        let rules = self.redrive.cause_rules().await?;
        let resolved = |(key, (target, remaining)): (String, (Option<String>, Remaining))| {
            (rules.resolve(&key, target.as_deref(), &remaining.message).to_owned(), remaining)
        };
        let (asked, mut remaining): (Vec<_>, Vec<_>) = self.remaining.into_iter().map(resolved).unzip();
        for (remaining, cause) in remaining.iter_mut().zip(self.redrive.store.recognise(asked).await?) {
            remaining.cause = cause;
        }
        remaining.sort_by(|a, b| b.letters.cmp(&a.letters).then_with(|| a.title.cmp(&b.title)));
        Ok(Tried { remaining, ..self.tried })
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
    let unavailable = |(_, why)| Error::HandlerUnavailable { pipeline: pipeline.name.clone(), why };
    let (outcome, _) =
        guarded(&pipeline, &pipeline.handler, work, std::time::Duration::ZERO).await.map_err(unavailable)?;
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
    Ok(Some(Refailed { key: print.key, target: job.target, remaining }))
}
