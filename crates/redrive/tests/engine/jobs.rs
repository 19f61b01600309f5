//! What can be asked of single jobs and payloads, and what is refused.

use redrive::contract::{EnqueuedJob, ListPayloads};
use redrive::jobs::JobError;
use redrive::payloads::PayloadError;
use redrive::vault::Vault;
use redrive::{Error, ErrorKind, FailureReport, Job, Pipeline, Reason, Redrive, json};
use redrive_core::actors::{Actor, Via};
use redrive_core::ids::JobId;
use redrive_core::payloads::Response;
use redrive_core::state::JobState;

use self::in_memory::{at_start, redrive};

use crate::support::in_memory;

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

#[tokio::test]
async fn payloads_that_are_not_whole_are_named() {
    let ((redrive, _), folder) = (redrive(), tempfile::tempdir().expect("a folder"));
    let vault = Vault::open(&folder.path().display().to_string(), &redrive).expect("a vault");
    let keeping = Pipeline::new("p", |job: Job| async move {
        let mut capture = job.evidence.capture().expect("begun");
        capture.write(job.input["page"].to_string().as_bytes()).expect("written");
        job.evidence.save(capture, Response::default(), None).await.expect("kept");
        Err::<serde_json::Value, _>(FailureReport::new(Reason::SchemaValidation, "no price"))
    });
    let keeping = keeping.expect("a pipeline").attempts(1).vault(vault.clone());
    redrive.enqueue(&keeping, ["a", "b", "b"].map(|page| json!({"page": page}))).await.expect("accepted");
    redrive.drain(keeping).await.expect("drained");
    let verify = async |names: &[String]| {
        let mut broken = Vec::new();
        let found = redrive.verify_payloads(&vault, names, |error| broken.push(error.to_string())).await;
        found.map(|verified| (verified.whole, verified.broken, broken.len()))
    };
    assert_eq!(verify(&[]).await.expect("verified"), (2, 0, 0), "equal pages are one payload");
    let all = ListPayloads { prefix: None, limit: 9, cursor: None };
    let listed = redrive.store().list_payloads(all).await.expect("listed").items;
    let [lost, kept] = [0, 1].map(|n| listed[n].hash.to_string());
    remove(folder.path(), &lost);
    assert_eq!(verify(&[]).await.expect("verified"), (1, 1, 1));
    assert_eq!(verify(&[kept]).await.expect("verified"), (1, 0, 0), "only what is named");
    assert_eq!(verify(&[lost]).await.expect("verified"), (0, 1, 1));
    let nobody = verify(&["abcdef012".to_owned()]).await.expect_err("no such payload");
    assert_eq!(nobody.kind(), ErrorKind::Missing);
}

/// Removes the files of a payload.
fn remove(folder: &std::path::Path, hash: &str) {
    for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        if path.is_dir() {
            remove(&path, hash);
        } else if name.to_string_lossy().contains(hash) {
            std::fs::remove_file(&path).expect("removed");
        }
    }
}
