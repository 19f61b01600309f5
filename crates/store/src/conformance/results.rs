//! Conformance of kept results.

use std::sync::Arc;

use redrive_core::causes::CauseRules;
use redrive_core::ids::{JobId, RoundName};
use redrive_core::jobs::{LeasedJob, NewJob};
use redrive_core::ledger::KeptResults;
use redrive_core::policy::Policy;
use redrive_core::results::{JobResult, ResultForm};
use redrive_core::settlements::{Ending, Outcome, Settlement, decide};
use redrive_core::time::Timestamp;
use serde_json::{Value, json};

use super::script::{Shared, assert_sound, at, attach, enqueue, job, lease_all, ledger, pipeline, plain, settle_all};
use crate::contract::{ForgetResults, ListResults, Settled};

/// A settlement of each leased job, with a result that names the job and has so many more characters.
async fn settlements(store: &Shared, now: Timestamp, length: usize) -> Vec<Settlement> {
    let ending = Ending { at: now, duration: None, worker: None, chance: 0.0 };
    let leased = lease_all(store, 1_000, now).await.jobs;
    let settlement = |leased: &LeasedJob| {
        let result = JobResult {
            id: leased.lease.job,
            pipeline: leased.pipeline.clone(),
            round: leased.round.clone(),
            key: leased.key.clone(),
            input: leased.input.clone(),
            result: json!({"n": leased.input["n"], "text": "x".repeat(length), "zero": "\0"}),
            log: Some(format!("log of {}", leased.input["n"])),
        };
        let line: Arc<str> = result.line(ResultForm::Whole).expect("JSON").expect("a line").into();
        let decision = decide(&Policy::default(), leased, Outcome::Done, ending);
        Settlement::new(leased, decision, &CauseRules::default()).with_result(Some(line))
    };
    leased.iter().map(settlement).collect()
}

/// Has these jobs done at a time, with results.
async fn finish(store: &Shared, jobs: std::ops::Range<u128>, now: Timestamp, length: usize) {
    enqueue(store, jobs.map(|n| job(n, json!({"n": n.to_string()}))).collect()).await;
    let settled = settle_all(store, settlements(store, now, length).await, now).await;
    assert!(settled.iter().all(|settled| *settled == Settled::Applied));
}

fn all() -> ListResults {
    ListResults { pipeline: pipeline(), round: None, since: None, until: None, limit: 100, cursor: None }
}

/// The numbers of all jobs whose results are listed, a page after the other.
async fn listed(store: &Shared, mut params: ListResults) -> Vec<u32> {
    let mut numbers = Vec::new();
    loop {
        let page = store.list_results(params.clone()).await.expect("listed");
        assert!(page.items.len() <= params.limit as usize);
        let number =
            |result: &JobResult| result.result["n"].as_str().and_then(|n| n.parse::<u32>().ok()).expect("a number");
        numbers.extend(page.items.iter().map(number));
        params.cursor = page.next;
        if params.cursor.is_none() {
            return numbers;
        }
    }
}

async fn log_of(store: &Shared, id: JobId) -> Option<String> {
    store.get_job(id).await.expect("read").expect("it is known").log
}

async fn result_of(store: &Shared, id: JobId) -> Option<Value> {
    store.get_job(id).await.expect("read").expect("it is known").result
}

async fn kept(store: &Shared) -> KeptResults {
    ledger(store).await.results
}

/// Results are written with the settlement, one of a stale lease is not, and each job gives its own back.
pub async fn a_result_is_kept_with_its_settlement(store: Shared) {
    attach(&store, 1).await;
    finish(&store, 1..4, at(1), 10).await;
    assert_eq!(result_of(&store, job(2, plain()).id).await.expect("kept")["n"], "2");
    assert_eq!(result_of(&store, job(2, plain()).id).await.expect("kept")["zero"], "\0");
    assert_eq!(log_of(&store, job(2, plain()).id).await.as_deref(), Some("log of \"2\""));
    enqueue(&store, vec![job(4, json!({"n": "4"})), job(5, json!({"n": "5"}))]).await;
    let mut late = settlements(&store, at(2), 10).await;
    late[0].lease.token = late[1].lease.token;
    late[0].lease.job = job(99, plain()).id;
    assert_eq!(settle_all(&store, late.clone(), at(2)).await, [Settled::Stale, Settled::Applied]);
    assert_eq!(listed(&store, all()).await, [1, 2, 3, 5]);
    // What is sent again because its answer was lost is kept once.
    assert_eq!(settle_all(&store, late.split_off(1), at(3)).await, [Settled::Applied]);
    assert_eq!(listed(&store, all()).await, [1, 2, 3, 5]);
    assert_eq!(kept(&store).await.kept, 4);
    assert_sound(&store).await;
}

/// Pages of any length list each result once, by time and round.
pub async fn results_are_listed_in_pages(store: Shared) {
    attach(&store, 1).await;
    let round: RoundName = "second".parse().expect("a name");
    for (time, jobs) in [(1, 1..8), (2, 8..9), (3, 9..40)] {
        finish(&store, jobs, at(time), 20_000).await;
    }
    let of_round = (40..42).map(|n| NewJob { round: Some(round.clone()), ..job(n, json!({"n": n.to_string()})) });
    enqueue(&store, of_round.collect()).await;
    settle_all(&store, settlements(&store, at(4), 1).await, at(4)).await;
    let everyone: Vec<u32> = (1..42).collect();
    for limit in [1, 3, 100] {
        assert_eq!(listed(&store, ListResults { limit, ..all() }).await, everyone, "{limit} at once");
    }
    let between = ListResults { since: Some(at(2)), until: Some(at(3)), ..all() };
    assert_eq!(listed(&store, between).await, [8]);
    assert_eq!(listed(&store, ListResults { round: Some(round), ..all() }).await, [40, 41]);
    let nobody = ListResults { pipeline: "nobody".parse().expect("a name"), ..all() };
    assert!(listed(&store, nobody).await.is_empty());
    store.list_results(ListResults { cursor: Some("7".into()), ..all() }).await.expect_err("that is no cursor");
}

/// Old results are removed first, then the oldest above the limit. Only the latter are counted as dropped.
pub async fn old_results_and_those_above_the_limit_are_forgotten(store: Shared) {
    attach(&store, 1).await;
    for time in 1..6_i64 {
        let first = u128::try_from(time * 10).expect("positive");
        finish(&store, first..first + 2, at(time), 5_000).await;
    }
    let all_bytes = kept(&store).await.bytes;
    assert!(all_bytes > 0 && all_bytes < 50_000, "they are compressed: {all_bytes}");
    let forget = async |before: Option<Timestamp>, bytes_max: i64, limit| {
        let bytes_max = u64::try_from(bytes_max).expect("positive");
        let params = ForgetResults { pipeline: pipeline(), before, bytes_max, limit, led: None };
        while store.forget_results(params.clone()).await.expect("forgotten") {}
    };
    forget(None, all_bytes, 10).await;
    assert_eq!(kept(&store).await.kept, 10, "there is nothing to forget");
    forget(Some(at(3)), all_bytes, 1).await;
    assert_eq!(listed(&store, all()).await, [30, 31, 40, 41, 50, 51]);
    forget(None, kept(&store).await.bytes - 1, 10).await;
    assert_eq!(listed(&store, all()).await, [40, 41, 50, 51]);
    let KeptResults { kept: left, dropped, .. } = kept(&store).await;
    assert_eq!((left, dropped), (4, 2));
    assert_eq!(result_of(&store, job(30, plain()).id).await, None, "of the job itself the receipt stays");
    assert_sound(&store).await;
}
