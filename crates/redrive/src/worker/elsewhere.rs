//! One attempt of a job that a server leased to this process: the handler runs here, with all that it needs of a worker; what becomes of
//! the job is settled there.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use redrive_core::failures::{Disposition, FailureReport, Reason};
use redrive_core::hand_on::HandedOn;
use redrive_core::ids::WorkerId;
use redrive_core::jobs::LeasedJob;
use redrive_core::results::log_end;
use redrive_core::settlements::{Destination, Ending, Outcome, decide};
use redrive_core::time::Timestamp;
use serde_json::Value;

use super::run::{OWN_DEADLINE_SLACK, guarded, hand_on};
use super::running::Running;
use crate::chance::{Chance, SystemChance};
use crate::good::GoodPages;
use crate::handler::{Isolation, Job, NotesProgress, Progress, Saved};
use crate::leases::BroughtPayload;
use crate::pipeline::Pipeline;
use crate::vault::Evidence;
use crate::worker::JobEnd;

/// What is needed to run a job that a server leased.
pub struct Leased {
    /// The job.
    pub job: LeasedJob,
    /// The file with the saved payload that it is to be worked on from, if it is.
    pub saved: Option<PathBuf>,
    /// Who runs it.
    pub worker: WorkerId,
    /// Where it is noted how far it gets.
    pub notes: Arc<dyn NotesProgress>,
}

/// How an attempt ended.
pub struct Attempted {
    /// The job.
    pub job: LeasedJob,
    /// How it ended. What the policy here would bury is to be buried.
    pub outcome: Outcome,
    /// Its result, if it is done.
    pub result: Option<Value>,
    /// Lines that it printed before its result.
    pub log: Option<String>,
    /// The jobs that it hands on, if it is done.
    pub handed_on: Vec<HandedOn>,
    /// What it worked on, as evidence, if it is to be kept.
    pub payload: Option<BroughtPayload>,
    /// Whether that is but a page that worked: nothing depends on its being kept.
    pub only_good: bool,
    /// How long it ran.
    pub duration: Duration,
    /// Returns how it counts, by the policy here.
    pub end: JobEnd,
    /// Whether it was attempted, and did not fail for its target's sake.
    pub moves: bool,
}

impl Attempted {
    /// A job that was not begun, or not to be ended.
    pub const fn returned(job: LeasedJob) -> Self {
        let (result, payload) = (None, None);
        let (outcome, duration) = (Outcome::Returned, Duration::ZERO);
        Self {
            job,
            outcome,
            result,
            log: None,
            handed_on: Vec::new(),
            payload,
            only_good: false,
            duration,
            end: JobEnd::Other,
            moves: false,
        }
    }
}

/// The longest result that a server is sent, as JSON, in bytes.
const RESULT_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Returns whether a result is short enough to be sent to a server.
pub fn is_sendable(result: &Value) -> bool {
    serde_json::to_string(result).is_ok_and(|text| text.len() <= RESULT_BYTES_MAX)
}

/// Fails a job whose result could neither be written to a file here nor be sent: it would only be printed.
fn with_place_for_result(pipeline: &Pipeline, outcome: Outcome, result: Option<Value>) -> (Outcome, Option<Value>) {
    let is_lost = |result: &Value| !pipeline.has_results_file() && !is_sendable(result);
    if outcome != Outcome::Done || !result.as_ref().is_some_and(is_lost) {
        return (outcome, result);
    }
    let message = format!(
        "the result has more than {} MiB, which is too much to send to the server: name a file for results with --out",
        RESULT_BYTES_MAX >> 20
    );
    let report = FailureReport::new(Reason::Misconfigured, message).with_code("result_too_large");
    (Outcome::Failed(report), None)
}

/// Runs a job; it is an error, and nothing of the job, if the pipeline's handler cannot work at all.
pub async fn attempt(
    pipeline: &Pipeline,
    leased: Leased,
    (running, good): (&Running, &GoodPages),
    now: impl Fn() -> Timestamp,
) -> Result<Attempted, (LeasedJob, String)> {
    let Leased { job, saved, worker, notes } = leased;
    let begun = Instant::now();
    let page = good.page_of(pipeline, &job, true, now());
    let evidence = Evidence::taken(pipeline).for_good(page.as_ref().is_some_and(|page| page.is_due));
    let progress = Progress::elsewhere(job.progress.clone(), notes, job.lease);
    let mut work = Job::new(&job, worker, pipeline, evidence.clone(), progress);
    let able = pipeline.handler.works_from_saved(false);
    work.saved = job.saved.clone().zip(saved).filter(|_| able).map(|(payload, file)| Saved::in_file(payload, file));
    let _runs = running.begin(work.notes.clone());
    let (outcome, success) = if job.saved.is_some() && work.saved.is_none() {
        let message = "this pipeline cannot work from saved payloads: its handler asks anew";
        (Outcome::Failed(FailureReport::new(Reason::Misconfigured, message)), None)
    } else {
        let (handler, slack) = match pipeline.handler.isolation() {
            Isolation::OwnProcess => (&pipeline.handler, OWN_DEADLINE_SLACK),
            Isolation::Shared => (&pipeline.handler, Duration::ZERO),
        };
        match guarded(pipeline, handler, work, slack).await {
            Ok(ended) => ended,
            Err((_, why)) => {
                good.brought(pipeline, page, false);
                return Err((job, why));
            }
        }
    };
    let raw = success.as_ref().map(|success| success.handed_on.clone()).unwrap_or_default();
    let log = success.as_ref().and_then(|success| success.log.clone()).map(log_end);
    let worked = outcome == Outcome::Done;
    let (outcome, result, _) = hand_on(pipeline, &job, (outcome, success), now());
    let (mut outcome, result) = with_place_for_result(pipeline, outcome, result);
    let failed = matches!(outcome, Outcome::Failed(_) | Outcome::Crashed(_));
    let payload = evidence.take_brought().filter(|_| evidence.is_wanted(failed));
    let only_good = payload.is_some() && !evidence.is_wanted_by_job(failed);
    good.brought(pipeline, page, worked && payload.is_some() && outcome == Outcome::Done);
    let duration = begun.elapsed();
    let ending = Ending { at: now(), duration: Some(duration), worker: Some(worker), chance: SystemChance.fraction() };
    let decision = decide(&pipeline.policy, &job, outcome.clone(), ending);
    if let Outcome::Failed(report) = &mut outcome {
        report.disposition = match &decision.destination {
            Destination::Dead { .. } => Some(Disposition::Dead),
            Destination::Discarded { .. } => Some(Disposition::Discard),
            Destination::Done | Destination::Queue { .. } => report.disposition,
        };
    }
    let attempted = decision.failure.is_some() || decision.destination == Destination::Done;
    let moves = attempted && !decision.signal.is_trouble();
    let end = JobEnd::from_decision(&decision);
    let handed_on = if outcome == Outcome::Done { raw } else { Vec::new() };
    Ok(Attempted { job, outcome, result, log, handed_on, payload, only_good, duration, end, moves })
}
