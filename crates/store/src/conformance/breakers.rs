//! What must hold of breakers: the jobs of a failing target wait, untouched, and the others go on.

use redrive_core::failures::{Disposition, FailureReport, Reason};
use redrive_core::jobs::NewJob;
use redrive_core::settlements::Outcome;
use redrive_core::state::JobState;
use serde_json::json;

use super::script::{Shared, assert_sound, at, attach, enqueue, job, lease_all, lease_one, ledger, settle, timeout};
use crate::contract::CancelJobs;

fn sick(n: u128) -> NewJob {
    job(n, json!({"url": "https://sick/", "n": n}))
}

fn well(n: u128) -> NewJob {
    job(n, json!({"url": "https://well/", "n": n}))
}

async fn hold_the_sick_one(store: &Shared) {
    attach(store, 1).await;
    enqueue(store, vec![sick(1)]).await;
    let first = lease_one(store, at(0)).await;
    let hold = FailureReport { disposition: Some(Disposition::Hold), ..FailureReport::new(Reason::Blocked, "closed") };
    settle(store, &first, Outcome::Failed(hold), at(0)).await;
}

/// While a breaker is open its target's jobs stay queued without losing attempts; others flow; all can be cancelled.
pub async fn a_hold_sets_the_targets_jobs_aside(store: Shared) {
    hold_the_sick_one(&store).await;
    enqueue(&store, vec![sick(2), well(3), sick(4), well(5)]).await;
    let leased = lease_all(&store, 10, at(1)).await;
    let ids: Vec<_> = leased.jobs.iter().map(|job| job.lease.job).collect();
    assert_eq!(ids, [well(3).id, well(5).id]);
    let listed = store.list_breakers().await.expect("listed");
    assert_eq!((listed.len(), listed[0].target.as_str(), listed[0].held), (1, "sick", 3));
    let detail = store.get_job(sick(1).id).await.expect("looked up").expect("there");
    assert_eq!((detail.job.state, detail.job.attempts, detail.job.held), (JobState::Queued, 0, true));
    assert_eq!(lease_all(&store, 10, at(2)).await.next_due, Some(at(30)));
    assert_sound(&store).await;
    let cancel = CancelJobs { ids: vec![sick(2).id], actor: "a".into(), why: "w".into(), now: at(3) };
    assert_eq!(store.cancel_jobs(cancel).await.expect("cancelled").len(), 1);
    assert_eq!(ledger(&store).await.queued, 2);
    assert_sound(&store).await;
}

/// After the cool-down a probe goes, then more, then all.
pub async fn probes_go_first_and_success_releases_the_rest(store: Shared) {
    hold_the_sick_one(&store).await;
    enqueue(&store, (2..=20).map(sick).collect()).await;
    assert_eq!(lease_all(&store, 50, at(1)).await.jobs.len(), 0);
    let mut now = 30;
    for expected in [1, 2] {
        let probes = lease_all(&store, 50, at(now)).await.jobs;
        assert!(probes.len() <= expected, "{} probes at once", probes.len());
        assert!(!probes.is_empty());
        for probe in probes {
            settle(&store, &probe, Outcome::Done, at(now)).await;
        }
        now += 1;
        assert_sound(&store).await;
    }
    let rest = lease_all(&store, 50, at(now)).await.jobs;
    assert_eq!(ledger(&store).await.queued, 0, "all the others were let go");
    for job in rest {
        settle(&store, &job, Outcome::Done, at(now)).await;
    }
    assert_eq!(store.list_breakers().await.expect("listed").len(), 0);
    assert_eq!(ledger(&store).await.done, 20);
    assert_sound(&store).await;
}

/// Enough failures open the breaker by themselves; a failed probe opens it again.
pub async fn a_failing_target_opens_its_breaker(store: Shared) {
    attach(&store, 1).await;
    enqueue(&store, (1..=40).map(sick).collect()).await;
    for _ in 0..20 {
        let leased = lease_one(&store, at(0)).await;
        settle(&store, &leased, timeout(), at(0)).await;
    }
    assert_eq!(lease_all(&store, 50, at(5)).await.jobs.len(), 0);
    let probe = lease_all(&store, 50, at(30)).await.jobs;
    assert_eq!(probe.len(), 1);
    settle(&store, &probe[0], timeout(), at(31)).await;
    let waiting = lease_all(&store, 50, at(60)).await;
    assert_eq!((waiting.jobs.len(), waiting.next_due), (0, Some(at(31 + 60))));
    assert_eq!(ledger(&store).await.queued, 40);
    assert_sound(&store).await;
}

/// An open breaker says what its target last failed with, and since when it is open, however often it was probed since.
pub async fn a_breaker_says_why_and_since_when(store: Shared) {
    hold_the_sick_one(&store).await;
    let probe = lease_all(&store, 50, at(30)).await.jobs;
    settle(&store, &probe[0], timeout(), at(31)).await;
    let breaker = store.list_breakers().await.expect("listed").remove(0).breaker;
    assert_eq!(breaker.opened_at, Some(at(0)));
    assert!(breaker.why.as_deref().is_some_and(|why| why.starts_with("timeout")), "{:?}", breaker.why);
}
