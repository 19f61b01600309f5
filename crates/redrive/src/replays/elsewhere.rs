//! Trying letters elsewhere: their saved payloads are handed out to who leases them, and what they came to is noted. Nothing is settled:
//! no letter, ledger, breaker or worker's row changes.
//!
//! As with jobs, nothing is remembered here between two calls. A lease that ran out is given to the next who asks; a try ends when all of
//! its letters have a verdict, by whoever notices first.

use std::cell::Cell;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use redrive_core::causes::CauseRules;
use redrive_core::dead::DeadLetter;
use redrive_core::failures::{FailureReport, Reason};
use redrive_core::hand_on::HandedOn;
use redrive_core::ids::{JobId, LeaseToken, PipelineName, TryId};
use redrive_core::jobs::{Input, LeasedJob};
use redrive_core::replays::{Exclusion, ReplayMode, TriedDetails, is_abandoned, record_of, treat};
use redrive_core::secrets::Secrets;
use redrive_core::settlements::Outcome;
use redrive_store::contract::{
    FindLetters, FoundLetter, LeaseTried, LetterToTry, ListTried, OpenInTry, Page, Selection, SettleTried, TriedCount,
    TriedLease, TriedLetter, TryView,
};
use redrive_store::host;
use serde::Serialize;
use serde_json::Value;

use super::choose::wish;
use super::error::ReplayError;
use super::trial::{NewTry, Refailed, Remaining, Tried, TriedRecord, came_to, details_of, trial_of};
use super::under_way::known_of;
use crate::engine::Redrive;
use crate::error::Error;
use crate::handler::{self, Success};
use crate::leases::RemoteWorker;
use crate::pipeline::Pipeline;
use crate::worker::run::hand_on;

/// Letters that are read at once.
const PAGE: u32 = 500;

/// After how long all letters of a try are taken to be listed, though they are fewer than there were to be.
const LISTED_WITHIN: Duration = Duration::from_secs(60);

/// What is said of a letter that went away while it was tried.
const GONE: &str = "it is no longer dead, or its payload is gone";

/// A try whose letters are leased.
#[derive(Clone, Debug, Serialize)]
pub struct OpenedTry {
    /// What it is known by; none if there is no letter to try.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<TryId>,
    /// Letters that are to be tried.
    pub letters: u64,
    /// Letters that were found and left out, and why.
    pub left_out: BTreeMap<Exclusion, u64>,
    /// The groups that its letters are of.
    pub groups: Vec<TriedCount>,
}

/// A letter in the hands of who tries it.
#[derive(Clone, Debug)]
pub struct LetterInTry {
    /// The right to say what it came to.
    pub lease: TriedLease,
    /// What it is to be worked on, as a job that is leased.
    pub job: LeasedJob,
    /// The letter.
    pub letter: DeadLetter,
}

/// What a letter came to that was tried elsewhere.
pub struct EndedTry {
    /// The right to say so.
    pub lease: TriedLease,
    /// What it came to.
    pub verdict: TryVerdict,
}

/// What a letter came to.
pub enum TryVerdict {
    /// It would recover.
    Done {
        /// What would come out of it.
        result: Option<Value>,
        /// How many jobs it would hand on, where that is more than are named.
        follow: Option<u64>,
        /// Jobs that it would hand on.
        enqueue: Vec<HandedOn>,
    },
    /// It would fail again.
    Failed(Box<FailureReport>),
    /// That cannot be found out from what is saved.
    Unknown(String),
    /// It was not tried: somebody else may.
    Returned,
}

impl Redrive {
    /// Makes a try of letters whose saved payloads are handed out to who leases them. Without a letter to try there is none.
    /// `for_workers` says whether those who work on the pipelines are to take part by themselves; else who opens it sees to that.
    pub async fn open_try_elsewhere(
        &self,
        pipelines: &[Pipeline],
        new: NewTry,
        for_workers: bool,
    ) -> Result<OpenedTry, Error> {
        let wish = wish(pipelines, Some(ReplayMode::Saved), new.force, &new.edits)?;
        let plan = self.plan_replay(&new.selection, &wish).await?;
        let left_out = plan.excluded;
        if plan.included == 0 {
            return Ok(OpenedTry { id: None, letters: 0, left_out, groups: Vec::new() });
        }
        let known = Tried { for_workers, of: plan.included, excluded: left_out.clone(), ..Tried::default() };
        let Some(id) = self.open_try(super::tries::defined(pipelines), &new, &known).await? else {
            return Err(Error::Internal("the store cannot be written".to_owned()));
        };
        let mut cursor = None;
        loop {
            let page = self.find_to_try(&new.selection, cursor).await?;
            let mut letters = Vec::new();
            for found in page.items {
                if let (Ok(_), Some(letter)) = (treat(&found.facts, &wish), found.letter) {
                    let group = letter.origin.and_then(|origin| origin.group);
                    let (id, attempts, pipeline) = (letter.id, letter.attempts, letter.pipeline);
                    letters.push(LetterToTry { id, attempts, pipeline, group });
                }
            }
            self.store.add_to_try(id, letters).await?;
            cursor = page.next;
            if cursor.is_none() {
                break;
            }
        }
        let groups = self.store.count_tried(id).await?;
        let letters = groups.iter().map(|group| group.waiting + group.leased + group.tried).sum();
        Ok(OpenedTry { id: Some(id), letters, left_out, groups })
    }

    async fn find_to_try(&self, selection: &Selection, cursor: Option<String>) -> Result<Page<FoundLetter>, Error> {
        let params = FindLetters {
            selection: selection.clone(),
            opened: None,
            tried: None,
            host: host().to_owned(),
            whole: true,
            limit: PAGE.max(u32::try_from(selection.ids.len()).unwrap_or(PAGE)),
            cursor,
        };
        Ok(self.store.find_letters(params).await?)
    }

    /// A try that was made, and where its letters are. One that nobody knows any more is refused.
    pub async fn try_by_id(&self, id: TryId) -> Result<(TryView, Vec<TriedCount>), Error> {
        Ok((self.known_try(id).await?, self.store.count_tried(id).await?))
    }

    /// A try that was made. Its letters are not counted: who leases some of very many asks often.
    async fn known_try(&self, id: TryId) -> Result<TryView, Error> {
        Ok(self.store.get_try(id).await?.ok_or(ReplayError::NoSuchTry(id))?)
    }

    /// Ends a try all of whose letters have a verdict, with what came of it. Says whether it is over. One whose letters were not all
    /// listed, because who opened it went away for example, was stopped before the end.
    pub async fn end_try_if_over(&self, id: TryId) -> Result<bool, Error> {
        let kept = self.known_try(id).await?;
        if kept.finished_at.is_some() {
            return Ok(true);
        }
        let known = known_of(&kept);
        if known.here && is_abandoned(known.seen_at, self.now()) {
            self.cut_off(&kept).await?;
            return Ok(true);
        }
        let any = OpenInTry { id, pipelines: Vec::new(), group: None, limit: 1 };
        if known.here || self.store.open_in_try(any).await? > 0 {
            return Ok(false);
        }
        // Only now are they counted, which is once.
        let groups = self.store.count_tried(id).await?;
        let sum = |of: fn(&TriedCount) -> u64| groups.iter().map(of).sum::<u64>();
        let (open, tried) = (sum(|group| group.waiting + group.leased), sum(|group| group.tried));
        // Who leases the first letters may be through with them before the last are listed.
        let is_listed = tried >= known.of || self.now().since(kept.created_at) > LISTED_WITHIN;
        if open > 0 || !is_listed {
            return Ok(false);
        }
        self.end_try(&kept, tried < known.of).await?;
        Ok(true)
    }

    /// Ends a try with the letters that have a verdict by now: whoever has others has lost them. One that has ended stays as it is.
    pub async fn cancel_try(&self, id: TryId) -> Result<(), Error> {
        let (kept, groups) = self.try_by_id(id).await?;
        // Of what is tried here only what was tried is known, and how many that would be.
        let tried: u64 = groups.iter().map(|group| group.tried).sum();
        let is_open = groups.iter().any(|group| group.waiting + group.leased > 0) || tried < known_of(&kept).of;
        match kept.finished_at {
            Some(_) => Ok(()),
            None => self.end_try(&kept, is_open).await,
        }
    }

    /// Ends a try that nobody runs any more, with what was tried by then.
    async fn cut_off(&self, kept: &TryView) -> Result<(), Error> {
        let why = Some("the process that ran it stopped".to_owned());
        self.end_try_as(kept, Tried { stopped: true, why, ..self.summary(kept).await? }).await
    }

    async fn end_try(&self, kept: &TryView, stopped: bool) -> Result<(), Error> {
        self.end_try_as(kept, Tried { stopped, ..self.summary(kept).await? }).await
    }

    async fn end_try_as(&self, kept: &TryView, tried: Tried) -> Result<(), Error> {
        let id = kept.id;
        let outcome = serde_json::to_value(&tried).map_err(|error| Error::Internal(error.to_string()))?;
        Ok(self.store.end_try(id, outcome, self.now()).await?)
    }

    /// What came of a try so far: how many would recover, and for what the others would still fail.
    pub(super) async fn summary(&self, kept: &TryView) -> Result<Tried, Error> {
        let (id, known) = (kept.id, known_of(kept));
        let mut tried = Tried { id: Some(id), here: false, seen_at: None, for_workers: false, ..known };
        let mut groups = HashMap::<String, Remaining>::new();
        let mut cursor = None;
        loop {
            let page = self.store.list_tried(ListTried { id, limit: PAGE, cursor }).await?;
            for letter in page.items {
                tried.tried += 1;
                tried.recovered += u64::from(letter.recovered);
                tried.unknown += u64::from(letter.details.unknown);
                tried.follow += letter.details.follow;
                if tried.record.is_none() {
                    let record = letter.details.record.clone();
                    tried.record = record.map(|record| TriedRecord { letter: letter.id, record });
                }
                if let Some(key) = letter.key.clone() {
                    groups.entry(key).and_modify(|known| known.letters += 1).or_insert_with(|| remaining(letter));
                }
            }
            cursor = page.next;
            if cursor.is_none() {
                break;
            }
        }
        self.recognised(tried, groups).await
    }
}

/// What would remain of a letter that failed in a try.
fn remaining(letter: TriedLetter) -> Remaining {
    let TriedDetails { reason, code, title, .. } = letter.details;
    let message = letter.message.unwrap_or_default();
    let reason = reason.unwrap_or(Reason::HandlerError);
    let title = title.unwrap_or_else(|| message.clone());
    Remaining { letters: 1, reason, code, title, cause: None, example: letter.id, message }
}

impl RemoteWorker {
    /// Leases letters of a try for so long, each with its saved payload. Letters that are no longer dead have no verdict: that is noted.
    pub async fn lease_tried(
        &self,
        id: TryId,
        (pipelines, group): (&[PipelineName], Option<&str>),
        limit: u32,
        ttl: Duration,
    ) -> Result<Vec<LetterInTry>, Error> {
        let redrive = self.redrive();
        let kept = redrive.known_try(id).await?;
        if known_of(&kept).draft.is_some() {
            // Nobody elsewhere has those rules.
            return Ok(Vec::new());
        }
        let now = redrive.now();
        let token = LeaseToken::new(now, redrive.chance.secret_bits());
        let (pipelines, group) = (pipelines.to_vec(), group.map(str::to_owned));
        let params = LeaseTried { id, pipelines, group, token, limit, until: now + ttl, now };
        let leased = redrive.store.lease_tried(params).await?;
        if leased.is_empty() {
            return Ok(Vec::new());
        }
        let lease = |job| TriedLease { id, job, token };
        let selection = Selection { ids: leased.clone(), ..Selection::default() };
        let found = redrive.find_to_try(&selection, None).await?.items;
        let mut found: HashMap<JobId, _> = found.into_iter().map(|found| (found.id, found)).collect();
        let (mut letters, mut gone) = (Vec::new(), Vec::new());
        for job in leased {
            let letter = found.remove(&job).and_then(|found| found.letter);
            let trial = letter.and_then(|letter| Some((trial_of(&letter, &kept.edits, now)?, letter)));
            match trial {
                Some((trial, letter)) => letters.push(LetterInTry { lease: lease(job), job: trial, letter }),
                None => gone.push(SettleTried { lease: lease(job), verdict: Some(unknown(job, GONE)) }),
            }
        }
        if !gone.is_empty() {
            redrive.store.settle_tried(gone).await?;
        }
        Ok(letters)
    }

    /// Extends leases of letters of tries for so long from now; says which of them hold, in their order.
    pub async fn renew_tried(&self, leases: Vec<TriedLease>, ttl: Duration) -> Result<Vec<bool>, Error> {
        let until = self.redrive().now() + ttl;
        Ok(self.redrive().store.extend_tried(leases, until).await?)
    }

    /// Notes what letters of a pipeline came to in a try; says which leases held, in their order. If they were the last, the try ends.
    pub async fn settle_tried(&self, id: TryId, pipeline: &Pipeline, ended: Vec<EndedTry>) -> Result<Vec<bool>, Error> {
        let redrive = self.redrive();
        let kept = redrive.known_try(id).await?;
        let ids = ended.iter().map(|ended| ended.lease.job).collect();
        let found = redrive.find_to_try(&Selection { ids, ..Selection::default() }, None).await?.items;
        let found: HashMap<JobId, _> = found.into_iter().map(|found| (found.id, found)).collect();
        let rules = redrive.known_rules().await;
        let judging = Judging { worker: self, pipeline, edits: &kept.edits, rules, wants_record: Cell::new(true) };
        let settle = |EndedTry { lease, verdict }: EndedTry| {
            let letter = found.get(&lease.job).and_then(|found| found.letter.as_ref());
            SettleTried { lease, verdict: judging.judge(lease.job, letter, verdict) }
        };
        let held = redrive.store.settle_tried(ended.into_iter().map(settle).collect()).await?;
        redrive.end_try_if_over(id).await?;
        Ok(held)
    }
}

/// What is needed to say what a letter came to: a failure is classified and recognised as one of a job would be.
struct Judging<'a> {
    worker: &'a RemoteWorker,
    pipeline: &'a Pipeline,
    edits: &'a Input,
    rules: Arc<CauseRules>,
    /// Whether the record of the next letter that would recover is kept: one of those that come at once is enough.
    wants_record: Cell<bool>,
}

impl Judging<'_> {
    /// What is kept of a verdict; nothing if the letter is to be tried by somebody else.
    fn judge(&self, id: JobId, letter: Option<&DeadLetter>, verdict: TryVerdict) -> Option<TriedLetter> {
        let (outcome, success, mut details) = match verdict {
            TryVerdict::Returned => return None,
            TryVerdict::Unknown(why) => return Some(unknown(id, &why)),
            TryVerdict::Failed(mut report) => {
                handler::mask(&mut report, &self.secrets());
                (Outcome::Failed(*report), None, TriedDetails::default())
            }
            TryVerdict::Done { result, follow, enqueue } => {
                let samples = enqueue.iter().filter_map(|job| serde_json::to_value(job).ok()).collect();
                let success = Success { result: result.unwrap_or_default(), handed_on: enqueue, log: None };
                (Outcome::Done, Some(success), TriedDetails::following(follow, samples))
            }
        };
        let Some(job) = letter.and_then(|letter| self.trial_of(letter)) else { return Some(unknown(id, GONE)) };
        let redrive = self.worker.redrive();
        let (outcome, result, _) = hand_on(self.pipeline, &job, (outcome, success), redrive.now());
        let attempts = job.tally.attempts;
        Some(match came_to(redrive, self.pipeline, &job, (outcome, self.worker.id())) {
            None => {
                let wanted = result.filter(|_| self.wants_record.take());
                details.record = wanted.and_then(|result| record_of(result, &self.secrets()));
                TriedLetter { id, attempts, recovered: true, key: None, message: None, details }
            }
            Some(Refailed { key, target, remaining }) => {
                let key = self.rules.resolve(&key, target.as_deref(), &remaining.message).to_owned();
                let why = details_of(&remaining);
                let details = TriedDetails { reason: why.reason, code: why.code, title: why.title, ..details };
                let message = Some(remaining.message);
                TriedLetter { id, attempts, recovered: false, key: Some(key), message, details }
            }
        })
    }

    fn secrets(&self) -> Secrets {
        self.pipeline.handler.secrets().cloned().unwrap_or_default()
    }

    fn trial_of(&self, letter: &DeadLetter) -> Option<LeasedJob> {
        trial_of(letter, self.edits, self.worker.redrive().now())
    }
}

/// A letter of which it cannot be found out what would become.
fn unknown(id: JobId, why: &str) -> TriedLetter {
    let details = TriedDetails { unknown: true, ..TriedDetails::default() };
    TriedLetter { id, attempts: 0, recovered: false, key: None, message: Some(why.to_owned()), details }
}
