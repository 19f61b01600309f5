//! Conformance of the failures of jobs that wait for another attempt.

use redrive_core::failures::{Disposition, FailureReport, Reason};
use redrive_core::ids::JobId;
use redrive_core::settlements::Outcome;

use super::script::{Shared, at, attach, enqueue, job, lease_all, pipeline, plain, settle, timeout};
use crate::contract::{ListRetrying, RetryingJobs};

async fn retrying(store: &Shared, limit: u32) -> RetryingJobs {
    let mut found = store.retrying_jobs(ListRetrying { pipeline: pipeline(), limit }).await.expect("read");
    found.jobs.sort_by_key(|job| job.id);
    found
}

fn ids(found: &RetryingJobs) -> Vec<JobId> {
    found.jobs.iter().map(|job| job.id).collect()
}

/// Of each queued job that has failed before the last failure is read, also of those that are held; of no other.
pub async fn last_failures_of_queued_jobs_are_read(store: Shared) {
    attach(&store, 1).await;
    assert_eq!(retrying(&store, 9).await.all, 0, "nobody has heard of the pipeline");
    enqueue(&store, (1..=4).map(|n| job(n, plain())).collect()).await;
    assert_eq!(retrying(&store, 9).await.all, 0);
    let first = lease_all(&store, 4, at(0)).await.jobs;
    for job in &first[..3] {
        settle(&store, job, timeout(), at(0)).await;
    }
    // It is held with all others of its target, and has lost no attempt.
    let hold = FailureReport { disposition: Some(Disposition::Hold), ..FailureReport::new(Reason::Blocked, "closed") };
    let again = lease_all(&store, 1, at(9)).await.jobs.remove(0);
    settle(&store, &again, Outcome::Failed(FailureReport::message("a second time")), at(9)).await;
    settle(&store, &first[3], Outcome::Failed(hold), at(9)).await;
    enqueue(&store, vec![job(5, plain())]).await;
    lease_all(&store, 9, at(10)).await;
    assert!(store.list_breakers().await.expect("listed")[0].held > 0, "some are held");
    let found = retrying(&store, 9).await;
    assert_eq!((ids(&found), found.all), (first[..3].iter().map(|job| job.lease.job).collect(), 3));
    let last = found.jobs.iter().find(|job| job.id == again.lease.job).expect("it waits");
    assert_eq!((last.failure.message.as_str(), last.target.as_deref()), ("a second time", Some("example.com")));
    assert_eq!((retrying(&store, 2).await.jobs.len(), retrying(&store, 2).await.all), (2, 3));
}

/// Retries are due later than what was never tried, so that a bounded look finds them.
pub async fn failures_are_found_behind_any_number_of_fresh_jobs(store: Shared) {
    attach(&store, 1).await;
    enqueue(&store, (1..=30).map(|n| job(n, plain())).collect()).await;
    let failed = lease_all(&store, 2, at(0)).await.jobs;
    for job in &failed {
        settle(&store, job, timeout(), at(0)).await;
    }
    let found = retrying(&store, 2).await;
    assert_eq!((ids(&found), found.all), (failed.iter().map(|job| job.lease.job).collect(), 2));
    let leased = lease_all(&store, 30, at(99)).await.jobs;
    assert_eq!((leased.len(), retrying(&store, 9).await.all), (30, 0), "what runs does not wait");
}
