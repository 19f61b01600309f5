//! Results that the store keeps.

use std::time::Duration;

use redrive::contract::{EnqueuedJob, ListResults};
use redrive::handler::{Handler, HandlerError};
use redrive::sink::JobResult;
use redrive::worker::Until;
use redrive::{CancellationToken, Job, Pipeline, Policy, Redrive, Success, json};
use redrive_core::definitions::ResultsFile;
use redrive_core::results::ResultPolicy;
use redrive_core::secrets::Secrets;

use crate::support::in_memory::{as_time_passes, redrive};

/// Gives back its input, and knows a secret.
struct Echo(Secrets);

#[async_trait::async_trait]
impl Handler for Echo {
    async fn run(&self, job: Job) -> Result<Success, HandlerError> {
        Ok(Success::from(json!(job.input)))
    }

    fn secrets(&self) -> Option<&Secrets> {
        Some(&self.0)
    }
}

fn pipeline(results: ResultPolicy) -> Pipeline {
    let mut secrets = Secrets::default();
    secrets.add_value("hunter2");
    let policy = Policy { results, ..Policy::default() };
    Pipeline::new("p", Echo(secrets)).expect("a pipeline").with_policy(policy)
}

async fn kept(redrive: &Redrive) -> Vec<JobResult> {
    let pipeline = "p".parse().expect("a name");
    let all = ListResults { pipeline, round: None, since: None, until: None, limit: 100, cursor: None };
    redrive.store().list_results(all).await.expect("listed").items
}

#[tokio::test]
async fn results_that_go_to_no_file_are_kept_without_secrets() {
    let (redrive, _clock) = redrive();
    let pipeline = pipeline(ResultPolicy::default());
    let inputs = [json!({"n": 1, "login": "hunter2"}), json!({"n": 2, "token": "abc"})];
    redrive.enqueue(&pipeline, inputs).await.expect("accepted");
    redrive.drain(pipeline).await.expect("drained");
    let kept = kept(&redrive).await;
    let of = |n: u32| kept.iter().find(|kept| kept.input["n"] == n).expect("it is kept");
    assert_eq!((&of(1).input["login"], &of(1).result["login"]), (&json!("***"), &json!("***")));
    assert_eq!((&of(2).input["token"], &of(2).result["token"]), (&json!("***"), &json!("***")));
    let shown = redrive.job(of(1).id).await.expect("there").result.expect("it is kept");
    assert_eq!((&shown["n"], &shown["login"]), (&json!(1), &json!("***")));
}

#[tokio::test]
async fn results_that_go_to_a_file_are_kept_only_if_the_policy_says_so() {
    for (is_kept, expected) in [(None, 0), (Some(true), 1), (Some(false), 0)] {
        let (redrive, _clock) = redrive();
        let policy = ResultPolicy { is_kept, ..ResultPolicy::default() };
        let file = ResultsFile { path: "r.jsonl".into(), bare: false };
        let pipeline = pipeline(policy).results_to(file);
        redrive.enqueue(&pipeline, [json!({"n": 1})]).await.expect("accepted");
        redrive.drain(pipeline).await.expect("drained");
        assert_eq!(kept(&redrive).await.len(), expected, "{is_kept:?}");
    }
}

/// Gives back its input, after a line of another kind.
struct Talks;

#[async_trait::async_trait]
impl Handler for Talks {
    async fn run(&self, job: Job) -> Result<Success, HandlerError> {
        Ok(Success { log: Some("loading".to_owned()), ..Success::from(json!(job.input)) })
    }
}

#[tokio::test]
async fn what_was_printed_before_a_result_is_kept_if_the_file_of_results_has_no_place_for_it() {
    for (bare, is_kept, expected) in [(true, None, Some("loading")), (true, Some(false), None), (false, None, None)] {
        let (redrive, _clock) = redrive();
        let policy = Policy { results: ResultPolicy { is_kept, ..ResultPolicy::default() }, ..Policy::default() };
        let file = ResultsFile { path: "r.jsonl".into(), bare };
        let pipeline = Pipeline::new("p", Talks).expect("a pipeline").with_policy(policy).results_to(file);
        let accepted = redrive.enqueue(&pipeline, [json!({"n": 1})]).await.expect("accepted");
        redrive.drain(pipeline).await.expect("drained");
        let EnqueuedJob::Accepted(id) = accepted[0] else { panic!("it is new") };
        let detail = redrive.job(id).await.expect("there");
        assert_eq!(detail.log.as_deref(), expected, "{bare} {is_kept:?}");
    }
}

#[tokio::test]
async fn kept_results_are_forgotten_when_they_are_too_old_or_too_many() {
    let (redrive, clock) = redrive();
    let hour = ResultPolicy { kept_for: Some(Duration::from_secs(3_600)), ..ResultPolicy::default() };
    let run = async |policy: ResultPolicy, n: u32| {
        let pipeline = pipeline(policy);
        redrive.enqueue(&pipeline, [json!({"n": n})]).await.expect("accepted");
        let working = tokio::spawn(redrive.worker(vec![pipeline]).run(Until::Drained, CancellationToken::new()));
        as_time_passes(&clock, "it is drained", async || working.is_finished()).await;
        working.await.expect("no panic").expect("drained");
    };
    run(hour, 1).await;
    // A clock that goes ahead by more than a day is not believed at once.
    clock.advance(Duration::from_secs(20 * 3_600));
    run(hour, 2).await;
    let numbers = |kept: Vec<JobResult>| kept.iter().map(|kept| kept.input["n"].clone()).collect::<Vec<_>>();
    assert_eq!(numbers(kept(&redrive).await), [json!(2)], "the hour is over");
    run(ResultPolicy { bytes_max: 1, ..hour }, 3).await;
    let ledger = redrive.ledger(&"p".parse().expect("a name")).await.expect("read");
    assert_eq!((ledger.results.kept, ledger.results.dropped), (0, 2), "a byte is not enough for any");
}
