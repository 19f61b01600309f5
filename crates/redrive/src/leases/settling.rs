//! Jobs that workers bring back: what is to be kept of them is kept, then they are settled.

use std::sync::Arc;

use redrive_core::actors::{Actor, Via};
use redrive_core::failures::with_sources;
use redrive_core::good::GoodPage;
use redrive_core::hand_on::{self, HandedJob};
use redrive_core::jobs::{Lease, LeasedJob, Origin};
use redrive_core::payloads::Payload;
use redrive_core::results::log_end;
use redrive_core::secrets::Secrets;
use redrive_core::settlements::{Decision, Ending, Outcome, Settlement, decide};
use redrive_core::traffic::Facts;
use redrive_store::contract::{SettleJobs, Settled};

use super::{BroughtBack, BroughtBytes, BroughtPayload, EndedJob, RemoteWorker};
use crate::dead::Withheld;
use crate::error::Error;
use crate::events::Happening;
use crate::handler::{self, HandlerError, Success};
use crate::pipeline::Pipeline;
use crate::sink::JobResult;
use crate::vault::Evidence;
use crate::worker;

/// Jobs of one pipeline on their way to being settled.
pub(super) struct Settling<'a> {
    worker: &'a RemoteWorker,
    pipeline: &'a Pipeline,
    /// What is secret to its handler: whoever brings jobs back need not know it.
    secrets: Secrets,
    /// Results to be written, each with the lease that it was brought with.
    results: Vec<(Lease, JobResult)>,
    jobs: Vec<Taken>,
    /// Why each of them is not done, though it was brought as done.
    not_done: Vec<Option<BroughtBack>>,
    /// What was handed on, and lacks something.
    withheld: Vec<Withheld>,
}

/// A job of which is kept what is to be, and how it ends.
struct Taken {
    job: LeasedJob,
    decision: Decision,
    handed_on: Vec<HandedJob>,
    /// The page that it worked from, if it is kept as one that worked, and the shape of its address.
    page: (Option<Box<GoodPage>>, Option<String>),
    /// The result as the store keeps it.
    kept_result: Option<Arc<str>>,
}

impl<'a> Settling<'a> {
    pub(super) fn of(worker: &'a RemoteWorker, pipeline: &'a Pipeline) -> Self {
        let secrets = pipeline.handler.secrets().cloned().unwrap_or_default();
        let (results, jobs, not_done, withheld) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Self { worker, pipeline, secrets, results, jobs, not_done, withheld }
    }

    /// Keeps what is to be kept of a job, and decides how it ends.
    pub(super) async fn take(&mut self, mut job: LeasedJob, ended: EndedJob) -> Result<(), String> {
        let EndedJob { outcome, result, log, is_written, handed_on, payload, duration, .. } = ended;
        let redrive = &self.worker.redrive;
        let brought_done = outcome == Outcome::Done;
        let with_result = !brought_done || result.is_some();
        let success = brought_done.then(|| Success { result: result.unwrap_or_default(), handed_on, log: None });
        let (mut outcome, result, mut handed_on) =
            worker::run::hand_on(self.pipeline, &job, (outcome, success), redrive.now());
        // What it hands on came over the network, whatever the job did.
        handed_on.iter_mut().for_each(|handed| handed.job.origin = Some(Origin::over_network(hand_on::ORIGIN_KIND)));
        if let Some(setting) = &self.worker.setting {
            let (whole, withheld) = redrive.without_secrets(setting, handed_on);
            handed_on = whole;
            self.withheld.extend(withheld);
        }
        if let Outcome::Failed(report) | Outcome::Crashed(report) = &mut outcome {
            handler::mask(report, &self.secrets);
        }
        let failed = matches!(outcome, Outcome::Failed(_) | Outcome::Crashed(_));
        let can_be_good =
            brought_done && outcome == Outcome::Done && payload.is_some() && self.pipeline.vault.is_some();
        let page = redrive.good.page_of(self.pipeline, &job, can_be_good, redrive.now());
        let due = page.as_ref().is_some_and(|page| page.is_due);
        let evidence = Evidence::new(job.lease.job, self.pipeline).for_good(due);
        let brought = match payload {
            Some(payload) => self.keep(&evidence, payload, failed).await,
            None => Ok(None),
        };
        let worked = brought.as_ref().ok().and_then(Option::as_ref).filter(|_| can_be_good);
        let page = redrive.good.end(self.pipeline, page, worked, redrive.now());
        // What was kept as a page that worked is of no use to its job.
        let brought = brought?.filter(|_| evidence.is_wanted_by_job(failed));
        // What it worked from is the evidence of how it failed.
        let kept = brought.or_else(|| job.saved.clone().filter(|_| failed));
        let tracked = self.pipeline.tracked_in(&job.input);
        let chance = redrive.chance.fraction();
        let ending = Ending { at: redrive.now(), duration, worker: Some(self.worker.id), chance };
        let mut decision = decide(&self.pipeline.policy, &job, outcome, ending);
        decision.keep(kept);
        decision.facts = Facts { tracked, ..Facts::default() };
        let dies = decision.buries();
        let failure = decision.failure.as_ref().filter(|_| brought_done);
        self.not_done.push(failure.map(|failure| BroughtBack::NotDone { why: failure.message.clone(), dies }));
        let mut kept_result = None;
        if let Some(result) = result.filter(|_| with_result) {
            let (id, pipeline, round) = (job.lease.job, job.pipeline.clone(), job.round.clone());
            // Nobody asks for them after this.
            let (key, input) = (job.key.take(), std::mem::take(&mut job.input));
            let log = log.map(log_end);
            let result = JobResult { id, pipeline, round, key, input, result, log };
            kept_result = self.pipeline.kept_line(&result);
            if !is_written && self.pipeline.sink.writes() {
                self.results.push((job.lease, result));
            }
        }
        self.jobs.push(Taken { job, decision, handed_on, page, kept_result });
        Ok(())
    }

    /// Keeps what a job worked on, if that is wanted.
    async fn keep(
        &self,
        evidence: &Evidence,
        payload: BroughtPayload,
        failed: bool,
    ) -> Result<Option<Payload>, String> {
        if !evidence.is_wanted(failed) {
            return Ok(None);
        }
        let BroughtPayload { bytes, mut response, total_bytes } = payload;
        self.secrets.mask_response(&mut response);
        match bytes {
            BroughtBytes::Here(capture) => evidence.save(*capture, response, total_bytes).await.map_err(unkept)?,
            BroughtBytes::Uploaded { hash, size_bytes } => {
                let truncated = total_bytes.is_some_and(|total| total > size_bytes);
                return Ok(Some(Payload { hash, size_bytes, truncated, total_bytes, lost: None, response }));
            }
        }
        Ok(evidence.take().map(|kept| kept.payload))
    }

    /// Writes the results and what was handed on without all of its input, then settles.
    pub(super) async fn settle(mut self) -> Result<Vec<BroughtBack>, Error> {
        if self.jobs.is_empty() {
            return Ok(Vec::new());
        }
        let Self { worker, pipeline, .. } = self;
        let (leases, results): (Vec<Lease>, Vec<JobResult>) = std::mem::take(&mut self.results).into_iter().unzip();
        if results.is_empty() {
            return self.settle_written().await;
        }
        let jobs = self.jobs.len();
        let mut claim = worker.redrive.claim_results(leases).await?;
        // What another request settled meanwhile was written by that one.
        let results: Vec<_> = results.into_iter().filter(|result| claim.has(result.id)).collect();
        let settled = claim.hold(async {
            pipeline.sink.write(&results).await?;
            self.settle_written().await
        });
        match settled.await {
            // The lease holds: whoever has it brings the job again.
            Err(error @ Error::Sink { .. }) => {
                claim.give_up().await;
                Ok(vec![BroughtBack::Unkept(with_sources(&error)); jobs])
            }
            settled => settled,
        }
    }

    async fn settle_written(self) -> Result<Vec<BroughtBack>, Error> {
        let RemoteWorker { redrive, id, host, .. } = self.worker;
        // Known by their keys: those of a settlement that is repeated are not taken in twice.
        redrive.withhold(self.withheld, &Actor::new(host, Via::Automatic)).await?;
        let rules = match self.jobs.iter().any(|taken| taken.decision.buries()) {
            true => redrive.known_rules().await,
            false => Default::default(),
        };
        let settlement = |Taken { job, decision, handed_on, page: (good, shape), kept_result }| {
            let settlement = Settlement::new(&job, decision, &rules).tried_with(self.pipeline.definition());
            settlement.handing_on(handed_on).about_page(good, shape).with_result(kept_result)
        };
        let settlements: Vec<Settlement> = self.jobs.into_iter().map(settlement).collect();
        let now = redrive.now();
        let heard = if redrive.events.wants_jobs() { settlements.clone() } else { Vec::new() };
        let params = SettleJobs { settlements, worker: *id, breakers: Vec::new(), keep_late: true, now };
        let answers = redrive.settle(&self.pipeline.policy.breaker, params).await?;
        for (settlement, _) in heard.iter().zip(&answers).filter(|(_, answer)| **answer == Settled::Applied) {
            redrive.events.tell_often(now, Some(*id), || Happening::settled(&self.pipeline.name, settlement));
        }
        let brought = |(answer, not_done): (_, Option<BroughtBack>)| match answer {
            Settled::Applied => not_done.unwrap_or(BroughtBack::Settled),
            Settled::Stale => BroughtBack::Stale,
            Settled::PayloadGone => BroughtBack::Unkept("its payload was collected before it was settled".to_owned()),
        };
        Ok(answers.into_iter().zip(self.not_done).map(brought).collect())
    }
}

fn unkept(error: HandlerError) -> String {
    match error {
        HandlerError::Unkept(why) | HandlerError::Unavailable(why) => why,
        HandlerError::Failed(report) | HandlerError::Crashed(report) => report.message,
    }
}
