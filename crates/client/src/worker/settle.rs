//! Settling what came of jobs: results are written here first, then the server is told. One whose lease was lost changes nothing.

use std::time::Duration;

use data_encoding::BASE64;
use redrive::leases::{BroughtBytes, BroughtPayload};
use redrive::sink::JobResult;
use redrive::worker::elsewhere::Attempted;
use redrive::{Error, Pipeline};
use redrive_core::settlements::Outcome;
use serde::Deserialize;
use serde_json::{Value, json};

use super::Shared;

/// The most of a payload that is sent, in bytes: a request has an end.
const PAYLOAD_BYTES_MAX: usize = 8 * 1024 * 1024;

/// How long to wait before what could not be kept is brought again.
const AGAIN_AFTER: Duration = Duration::from_secs(1);

#[derive(Deserialize)]
struct Answer {
    jobs: Vec<Settled>,
}

#[derive(Deserialize)]
struct Settled {
    lease: String,
    result: String,
    #[serde(default)]
    why: Option<String>,
}

/// Settles jobs of a pipeline; says how many were settled.
pub(super) async fn settle(shared: &Shared, pipeline: &Pipeline, mut ended: Vec<Attempted>) -> Result<usize, Error> {
    // What was lost is somebody else's.
    ended.retain(|attempted| shared.held().get(&attempted.job.lease).is_some_and(|lost| !lost.is_cancelled()));
    let written = write(pipeline, &mut ended).await;
    let mut settled = 0;
    for attempted in ended {
        let (job, done, dies) = (attempted.job.lease, attempted.outcome == Outcome::Done, attempted.dies);
        let receiver = |handed: &redrive::HandedOn| handed.pipeline.clone().unwrap_or_else(|| pipeline.name().clone());
        let handed_on: Vec<_> = attempted.handed_on.iter().map(receiver).collect();
        let body = told(attempted).await;
        let is_settled = bring(shared, body).await?;
        shared.held().remove(&job);
        if is_settled {
            settled += 1;
            shared.done.note(job.job, done, dies, handed_on);
        }
    }
    written.map(|()| settled)
}

/// Writes the results of what is done. If that cannot be, the jobs are not done: they go back to the queue.
async fn write(pipeline: &Pipeline, ended: &mut [Attempted]) -> Result<(), Error> {
    let done = ended.iter_mut().filter(|attempted| attempted.outcome == Outcome::Done);
    let result = |attempted: &mut Attempted| {
        let job = &attempted.job;
        attempted.result.take().map(|result| JobResult {
            id: job.lease.job,
            pipeline: job.pipeline.clone(),
            round: job.round.clone(),
            key: job.key.clone(),
            input: job.input.clone(),
            result,
        })
    };
    let results: Vec<JobResult> = done.filter_map(result).collect();
    if results.is_empty() {
        return Ok(());
    }
    let written = pipeline.write(&results).await;
    if written.is_err() {
        for attempted in ended.iter_mut().filter(|attempted| attempted.outcome == Outcome::Done) {
            attempted.outcome = Outcome::Returned;
            attempted.handed_on.clear();
        }
    }
    written
}

/// Brings a job back until it is settled or lost; says which.
async fn bring(shared: &Shared, job: Value) -> Result<bool, Error> {
    let asked = json!({ "worker": shared.id, "jobs": [job] });
    loop {
        let answer = shared.server.post(&["leases", "settle"]).body(&asked)?.read::<Answer>().await?;
        let Some(Settled { lease, result, why }) = answer.jobs.into_iter().next() else { return Ok(false) };
        match result.as_str() {
            "ok" => return Ok(true),
            "unkept" if !shared.hurry.is_cancelled() => {
                tracing::warn!(lease, why, "the server cannot keep what belongs to a task for now");
                tokio::time::sleep(AGAIN_AFTER).await;
            }
            _ => {
                tracing::warn!("a task was settled too late: another worker has it");
                return Ok(false);
            }
        }
    }
}

/// How a job ended, as a server takes it. Its result stays here.
async fn told(attempted: Attempted) -> Value {
    let Attempted { job, outcome, handed_on, payload, duration, .. } = attempted;
    let (verdict, failure) = match outcome {
        Outcome::Done => ("done", None),
        Outcome::Failed(report) => ("failed", Some(report)),
        Outcome::Crashed(report) => ("crashed", Some(report)),
        Outcome::Returned => ("returned", None),
    };
    let mut told = json!({
        "lease": job.lease.to_string(), "verdict": verdict, "duration_ms": u64::try_from(duration.as_millis()).ok(),
    });
    if let Some(failure) = failure {
        told["failure"] = json!(failure);
    }
    if !handed_on.is_empty() {
        told["enqueue"] = json!(handed_on);
    }
    if let Some(payload) = payload {
        match evidence(payload).await {
            Ok(evidence) => told["payload"] = evidence,
            Err(error) => tracing::warn!(%error, "what a task worked on cannot be read"),
        }
    }
    told
}

/// What a job worked on, as a server takes it.
async fn evidence(payload: BroughtPayload) -> std::io::Result<Value> {
    let BroughtPayload { bytes: BroughtBytes::Here(capture), response, total_bytes } = payload else {
        return Err(std::io::Error::other("its bytes are elsewhere already"));
    };
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("payload");
    let came = capture.write_to(path.clone()).await?;
    let mut bytes = tokio::fs::read(&path).await?;
    bytes.truncate(PAYLOAD_BYTES_MAX);
    let total = total_bytes.unwrap_or(0).max(came);
    let total = (total > bytes.len() as u64).then_some(total);
    Ok(json!({
        "base64": BASE64.encode(&bytes), "status": response.status, "headers": response.headers, "url": response.url,
        "total_bytes": total,
    }))
}
