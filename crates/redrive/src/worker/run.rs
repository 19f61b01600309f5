//! Running one job, from its start to its outcome.

use std::sync::Arc;
use std::time::{Duration, Instant};

use redrive_core::failures::{FailureReport, Reason};
use redrive_core::hand_on::{HandedJob, handed_jobs};
use redrive_core::jobs::LeasedJob;
use redrive_core::results::{is_empty, log_end};
use redrive_core::rules::result_of_failure;
use redrive_core::settlements::Outcome;
use redrive_core::time::Timestamp;
use redrive_core::traffic::Facts;
use serde_json::Value;
use tokio::sync::RwLock;
use tokio::sync::mpsc::UnboundedSender;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::announce::{Announced, note_start};
use super::context::Context;
use super::holds::Trouble;
use super::settle::Ended;
use crate::events::Happening;
use crate::handler::{Handler, HandlerError, Isolation, Job, Progress, Success, panic_report};
use crate::pipeline::Pipeline;
use crate::vault::{Evidence, Kept};

/// How much longer than its deadline a handler that keeps its own may take.
pub(super) const OWN_DEADLINE_SLACK: Duration = Duration::from_secs(5);

/// How soon after a child the worker is told to end, if all of them are.
const STOP_FOLLOWS: Duration = Duration::from_secs(1);

/// Jobs that share this process hold it together; a suspect holds it alone.
static GATE: RwLock<()> = RwLock::const_new(());

/// A job in the local queue.
pub(super) struct Waiting {
    pub(super) job: LeasedJob,
    /// Cancelled if the worker loses the job.
    pub(super) ended: CancellationToken,
    /// Whether it may begin, if it was announced.
    pub(super) announced: Option<Announced>,
}

/// Runs a job and hands its end to the settler; says how long it ran.
pub(super) async fn run(
    context: Arc<Context>,
    pipeline: Pipeline,
    waiting: Waiting,
    settler: UnboundedSender<Ended>,
) -> Duration {
    let _watched = context.watched("running a task");
    let Waiting { job, ended, announced } = waiting;
    let Some(_slot) = context.slot(&pipeline).await else {
        let _ = settler.send(Ended::unstarted(job));
        return Duration::ZERO;
    };
    let begun = Instant::now();
    let page = context.redrive.good.page_of(&pipeline, &job, pipeline.vault.is_some(), context.now());
    let evidence = Evidence::new(job.lease.job, &pipeline).for_good(page.as_ref().is_some_and(|page| page.is_due));
    let progress = Progress::new(job.progress.clone(), Arc::clone(&context.redrive.store), job.lease);
    let work = Job::new(&job, context.id, &pipeline, evidence.clone(), progress);
    let notes = work.notes.clone();
    let _runs = context.running.begin(notes.clone());
    let (outcome, result) = tokio::select! {
        outcome = attempt(&context, &pipeline, &job, work, announced) => outcome,
        // Somebody else has the job, or it was cancelled: whatever came out of it would not count.
        () = ended.cancelled() => (Outcome::Returned, None),
        () = context.hurry.cancelled() => (Outcome::Returned, None),
    };
    let duration = begun.elapsed();
    let log = result.as_ref().and_then(|success| success.log.clone()).map(log_end);
    let worked = outcome == Outcome::Done;
    let (outcome, result, handed_on) = hand_on(&pipeline, &job, (outcome, result), context.now());
    let failed = matches!(outcome, Outcome::Failed(_) | Outcome::Crashed(_));
    let kept = evidence.take();
    let page_that_worked = kept.as_ref().filter(|_| worked && outcome == Outcome::Done).map(|kept| &kept.payload);
    let (good, shape) = context.redrive.good.end(&pipeline, page, page_that_worked, context.now());
    // What was kept on the way is of no use after all if the attempt went well.
    let kept = kept.filter(|_| evidence.is_wanted_by_job(failed));
    // What it worked from is the evidence of how it failed.
    let payload = kept.or_else(|| job.saved.clone().filter(|_| failed).map(Kept::elsewhere));
    let facts = Facts { tracked: pipeline.tracked_in(&job.input), ..notes.take() };
    // The settler only goes away after every job has ended.
    let duration_told = Some(duration);
    let _ = settler.send(Ended {
        job,
        outcome,
        result,
        log,
        kept_result: None,
        handed_on,
        payload,
        facts,
        duration: duration_told,
        good,
        shape,
    });
    duration
}

/// Returns how an attempt ended, its result and the jobs that it hands on. A failure that a rule takes for a result is a success. A
/// job that may not hand on is not done: its pipeline is set up wrongly. Nor is one without a result, where one is required.
pub(crate) fn hand_on(
    pipeline: &Pipeline,
    job: &LeasedJob,
    (outcome, success): (Outcome, Option<Success>),
    now: Timestamp,
) -> (Outcome, Option<Value>, Vec<HandedJob>) {
    if let Outcome::Failed(report) = &outcome
        && let Some(result) = result_of_failure(&pipeline.policy.rules, report)
    {
        return (Outcome::Done, Some(result), Vec::new());
    }
    let Some(Success { result, handed_on, log }) = success else { return (outcome, None, Vec::new()) };
    if pipeline.result_required && handed_on.is_empty() && is_empty(&result) {
        let report = FailureReport::new(Reason::HandlerError, "it succeeded without a result, and one is required");
        let report = FailureReport { stderr: log.map(log_end), ..report.with_code("no_result") };
        return (Outcome::Failed(report), None, Vec::new());
    }
    match handed_jobs(job, &pipeline.receivers, handed_on, now) {
        Ok(jobs) => (outcome, Some(result), jobs),
        Err(why) => {
            let report = FailureReport::new(Reason::Misconfigured, why).with_code("hand_on");
            (Outcome::Failed(FailureReport { stderr: log.map(log_end), ..report }), None, Vec::new())
        }
    }
}

async fn attempt(
    context: &Context,
    pipeline: &Pipeline,
    job: &LeasedJob,
    work: Job,
    announced: Option<Announced>,
) -> (Outcome, Option<Success>) {
    if job.saved.is_some() && work.saved.is_none() {
        let message = "this pipeline cannot work from saved payloads: it has no vault, or its handler asks anew";
        return (Outcome::Failed(FailureReport::new(Reason::Misconfigured, message)), None);
    }
    let (own_process, slack) = match pipeline.handler.isolation() {
        Isolation::OwnProcess => (Some(&pipeline.handler), OWN_DEADLINE_SLACK),
        Isolation::Shared => (pipeline.isolated.as_ref().filter(|_| job.tally.suspect), Duration::ZERO),
    };
    if let Some(handler) = own_process {
        // Whoever cancels a replay wants to know which of its letters had begun; other jobs need not pay for it.
        if job.tally.replays > 0 && !note_start(context, vec![job.lease], true).await {
            return (Outcome::Returned, None);
        }
        return handle(context, pipeline, handler, work, slack).await;
    }
    let (_alone, _together) = match job.tally.suspect {
        true => (Some(GATE.write().await), None),
        false => (None, Some(GATE.read().await)),
    };
    if context.stop.is_cancelled() {
        return (Outcome::Returned, None);
    }
    let noted = match announced {
        Some(announced) => announced.may_begin().await,
        None => note_start(context, vec![job.lease], false).await,
    };
    if !noted {
        return (Outcome::Returned, None);
    }
    let ended = handle(context, pipeline, &pipeline.handler, work, Duration::ZERO).await;
    if job.tally.suspect {
        // It is settled in a while, but others begin as soon as it no longer holds the gate. If one of them takes the worker down, that
        // says nothing about this one, which did nothing of the kind alone.
        note_start(context, vec![job.lease], true).await;
    }
    ended
}

async fn handle(
    context: &Context,
    pipeline: &Pipeline,
    handler: &Arc<dyn Handler>,
    work: Job,
    slack: Duration,
) -> (Outcome, Option<Success>) {
    let begun_at = context.now();
    let evidence = work.evidence.clone();
    context.tell_often(|| Happening::JobBegun { pipeline: pipeline.name.clone(), job: work.id, attempt: work.attempt });
    let ended = match guarded(pipeline, handler, work, slack).await {
        Ok(ended) => ended,
        Err((trouble, why)) => {
            context.hold_pipeline(&pipeline.name, trouble, why);
            return (Outcome::Returned, None);
        }
    };
    context.works(&pipeline.name, Trouble::Handler, begun_at);
    if evidence.is_kept() {
        context.works(&pipeline.name, Trouble::Evidence, begun_at);
    }
    match ended {
        (Outcome::Crashed(report), _) => (crashed(context, report).await, None),
        ended => ended,
    }
}

/// Runs a handler in a task of its own, so that a panic ends the job and not the worker, and for no longer than it may
/// take. It is an error if the handler cannot work at all, or what is to be kept cannot be.
pub(crate) async fn guarded(
    pipeline: &Pipeline,
    handler: &Arc<dyn Handler>,
    work: Job,
    slack: Duration,
) -> Result<(Outcome, Option<Success>), (Trouble, String)> {
    let deadline = pipeline.policy.deadline;
    let handler = Arc::clone(handler);
    let task = AbortOnDropHandle::new(tokio::spawn(async move { handler.run(work).await }));
    let outcome = match tokio::time::timeout(deadline + slack, task).await {
        Ok(Ok(Ok(result))) => return Ok((Outcome::Done, Some(result))),
        Ok(Ok(Err(HandlerError::Failed(report)))) => Outcome::Failed(*report),
        Ok(Ok(Err(HandlerError::Crashed(report)))) => Outcome::Crashed(*report),
        Ok(Ok(Err(HandlerError::Unavailable(why)))) => return Err((Trouble::Handler, why)),
        Ok(Ok(Err(HandlerError::Unkept(why)))) => return Err((Trouble::Evidence, why)),
        Ok(Err(ended)) => panic_report(ended).map_or(Outcome::Returned, Outcome::Failed),
        Err(_) => {
            let report = FailureReport::new(Reason::Timeout, format!("no result after {deadline:?}"));
            Outcome::Failed(report.with_code("deadline"))
        }
    };
    Ok((outcome, None))
}

/// A signal that asks a process to end may have gone to the worker too, and then says nothing about the job.
async fn crashed(context: &Context, report: FailureReport) -> Outcome {
    let asked = matches!(report.code.as_deref(), Some("SIGTERM" | "SIGINT" | "SIGHUP"));
    if asked && tokio::time::timeout(STOP_FOLLOWS, context.ending.cancelled()).await.is_ok() {
        return Outcome::Returned;
    }
    Outcome::Crashed(report)
}
