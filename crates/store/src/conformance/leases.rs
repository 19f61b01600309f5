//! What must hold of leases and settlements.

use std::time::Duration;

use redrive_core::dead::Gate;
use redrive_core::failures::{FailureReport, Reason};
use redrive_core::ids::{LeaseToken, PipelineName};
use redrive_core::jobs::{Lease, LeasedJob, NewJob};
use redrive_core::pipelines::Pause;
use redrive_core::policy::Policy;
use redrive_core::settlements::{Ending, Outcome, decide};
use redrive_core::state::JobState;
use redrive_core::workers::{Runs, TakesReplays};
use serde_json::json;

use super::script::{
    Shared, ada, assert_sound, at, attach, beat, enqueue, fatal, gone, job, lease_all, lease_of, lease_one,
    lease_past_breakers, ledger, pipeline, plain, reap, settle, timeout, worker,
};
use crate::contract::{
    AskOutlook, Beat, CancelJobs, ClaimResults, FindLostLeases, Lane, LeaseJobs, Listed, NoteProgress, Only, SetPause,
    Settled, StartJobs,
};

fn find_lost(secs: i64) -> FindLostLeases {
    FindLostLeases { pipelines: vec![pipeline()], silent: Vec::new(), limit: 100, now: at(secs) }
}

/// Jobs are leased in the order they are due, each to one worker.
pub async fn oldest_due_first_and_only_once(store: Shared) {
    attach(&store, 1).await;
    let mut late = job(1, plain());
    late.due_at = at(5);
    enqueue(&store, vec![late.clone(), job(2, plain()), job(3, plain())]).await;
    let two = lease_all(&store, 2, at(9)).await;
    let ids: Vec<_> = two.jobs.iter().map(|job| job.lease.job).collect();
    assert_eq!(ids, [job(2, plain()).id, job(3, plain()).id]);
    assert_eq!(lease_one(&store, at(9)).await.lease.job, late.id);
    let none = lease_all(&store, 10, at(9)).await;
    assert_eq!((none.jobs.len(), none.next_due), (0, None));
    assert_eq!(ledger(&store).await.leased, 3);
    assert_sound(&store).await;
}

/// A job is not leased before its time.
pub async fn nothing_before_it_is_due(store: Shared) {
    attach(&store, 1).await;
    let mut later = job(1, plain());
    later.due_at = at(10);
    enqueue(&store, vec![later]).await;
    let early = lease_all(&store, 10, at(9)).await;
    assert_eq!((early.jobs.len(), early.next_due), (0, Some(at(10))));
    lease_one(&store, at(10)).await;
}

/// A job that is done stays done.
pub async fn done_is_final(store: Shared) {
    attach(&store, 1).await;
    enqueue(&store, vec![job(1, plain())]).await;
    let leased = lease_one(&store, at(0)).await;
    assert_eq!(settle(&store, &leased, Outcome::Done, at(1)).await, Settled::Applied);
    assert_eq!(settle(&store, &leased, timeout(), at(2)).await, Settled::Stale);
    assert_eq!(lease_all(&store, 10, at(99)).await.jobs.len(), 0);
    assert_eq!(ledger(&store).await.done, 1);
    assert_sound(&store).await;
}

/// A retry waits in the queue until it is due, and its attempt is counted.
pub async fn a_retry_waits_and_counts(store: Shared) {
    attach(&store, 1).await;
    enqueue(&store, vec![job(1, plain())]).await;
    let first = lease_one(&store, at(0)).await;
    assert_eq!(first.attempt(), 1);
    settle(&store, &first, timeout(), at(0)).await;
    let ledger_now = ledger(&store).await;
    assert_eq!((ledger_now.queued, ledger_now.retrying), (1, 1));
    assert_eq!(lease_all(&store, 1, at(0)).await.next_due, Some(at(1)));
    let second = lease_one(&store, at(1)).await;
    assert_eq!(second.attempt(), 2);
    assert_eq!(ledger(&store).await.retrying, 0);
    assert_sound(&store).await;
}

/// A buried job has its input and every failure.
pub async fn burying_keeps_every_failure(store: Shared) {
    attach(&store, 1).await;
    let new = job(1, plain());
    enqueue(&store, vec![new.clone()]).await;
    let first = lease_one(&store, at(0)).await;
    settle(&store, &first, timeout(), at(0)).await;
    let second = lease_one(&store, at(1)).await;
    settle(&store, &second, fatal(Reason::SchemaValidation, ".price is gone"), at(2)).await;
    let letter = store.get_dead(new.id).await.expect("looked up").expect("dead");
    assert_eq!(letter.input, new.input);
    assert_eq!((letter.reason, letter.gate), (Reason::SchemaValidation, Gate::Review));
    assert_eq!((letter.attempts, letter.http_status, letter.proxy.as_deref()), (2, Some(200), Some("p1")));
    assert_eq!((letter.message.as_str(), letter.died_at), (".price is gone", at(2)));
    let reasons: Vec<_> = letter.failures.expect("failures").iter().map(|f| (f.attempt, f.reason)).collect();
    assert_eq!(reasons, [(1, Reason::Timeout), (2, Reason::SchemaValidation)]);
    assert_sound(&store).await;
}

/// Only the holder of the present lease moves a job; what others send is kept.
pub async fn a_stale_settlement_moves_nothing(store: Shared) {
    attach(&store, 1).await;
    enqueue(&store, vec![job(1, plain())]).await;
    let first = lease_one(&store, at(0)).await;
    settle(&store, &first, Outcome::Returned, at(1)).await;
    let second = lease_one(&store, at(2)).await;
    assert_eq!(settle(&store, &first, Outcome::Done, at(3)).await, Settled::Stale);
    let forged = LeasedJob { lease: Lease { token: LeaseToken::new(at(0), 77), ..second.lease }, ..second.clone() };
    assert_eq!(settle(&store, &forged, Outcome::Done, at(3)).await, Settled::Stale);
    assert_eq!(ledger(&store).await.leased, 1);
    assert_eq!(settle(&store, &second, Outcome::Done, at(4)).await, Settled::Applied);
    let detail = store.get_job(second.lease.job).await.expect("looked up").expect("there");
    assert_eq!(detail.late.len(), 2);
    assert_eq!(detail.late[0].destination, "done");
    assert_sound(&store).await;
}

/// A lease that nobody extends is lost, and taken back with the same fence.
pub async fn an_expired_lease_is_lost(store: Shared) {
    attach(&store, 1).await;
    enqueue(&store, vec![job(1, plain())]).await;
    let leased = lease_one(&store, at(0)).await;
    assert_eq!(store.lost_leases(find_lost(29)).await.expect("asked"), []);
    let lost = store.lost_leases(find_lost(30)).await.expect("asked");
    assert_eq!(lost.len(), 1);
    assert_eq!((&lost[0].job, lost[0].worker_gone), (&leased, false));
    let ending = Ending { at: at(31), duration: None, worker: None, chance: 0.0 };
    let decision = decide(&Policy::default(), &lost[0].job, Outcome::Returned, ending);
    reap(&store, &lost[0].job, decision.clone(), at(31)).await;
    assert_eq!(reap(&store, &lost[0].job, decision, at(31)).await, Settled::Stale, "one reaper wins");
    assert_eq!(
        settle(&store, &leased, Outcome::Returned, at(32)).await,
        Settled::Stale,
        "its holder did not settle it"
    );
    assert_eq!(settle(&store, &leased, Outcome::Done, at(32)).await, Settled::Stale);
    assert_eq!(store.settled(vec![leased.lease]).await.expect("asked"), [None]);
    assert_eq!(ledger(&store).await.queued, 1);
    assert_sound(&store).await;
}

/// A settlement that is sent again, because its answer was lost, is answered as it was and leaves nothing behind, wherever it
/// brought its job. One with another verdict comes too late.
pub async fn a_settlement_is_answered_alike_when_it_is_sent_again(store: Shared) {
    attach(&store, 1).await;
    enqueue(&store, (1..=4).map(|n| job(n, plain())).collect()).await;
    let leased = lease_all(&store, 4, at(0)).await.jobs;
    let outcomes = [Outcome::Done, timeout(), fatal(Reason::SchemaValidation, "no"), gone()];
    for (job, outcome) in leased.iter().zip(&outcomes) {
        assert_eq!(settle(&store, job, outcome.clone(), at(1)).await, Settled::Applied);
    }
    let before = ledger(&store).await;
    for (job, outcome) in leased.iter().zip(&outcomes) {
        assert_eq!(settle(&store, job, outcome.clone(), at(2)).await, Settled::Applied, "{outcome:?}");
    }
    let leases = leased.iter().map(|job| job.lease).collect();
    let settled = store.settled(leases).await.expect("asked");
    assert_eq!(settled, [JobState::Done, JobState::Queued, JobState::Dead, JobState::Discarded].map(Some));
    assert_eq!(ledger(&store).await, before);
    for (job, failures) in leased.iter().zip([0, 1, 1, 1]) {
        let detail = store.get_job(job.lease.job).await.expect("looked up").expect("there");
        assert_eq!((detail.failures.len(), detail.late.len()), (failures, 0));
    }
    assert_eq!(settle(&store, &leased[0], timeout(), at(3)).await, Settled::Stale, "that was not the verdict");
    assert_sound(&store).await;
}

/// Extending moves the end of all leases of a worker and says which it has.
pub async fn extending_keeps_a_lease(store: Shared) {
    attach(&store, 1).await;
    enqueue(&store, vec![job(1, plain()), job(2, plain())]).await;
    let first = lease_one(&store, at(0)).await;
    let second = lease_one(&store, at(0)).await;
    let until = at(20) + Duration::from_secs(30);
    let leases = vec![first.lease, second.lease];
    let extend = Beat { until, ..beat(1, leases, at(20)) };
    let mut held = store.beat(extend.clone()).await.expect("extended");
    held.sort_by_key(|lease| lease.job);
    assert_eq!(held, [first.lease, second.lease]);
    assert_eq!(store.lost_leases(find_lost(49)).await.expect("asked"), []);
    settle(&store, &first, Outcome::Done, at(21)).await;
    assert_eq!(store.beat(extend.clone()).await.expect("extended"), [second.lease]);
    let forged = vec![Lease { token: LeaseToken::new(at(0), 77), ..second.lease }];
    assert_eq!(store.beat(Beat { leases: forged, ..extend.clone() }).await.expect("extended"), []);
    let none = Beat { leases: Vec::new(), until: at(500), ..extend };
    store.beat(none).await.expect("extended");
    assert_eq!(store.lost_leases(find_lost(50)).await.expect("asked").len(), 1, "only what is named is extended");
}

/// A worker that lost a job and has it again is told which of the two leases holds.
pub async fn extending_tells_a_lost_lease_from_a_new_one(store: Shared) {
    attach(&store, 1).await;
    enqueue(&store, vec![job(1, plain())]).await;
    let lost = lease_one(&store, at(0)).await;
    settle(&store, &lost, Outcome::Returned, at(31)).await;
    let new = lease_one(&store, at(32)).await;
    assert_eq!(new.lease.job, lost.lease.job);
    let leases = vec![lost.lease, new.lease];
    let extend = Beat { until: at(90), ..beat(1, leases, at(33)) };
    assert_eq!(store.beat(extend).await.expect("extended"), [new.lease]);
}

/// Jobs that a worker began are told from those it only held.
pub async fn a_started_job_is_told_from_a_waiting_one(store: Shared) {
    attach(&store, 1).await;
    enqueue(&store, vec![job(1, plain()), job(2, plain())]).await;
    let begun = lease_one(&store, at(0)).await;
    lease_one(&store, at(0)).await;
    store.start(StartJobs { leases: vec![begun.lease], own_process: false }).await.expect("noted");
    let mut lost = store.lost_leases(find_lost(30)).await.expect("asked");
    lost.sort_by_key(|lost| lost.job.lease.job);
    assert_eq!(lost.iter().map(|lost| lost.started).collect::<Vec<_>>(), [true, false]);
}

/// Of two leases of one job the later has the higher epoch.
pub async fn epochs_grow(store: Shared) {
    attach(&store, 1).await;
    enqueue(&store, vec![job(1, plain())]).await;
    let mut last = 0;
    for second in 0..5 {
        let leased = lease_one(&store, at(second)).await;
        assert!(leased.lease.epoch > last);
        last = leased.lease.epoch;
        settle(&store, &leased, Outcome::Returned, at(second)).await;
    }
}

/// What an attempt noted is there for the next one; who has lost the lease notes nothing.
pub async fn progress_survives_a_lost_lease(store: Shared) {
    attach(&store, 1).await;
    enqueue(&store, vec![job(1, plain())]).await;
    let first = lease_one(&store, at(0)).await;
    assert_eq!(first.progress, None);
    let note = |lease, progress| NoteProgress { lease, progress };
    assert!(store.note_progress(note(first.lease, Some(json!({"task": "71823460"})))).await.expect("noted"));
    let lost = store.lost_leases(find_lost(30)).await.expect("asked");
    settle(&store, &lost[0].job, Outcome::Returned, at(30)).await;
    let second = lease_one(&store, at(31)).await;
    assert_eq!(second.progress, Some(json!({"task": "71823460"})));
    assert!(!store.note_progress(note(first.lease, None)).await.expect("asked"), "the first has lost it");
    assert!(store.note_progress(note(second.lease, None)).await.expect("noted"));
    settle(&store, &second, timeout(), at(32)).await;
    assert_eq!(lease_one(&store, at(40)).await.progress, None);
}

/// Whoever leases a job that failed is told through which proxies, in order, and of which run.
pub async fn the_proxies_a_job_tried_are_told(store: Shared) {
    enqueue(&store, vec![job(1, plain())]).await;
    assert_eq!(lease_and_fail(&store, Some("a"), 1).await, Vec::<String>::new());
    assert_eq!(lease_and_fail(&store, None, 100).await, ["a"]);
    assert_eq!(lease_and_fail(&store, Some("b"), 200).await, ["a"]);
    assert_eq!(lease_and_fail(&store, Some("a"), 300).await, ["a", "b"]);
}

/// Leases the only job and fails it through a proxy; gives the proxies that it was said to have tried before.
async fn lease_and_fail(store: &Shared, proxy: Option<&str>, secs: i64) -> Vec<String> {
    let leased = lease_one(store, at(secs)).await;
    assert!(leased.tried.iter().all(|tried| tried.replay == 0));
    let report = FailureReport { proxy: proxy.map(str::to_owned), ..FailureReport::new(Reason::Timeout, "late") };
    settle(store, &leased, Outcome::Failed(report), at(secs)).await;
    leased.tried.into_iter().map(|tried| tried.label).collect()
}

/// A lease that is asked for twice with one token, because the first answer got lost, is one lease.
pub async fn a_resent_lease_is_the_same(store: Shared) {
    attach(&store, 1).await;
    enqueue(&store, (1..=5).map(|n| job(n, json!({"n": n.to_string()}))).collect()).await;
    let gates_seen =
        store.lease(lease_of(Lane::Queue, 1, at(1))).await.expect("answered").gates.map(|gates| gates.version);
    let asked = LeaseJobs { gates_seen, ..lease_of(Lane::Queue, 3, at(1)) };
    let first = store.lease(asked.clone()).await.expect("leased").jobs;
    let again = store.lease(asked.clone()).await.expect("leased").jobs;
    assert_eq!((first.len(), &again), (3, &first));
    settle(&store, &first[2], Outcome::Done, at(2)).await;
    assert_eq!(store.lease(asked.clone()).await.expect("leased").jobs, first[..2]);
    let cancel = CancelJobs { ids: vec![first[0].lease.job], by: ada(), why: "no".into(), now: at(3) };
    store.cancel_jobs(cancel).await.expect("cancelled");
    assert_eq!(store.lease(asked).await.expect("leased").jobs, first[1..2], "the others are known without it");
    assert_eq!(lease_all(&store, 9, at(1)).await.jobs.len(), 2, "another token gets the others");
    assert_sound(&store).await;
}

/// Who was handed a lease and nothing else finds what the lease was given with, as long as it holds.
pub async fn a_lease_is_enough_to_find_its_job(store: Shared) {
    attach(&store, 1).await;
    enqueue(&store, vec![job(1, json!({"n": 1})), job(2, plain())]).await;
    let proxied = FailureReport { proxy: Some("a".into()), ..FailureReport::new(Reason::Timeout, "late") };
    let first = lease_one(&store, at(0)).await;
    settle(&store, &first, Outcome::Failed(proxied), at(1)).await;
    let mut leased = lease_all(&store, 2, at(500)).await.jobs;
    leased.sort_by_key(|job| job.lease.job);
    let leases: Vec<_> = leased.iter().map(|job| job.lease).collect();
    let forged = Lease { token: LeaseToken::new(at(0), 77), ..leases[0] };
    let found = async || {
        let mut found = store.leased([&leases[..], &[forged, first.lease]].concat()).await.expect("asked");
        found.sort_by_key(|job| job.lease.job);
        found
    };
    assert_eq!(found().await, leased);
    assert_eq!(leased[0].tried.len(), 1);
    settle(&store, &leased[0], Outcome::Done, at(501)).await;
    assert_eq!(found().await, leased[1..]);
}

/// Of several processes that settle the same jobs one writes their results. A claim ends when it is not renewed, and with its lease.
pub async fn results_are_claimed_by_one_process(store: Shared) {
    attach(&store, 1).await;
    enqueue(&store, vec![job(1, plain()), job(2, plain()), job(3, plain())]).await;
    let leased = lease_all(&store, 3, at(0)).await.jobs;
    let [one, two, three] = [0, 1, 2].map(|n: usize| leased[n].lease);
    let claim = async |leases: &[Lease], renewed: Option<i64>, until, now| {
        let (leases, renewed) = (leases.to_vec(), renewed.map(at));
        let params = ClaimResults { leases, renewed, until: at(until), now: at(now) };
        store.claim_results(params).await.expect("asked")
    };
    let forged = Lease { token: LeaseToken::new(at(0), 77), ..three };
    assert_eq!(claim(&[one, two, forged], None, 10, 5).await, Some(vec![one, two]), "stale leases are passed over");
    assert_eq!(claim(&[two, three], None, 11, 5).await, None, "another process writes one of them");
    assert_eq!(claim(&[three], None, 12, 5).await, Some(vec![three]), "nothing was claimed with it");
    assert_eq!(claim(&[one, two], Some(10), 20, 9).await, Some(vec![one, two]), "its own claim is renewed");
    assert_eq!(claim(&[one, two], Some(10), 30, 15).await, None, "that claim is over");
    assert_eq!(claim(&[one, two], None, 31, 20).await, Some(vec![one, two]), "it was not renewed in time");
    assert_eq!(claim(&[one, two], Some(31), 0, 21).await, Some(vec![one, two]), "it is given up");
    assert_eq!(claim(&[one], None, 32, 21).await, Some(vec![one]));
    settle(&store, &leased[0], Outcome::Done, at(22)).await;
    assert_eq!(claim(&[one, two], None, 33, 22).await, Some(vec![two]), "its lease has ended");
}

fn ask(n: u128, pipelines: Vec<PipelineName>) -> AskOutlook {
    AskOutlook { worker: worker(n), pipelines, replays_max: 10 }
}

/// What has to be known before jobs are leased is told at once: who asks, how much there is, and whether it rests.
pub async fn the_outlook_tells_all_that_is_asked_before_a_lease(store: Shared) {
    let other: PipelineName = "other".parse().expect("a name");
    let outlook = async |n| store.outlook(ask(n, vec![pipeline(), other.clone()])).await.expect("asked");
    let nothing = outlook(1).await;
    assert_eq!((nothing.listed, nothing.runs_alone, nothing.open, nothing.paused), (None, false, 0, false));
    assert_eq!(nothing.replays.len(), 0);
    let runs =
        vec![Runs { pipeline: pipeline(), definition: None, waits_forever: false, replays: TakesReplays::default() }];
    store.beat(Beat { runs: runs.clone(), ..beat(1, Vec::new(), at(3)) }).await.expect("attached");
    enqueue(&store, vec![job(1, plain()), job(2, json!({"n": 2})), job(3, json!({"n": 3}))]).await;
    lease_one(&store, at(3)).await;
    let seen = outlook(1).await;
    assert_eq!((seen.listed, seen.open), (Some(Listed { seen_at: at(3), runs }), 3), "what is leased is open, too");
    assert_eq!(outlook(2).await.listed, None);
    let pause = Pause { by: ada(), why: None, since: at(4), until: None };
    store
        .set_pause(SetPause { pipeline: pipeline(), was: None, next: Some(pause), by: ada(), now: at(4) })
        .await
        .expect("paused");
    assert!(outlook(1).await.paused);
    let of_other = store.outlook(ask(1, vec![other.clone()])).await.expect("asked");
    assert_eq!((of_other.open, of_other.paused), (0, false));
}

/// Whether a worker has a job that crashed before, and is to run alone, is known for as long as it has it.
pub async fn a_worker_with_a_suspect_is_told_from_others(store: Shared) {
    attach(&store, 1).await;
    enqueue(&store, vec![job(1, plain())]).await;
    let alone = async |n: u128| store.outlook(ask(n, vec![pipeline()])).await.expect("asked").runs_alone;
    let first = lease_one(&store, at(0)).await;
    assert!(!alone(1).await, "it is no suspect yet");
    settle(&store, &first, Outcome::Crashed(FailureReport::message("SIGSEGV")), at(1)).await;
    assert!(!alone(1).await);
    let second = lease_one(&store, at(500)).await;
    assert!(second.tally.suspect && alone(1).await && !alone(2).await);
    settle(&store, &second, Outcome::Done, at(501)).await;
    assert!(!alone(1).await);
}

/// Who names a group gets jobs of that one, and leaves the others where they are.
pub async fn jobs_are_leased_by_group(store: Shared) {
    attach(&store, 1).await;
    let of = |n: u128, group: Option<&str>| {
        let origin = group.map(|group| serde_json::from_value(json!({"kind": "scrapy", "group": group})));
        NewJob { origin: origin.transpose().expect("an origin"), ..job(n, json!({"n": n.to_string()})) }
    };
    enqueue(&store, vec![of(1, Some("books")), of(2, Some("toys")), of(3, None), of(4, Some("toys"))]).await;
    let lease = async |group: Option<&str>, limit| {
        let asked =
            LeaseJobs { only: group.map(|group| Only::Group(group.to_owned())), ..lease_of(Lane::Queue, limit, at(1)) };
        let leased = lease_past_breakers(&store, asked).await;
        leased.jobs.iter().map(|leased| leased.input["n"].as_str().unwrap_or_default().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(lease(Some("toys"), 1).await, ["2"]);
    assert_eq!(lease(Some("music"), 9).await, Vec::<String>::new());
    assert_eq!(lease(Some("toys"), 9).await, ["4"]);
    assert_eq!(lease(None, 9).await, ["1", "3"]);
    assert_sound(&store).await;
}
