//! Settling what came of jobs: results are written here first, then the server is told, of many at once. One whose lease was lost changes
//! nothing.

use std::time::Duration;

use redrive::sink::JobResult;
use redrive::worker::JobEnd;
use redrive::worker::elsewhere::{Attempted, is_sendable};
use redrive::{Error, ErrorKind, HandedOn, Pipeline};
use redrive_core::failures::{FailureReport, Reason};
use redrive_core::ids::PipelineName;
use redrive_core::jobs::Lease;
use redrive_core::settlements::Outcome;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Shared, evidence};

/// The most jobs that are settled at once.
const AT_ONCE: usize = 200;

/// The most that is sent at once, in bytes, unless one job alone is more.
const BYTES_AT_ONCE: usize = 4 * 1024 * 1024;

/// How long to wait before what could not be kept is brought again.
const AGAIN_AFTER: Duration = Duration::from_secs(1);

/// How long who hurries waits for a server that is away.
pub(super) const LAST_MOMENT: Duration = Duration::from_secs(1);

#[derive(Deserialize)]
struct Answer {
    /// In the order in which they were sent.
    jobs: Vec<Settled>,
}

#[derive(Deserialize)]
struct Settled {
    result: String,
    #[serde(default)]
    why: Option<String>,
    #[serde(default)]
    died: bool,
}

/// A job on its way back.
struct Brought {
    lease: Lease,
    /// Its number, for people.
    number: i64,
    body: Value,
    end: JobEnd,
    handed_on: Vec<PipelineName>,
    /// Set if the server refused the result: the job is settled as failed then.
    is_refused: bool,
}

/// Settles jobs of a pipeline; says how many were settled.
pub(super) async fn settle(shared: &Shared, pipeline: &Pipeline, mut ended: Vec<Attempted>) -> Result<usize, Error> {
    // What was lost is somebody else's.
    ended.retain(|attempted| shared.is_kept(attempted));
    let written = if shared.is_try() { Ok(()) } else { write(pipeline, &mut ended).await };
    let mut brought = Vec::with_capacity(ended.len());
    for attempted in ended {
        brought.push(Brought::of(shared, pipeline, attempted).await?);
    }
    let mut settled = 0;
    for some in batches(brought) {
        settled += bring(shared, some).await?;
    }
    written.map(|()| settled)
}

/// Writes the results of what is done. If that cannot be, the jobs are not done: they go back to the queue.
async fn write(pipeline: &Pipeline, ended: &mut [Attempted]) -> Result<(), Error> {
    let done = ended.iter().filter(|attempted| attempted.outcome == Outcome::Done);
    let result = |attempted: &Attempted| {
        let job = &attempted.job;
        attempted.result.clone().map(|result| JobResult {
            id: job.lease.job,
            pipeline: job.pipeline.clone(),
            round: job.round.clone(),
            key: job.key.clone(),
            input: job.input.clone(),
            result,
            log: attempted.log.clone(),
        })
    };
    let results: Vec<JobResult> = done.filter_map(result).collect();
    if results.is_empty() {
        return Ok(());
    }
    let written = pipeline.write(&results).await;
    if written.is_err() {
        for attempted in ended.iter_mut().filter(|attempted| attempted.outcome == Outcome::Done) {
            (attempted.outcome, attempted.end) = (Outcome::Returned, JobEnd::Other);
            attempted.handed_on.clear();
        }
    }
    written
}

/// Jobs in groups that are sent at once.
fn batches(brought: Vec<Brought>) -> Vec<Vec<Brought>> {
    let (mut batches, mut bytes) = (Vec::<Vec<Brought>>::new(), 0);
    for one in brought {
        let length = one.body.to_string().len();
        match batches.last_mut() {
            Some(last) if last.len() < AT_ONCE && bytes + length <= BYTES_AT_ONCE => {
                bytes += length;
                last.push(one);
            }
            _ => {
                bytes = length;
                batches.push(vec![one]);
            }
        }
    }
    batches
}

/// Brings jobs back until each is settled or lost; says how many were settled.
async fn bring(shared: &Shared, mut jobs: Vec<Brought>) -> Result<usize, Error> {
    let mut settled = 0;
    while !jobs.is_empty() {
        let bodies: Vec<_> = jobs.iter().map(|job| &job.body).collect();
        let asked = json!({ "worker": shared.id, "jobs": bodies, "runs": shared.runs });
        let ask = shared.server.post(&["leases", "settle"]).body(&asked)?;
        let answer = tokio::select! {
            answer = ask.read::<Answer>() => answer,
            () = hurried(shared) => {
                let left = jobs.len();
                tracing::warn!(left, "the server does not answer: what came of these tasks is not settled, they run again");
                return Ok(settled);
            }
        };
        let answer = match answer {
            // Of several one may be what is refused.
            Err(error) if error.kind() == ErrorKind::Invalid && jobs.len() > 1 => {
                for job in jobs {
                    settled += Box::pin(bring(shared, vec![job])).await?;
                }
                return Ok(settled);
            }
            // What came of it cannot be taken, however often it is brought: that is what failed.
            Err(error) if is_too_large(&error) && !jobs[0].is_refused => {
                jobs[0].refuse(&error);
                continue;
            }
            Err(error) if is_too_large(&error) => {
                let job = &jobs[0];
                shared.held().remove(&job.lease);
                tracing::warn!(task = job.number, %error, "a task cannot be settled: it runs again when its lease is over");
                return Ok(settled);
            }
            answer => answer?,
        };
        let mut again = Vec::new();
        for (job, Settled { result, why, died }) in jobs.into_iter().zip(answer.jobs) {
            match result.as_str() {
                "ok" => {
                    settled += 1;
                    shared.held().remove(&job.lease);
                    match why {
                        None => shared.done.note(job.lease.job, job.end, job.handed_on),
                        Some(why) => {
                            tracing::warn!(
                                task = job.number,
                                why,
                                "the server takes a task that is done here for failed"
                            );
                            let end = if died { JobEnd::Died } else { JobEnd::Other };
                            shared.done.note(job.lease.job, end, Vec::new());
                        }
                    }
                }
                "unkept" if !shared.hurry.is_cancelled() => {
                    tracing::warn!(task = job.number, why, "the server cannot keep what belongs to a task for now");
                    again.push(job);
                }
                _ => {
                    shared.held().remove(&job.lease);
                    tracing::warn!(
                        task = job.number,
                        "a task was settled too late: its lease was lost, another worker has it"
                    );
                }
            }
        }
        jobs = again;
        if !jobs.is_empty() {
            tokio::time::sleep(AGAIN_AFTER).await;
        }
    }
    Ok(settled)
}

/// Returns true if a server refuses a request for its length: it would do so again.
fn is_too_large(error: &Error) -> bool {
    matches!(error, Error::Server { code, .. } if code == "too_large")
}

/// Returns when who hurries has waited long enough.
async fn hurried(shared: &Shared) {
    shared.hurry.cancelled().await;
    tokio::time::sleep(LAST_MOMENT).await;
}

impl Shared {
    /// Whether the lease of a job is still this worker's, as far as it knows. It says so if not.
    fn is_kept(&self, attempted: &Attempted) -> bool {
        let lease = &attempted.job.lease;
        let kept = self.held().get(lease).is_some_and(|lost| !lost.is_cancelled());
        if !kept {
            self.held().remove(lease);
            tracing::warn!(task = attempted.job.number, "the lease of a task was lost: another worker has it");
        }
        kept
    }
}

impl Brought {
    /// How a job ended, as a server takes it. It does not write a result to its own file that was written here.
    async fn of(shared: &Shared, pipeline: &Pipeline, attempted: Attempted) -> Result<Self, Error> {
        let Attempted { job, outcome, result, log, handed_on, payload, only_good, duration, end, .. } = attempted;
        let receiver = |handed: &HandedOn| handed.pipeline.clone().unwrap_or_else(|| pipeline.name().clone());
        let is_done = outcome == Outcome::Done;
        let (verdict, failure) = match outcome {
            Outcome::Done => ("done", None),
            Outcome::Failed(report) => ("failed", Some(report)),
            Outcome::Crashed(report) => ("crashed", Some(report)),
            Outcome::Returned => ("returned", None),
        };
        let duration_ms = u64::try_from(duration.as_millis()).ok();
        let mut body = json!({ "lease": shared.text_of(&job.lease), "verdict": verdict, "duration_ms": duration_ms });
        if let Some(failure) = failure {
            body["failure"] = json!(failure);
        }
        if !handed_on.is_empty() {
            body["enqueue"] = json!(handed_on);
        }
        if let Some(result) = result.filter(|result| is_done && is_sendable(result)) {
            body["result"] = result;
            if let Some(log) = log.filter(|_| !shared.is_try()) {
                body["log"] = log.into();
            }
            // Of a try nothing is written here: what a letter would come to is shown there.
            if !shared.is_try() && pipeline.has_results_file() {
                body["written"] = true.into();
            }
        }
        if let Some(payload) = payload.filter(|_| !shared.is_try()) {
            let told = match evidence::told(&shared.server, payload).await {
                // Nothing depends on it: the next page that works is as good.
                Err(error) if only_good => {
                    tracing::debug!(%error, "a page that worked was not kept");
                    None
                }
                told => told?,
            };
            if let Some(told) = told {
                body["payload"] = told;
            }
        }
        // In a try what fails is counted.
        let end = if shared.is_try() && matches!(verdict, "failed" | "crashed") { JobEnd::Died } else { end };
        let handed_on = handed_on.iter().map(receiver).collect();
        Ok(Self { lease: job.lease, number: job.number, body, end, handed_on, is_refused: false })
    }

    /// Has it fail, because the server refuses what came of it.
    fn refuse(&mut self, why: &Error) {
        let report = FailureReport::new(Reason::Misconfigured, format!("the server refuses what came of it: {why}"));
        self.body = json!({
            "lease": self.body["lease"],
            "verdict": "failed",
            "duration_ms": self.body["duration_ms"],
            "failure": report.with_code("settlement_refused"),
        });
        (self.end, self.is_refused) = (JobEnd::Died, true);
        self.handed_on.clear();
    }
}

#[cfg(test)]
mod tests {
    use redrive_core::ids::{JobId, LeaseToken};
    use redrive_core::time::Timestamp;

    use super::*;

    fn job(bytes: usize) -> Brought {
        let at = Timestamp::from_millis(1);
        let lease = Lease { job: JobId::new(at, 1), token: LeaseToken::new(at, 2), epoch: 3 };
        let body = Value::from("x".repeat(bytes));
        Brought { lease, number: 1, body, end: JobEnd::Done, handed_on: Vec::new(), is_refused: false }
    }

    #[test]
    fn many_are_settled_at_once_and_no_request_is_too_long() {
        let lengths = |jobs: Vec<Brought>| batches(jobs).iter().map(Vec::len).collect::<Vec<_>>();
        assert!(lengths(Vec::new()).is_empty());
        assert_eq!(lengths((0..450).map(|_| job(10)).collect()), [200, 200, 50]);
        assert_eq!(lengths((0..5).map(|_| job(BYTES_AT_ONCE / 2 - 10)).collect()), [2, 2, 1]);
        assert_eq!(lengths(vec![job(BYTES_AT_ONCE * 2), job(1)]), [1, 1], "one that is long goes alone");
    }
}
