//! What can be asked of single jobs and payloads, and what is refused.

#[path = "support/in_memory.rs"]
mod in_memory;

use redrive::contract::EnqueuedJob;
use redrive::jobs::JobError;
use redrive::payloads::PayloadError;
use redrive::{Error, ErrorKind, Job, Pipeline, Redrive, json};
use redrive_core::actors::{Actor, Via};
use redrive_core::ids::JobId;
use redrive_core::state::JobState;

use self::in_memory::{at_start, redrive};

/// Enqueues a job and gives its id.
async fn enqueue(redrive: &Redrive, input: serde_json::Value) -> JobId {
    match redrive.enqueue(&pipeline(), [input]).await.expect("answered")[..] {
        [EnqueuedJob::Accepted(id)] => id,
        ref other => panic!("{other:?}"),
    }
}

fn pipeline() -> Pipeline {
    Pipeline::new("p", |_: Job| async { Ok(json!({})) }).expect("a pipeline")
}

#[tokio::test]
async fn jobs_are_cancelled_while_they_are_open() {
    let (redrive, _) = redrive();
    let done = enqueue(&redrive, json!({"n": 0})).await;
    redrive.drain(pipeline()).await.expect("drained");
    let queued = enqueue(&redrive, json!({"n": 1})).await;
    let nobody = JobId::new(at_start(), 99);
    let by = Actor::new("ada", Via::Api);
    let cancelled = redrive.cancel_jobs(vec![done, queued, nobody], "not needed", &by).await.expect("answered");
    assert_eq!(cancelled.jobs, [queued]);
    let ended = JobError::Ended { id: done, state: JobState::Done };
    assert_eq!(cancelled.refused, [ended, JobError::Unknown(nobody)]);
    assert_eq!([ended.kind(), JobError::Unknown(nobody).kind()], [ErrorKind::Refused, ErrorKind::Missing]);
    assert_eq!(redrive.job(queued).await.expect("found").job.state, JobState::Discarded);
    let missing = redrive.job(nobody).await.map(|_| ()).expect_err("nobody");
    assert_eq!((missing.kind(), missing.to_string()), (ErrorKind::Missing, format!("no task {nobody}")));
}

#[tokio::test]
async fn what_names_no_payload_is_told_from_what_is_not_there() {
    let (redrive, _) = redrive();
    let job = enqueue(&redrive, json!({})).await;
    let find = async |name: &str| match redrive.find_payload(name).await {
        Err(Error::Payload(error)) => (error.kind(), error),
        other => panic!("{name}: {other:?}"),
    };
    assert_eq!(find("abc").await.0, ErrorKind::Invalid);
    assert_eq!(find("no such thing").await.0, ErrorKind::Invalid);
    assert_eq!(find("abcdef012").await, (ErrorKind::Missing, PayloadError::Unknown("abcdef012".into())));
    assert_eq!(find(&job.to_string()).await, (ErrorKind::Missing, PayloadError::NoneKept(job)));
    let nobody = JobId::new(at_start(), 99);
    assert_eq!(find(&nobody.to_string()).await, (ErrorKind::Missing, PayloadError::NoJob(nobody)));
}
