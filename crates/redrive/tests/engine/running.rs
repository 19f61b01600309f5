//! The engine on a store in memory, with a clock that stands still until it is told to go on.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use redrive::clock::Clock;
use redrive::sink::{JobResult, Sink};
use redrive::worker::Until;
use redrive::{CancellationToken, Disposition, Error, FailureReport, Job, Pipeline, Policy, Reason, Redrive, json};
use redrive_core::dead::Gate;
use redrive_core::ledger::Ledger;
use redrive_core::replays::AutoReplay;
use redrive_store::contract::{CancelJobs, DeadFilter, FindLostLeases, JobFilter, ListDead, ListJobs};
use tokio::task::JoinHandle;

use self::in_memory::{as_time_passes, at_start, breakers, eventually, redrive};

use crate::support::in_memory;

async fn dead(redrive: &Redrive) -> Vec<redrive_core::dead::DeadLetter> {
    let params = ListDead { with_failures: true, ..ListDead::newest(DeadFilter::default(), 100) };
    redrive.store().list_dead(params).await.expect("listed").items
}

/// Drains a pipeline in the background.
fn drain(redrive: &Redrive, pipeline: Pipeline) -> JoinHandle<Result<Ledger, Error>> {
    let redrive = redrive.clone();
    tokio::spawn(async move { redrive.drain(pipeline).await })
}

async fn assert_sound(redrive: &Redrive) {
    assert_eq!(redrive.store().audit().await.expect("audited").problems, Vec::<String>::new());
}

#[tokio::test]
async fn retries_wait_for_their_time() {
    let (redrive, clock) = redrive();
    let times = Arc::new(Mutex::new(Vec::new()));
    let (seen, seen_clock) = (Arc::clone(&times), Arc::clone(&clock));
    let pipeline = Pipeline::new("p", move |_: Job| {
        seen.lock().expect("unpoisoned").push(seen_clock.now());
        async { Err(FailureReport::new(Reason::Timeout, "slow")) }
    })
    .expect("a pipeline");
    redrive.enqueue(&pipeline, [json!({})]).await.expect("accepted");
    let draining = drain(&redrive, pipeline);
    let name = "p".parse().expect("a name");
    for attempt in 1..=3 {
        eventually("the attempt is settled", async || {
            let ledger = redrive.ledger(&name).await.expect("read");
            ledger.retrying == 1 && times.lock().expect("unpoisoned").len() == attempt
        })
        .await;
        // Delay doubles, and the jitter adds at most half of it.
        clock.advance(Duration::from_millis(1_500 << (attempt - 1)));
    }
    let ledger = draining.await.expect("no panic").expect("drained");
    assert_eq!((ledger.done, ledger.dead), (0, 1));
    let times = times.lock().expect("unpoisoned").clone();
    let waits: Vec<_> = times.windows(2).map(|pair| pair[1].since(pair[0]).as_millis()).collect();
    assert_eq!(waits, [1_500, 3_000, 6_000]);
    let letter = dead(&redrive).await.remove(0);
    assert_eq!((letter.attempts, letter.failures.map(|f| f.len())), (4, Some(4)));
    assert_sound(&redrive).await;
}

#[tokio::test]
async fn a_panic_ends_the_job_and_not_the_worker() {
    let (redrive, _clock) = redrive();
    let pipeline = Pipeline::new("p", |job: Job| async move {
        assert_ne!(job.input["n"], 2, "two is not a good number");
        Ok(json!(null))
    })
    .expect("a pipeline")
    .attempts(1);
    redrive.enqueue(&pipeline, (0..5).map(|n| json!({"n": n}))).await.expect("accepted");
    let ledger = redrive.drain(pipeline).await.expect("drained");
    assert_eq!((ledger.done, ledger.dead), (4, 1));
    let letter = dead(&redrive).await.remove(0);
    assert_eq!(letter.code.as_deref(), Some("panic"));
    assert!(letter.message.contains("two is not a good number"), "{}", letter.message);
}

#[tokio::test]
async fn a_handler_that_takes_too_long_is_dropped() {
    let (redrive, _clock) = redrive();
    let policy = Policy { deadline: Duration::from_millis(50), ..Policy::default() };
    let pipeline = Pipeline::new("p", |_: Job| async {
        std::future::pending::<()>().await;
        Ok(json!(null))
    })
    .expect("a pipeline")
    .with_policy(policy)
    .attempts(1);
    redrive.enqueue(&pipeline, [json!({})]).await.expect("accepted");
    redrive.drain(pipeline).await.expect("drained");
    let letter = dead(&redrive).await.remove(0);
    assert_eq!((letter.reason, letter.code.as_deref()), (Reason::Timeout, Some("deadline")));
}

#[tokio::test]
async fn never_more_at_once_than_allowed() {
    let (redrive, _clock) = redrive();
    let (running, most) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let (now, peak, all_used) = (Arc::clone(&running), Arc::clone(&most), CancellationToken::new());
    let pipeline = Pipeline::new("p", move |_: Job| {
        let (now, peak, all_used) = (Arc::clone(&now), Arc::clone(&peak), all_used.clone());
        async move {
            let running = now.fetch_add(1, Ordering::SeqCst) + 1;
            peak.fetch_max(running, Ordering::SeqCst);
            // The first ones wait for each other, as long as a deadline allows.
            if running == 5 {
                all_used.cancel();
            }
            all_used.cancelled().await;
            tokio::time::sleep(Duration::from_millis(2)).await;
            now.fetch_sub(1, Ordering::SeqCst);
            Ok(json!(null))
        }
    })
    .expect("a pipeline")
    .concurrency(5);
    redrive.enqueue(&pipeline, (0..100).map(|n| json!({"n": n}))).await.expect("accepted");
    assert_eq!(redrive.drain(pipeline).await.expect("drained").done, 100);
    assert_eq!(most.load(Ordering::SeqCst), 5, "all slots were used, and no more");
}

#[tokio::test]
async fn a_stopped_worker_returns_what_it_did_not_start() {
    let (redrive, _clock) = redrive();
    let release = CancellationToken::new();
    let begun = Arc::new(AtomicU32::new(0));
    let (released, counted) = (release.clone(), Arc::clone(&begun));
    let pipeline = Pipeline::new("p", move |_: Job| {
        let (released, counted) = (released.clone(), Arc::clone(&counted));
        async move {
            counted.fetch_add(1, Ordering::SeqCst);
            released.cancelled().await;
            Ok(json!(null))
        }
    })
    .expect("a pipeline")
    .concurrency(2);
    redrive.enqueue(&pipeline, (0..10).map(|n| json!({"n": n}))).await.expect("accepted");
    let stop = CancellationToken::new();
    let working = tokio::spawn({
        let (redrive, stop) = (redrive.clone(), stop.clone());
        async move { redrive.work(vec![pipeline], stop).await }
    });
    eventually("two run", async || begun.load(Ordering::SeqCst) == 2).await;
    stop.cancel();
    let name = "p".parse().expect("a name");
    eventually("the others are returned", async || redrive.ledger(&name).await.expect("read").queued == 8).await;
    release.cancel();
    working.await.expect("no panic").expect("stopped");
    let ledger = redrive.ledger(&name).await.expect("read");
    assert_eq!((ledger.done, ledger.queued, ledger.leased), (2, 8, 0));
    assert_eq!(redrive.store().list_workers().await.expect("listed").len(), 0);
    assert_sound(&redrive).await;
}

#[tokio::test]
async fn a_job_that_was_cancelled_stops_running() {
    let (redrive, clock) = redrive();
    let pipeline = Pipeline::new("p", |_: Job| async {
        std::future::pending::<()>().await;
        Ok(json!(null))
    })
    .expect("a pipeline");
    redrive.enqueue(&pipeline, [json!({})]).await.expect("accepted");
    let draining = drain(&redrive, pipeline);
    let name = "p".parse().expect("a name");
    eventually("it is leased", async || redrive.ledger(&name).await.expect("read").leased == 1).await;
    let params = ListJobs { filter: JobFilter::default(), limit: 1, cursor: None };
    let id = redrive.store().list_jobs(params).await.expect("listed").items[0].id;
    let cancel = CancelJobs { ids: vec![id], by: ada(), why: "test".into(), now: redrive.now() };
    redrive.store().cancel_jobs(cancel).await.expect("cancelled");
    eventually("the heartbeat notices", async || {
        clock.advance(Duration::from_secs(11));
        draining.is_finished()
    })
    .await;
    let ledger = draining.await.expect("no panic").expect("drained");
    assert_eq!((ledger.discarded, ledger.done), (1, 0));
    assert_sound(&redrive).await;
}

#[tokio::test]
async fn a_long_job_keeps_its_lease() {
    let (redrive, clock) = redrive();
    let (begin, release) = (CancellationToken::new(), CancellationToken::new());
    let (begun, released) = (begin.clone(), release.clone());
    let pipeline = Pipeline::new("p", move |_: Job| {
        let (begun, released) = (begun.clone(), released.clone());
        async move {
            begun.cancel();
            released.cancelled().await;
            Ok(json!("at last"))
        }
    })
    .expect("a pipeline");
    redrive.enqueue(&pipeline, [json!({})]).await.expect("accepted");
    let draining = drain(&redrive, pipeline);
    let name: redrive_core::ids::PipelineName = "p".parse().expect("a name");
    begin.cancelled().await;
    let beaten_at = async || redrive.store().list_workers().await.expect("listed")[0].seen_at;
    let lost_by = async |now| {
        let find = FindLostLeases { pipelines: vec![name.clone()], limit: 9, now, silent: Vec::new() };
        redrive.store().lost_leases(find).await.expect("asked").len()
    };
    let lease = Policy::default().lease;
    for _ in 0..10 {
        let before = beaten_at().await;
        as_time_passes(&clock, "the heartbeat", async || beaten_at().await > before).await;
        let beaten_at = beaten_at().await;
        assert_eq!(lost_by(beaten_at + lease - Duration::from_millis(1)).await, 0, "the heartbeat extended it");
    }
    assert_eq!(lost_by(redrive.now() + lease * 2).await, 1, "not for ever");
    release.cancel();
    assert_eq!(draining.await.expect("no panic").expect("drained").done, 1);
}

#[tokio::test]
async fn a_held_target_waits_without_losing_attempts() {
    let (redrive, clock) = redrive();
    let open = Arc::new(AtomicU32::new(0));
    let door = Arc::clone(&open);
    let pipeline = Pipeline::new("p", move |_: Job| {
        let open = door.load(Ordering::SeqCst) == 1;
        async move {
            match open {
                true => Ok(json!(null)),
                false => Err(FailureReport {
                    disposition: Some(Disposition::Hold),
                    ..FailureReport::new(Reason::Misconfigured, "wrong key")
                }),
            }
        }
    })
    .expect("a pipeline")
    .concurrency(1);
    redrive.enqueue(&pipeline, (0..5).map(|n| json!({"n": n, "target": "solver"}))).await.expect("accepted");
    let draining = drain(&redrive, pipeline);
    eventually("all are held", async || breakers(&redrive).await.first().is_some_and(|breaker| breaker.held == 5))
        .await;
    open.store(1, Ordering::SeqCst);
    eventually("the cool-down is over", async || {
        clock.advance(Duration::from_secs(31));
        draining.is_finished()
    })
    .await;
    let ledger = draining.await.expect("no panic").expect("drained");
    assert_eq!((ledger.done, ledger.dead), (5, 0));
    let params = ListJobs { filter: JobFilter::default(), limit: 9, cursor: None };
    let jobs = redrive.store().list_jobs(params).await.expect("listed").items;
    assert!(jobs.iter().all(|job| job.attempts == 1), "{jobs:?}");
    assert_sound(&redrive).await;
}

/// A sink that fails until it is mended.
#[derive(Clone, Default)]
struct Moody {
    mended: CancellationToken,
    written: Arc<Mutex<Vec<JobResult>>>,
}

#[async_trait::async_trait]
impl Sink for Moody {
    async fn write(&self, results: &[JobResult]) -> Result<(), Error> {
        if !self.mended.is_cancelled() {
            return Err(Error::Sink { place: "nowhere".into(), source: std::io::Error::other("no space") });
        }
        self.written.lock().expect("unpoisoned").extend(results.iter().cloned());
        Ok(())
    }
}

#[tokio::test]
async fn nothing_is_done_before_its_result_is_written() {
    let (redrive, _clock) = redrive();
    let sink = Moody::default();
    let pipeline = Pipeline::new("p", |job: Job| async move { Ok(job.input["n"].clone()) })
        .expect("a pipeline")
        .sink(sink.clone());
    redrive.enqueue(&pipeline, (0..3).map(|n| json!({"n": n}))).await.expect("accepted");
    let failed = redrive.drain(pipeline.clone()).await.expect_err("the sink fails");
    assert!(failed.to_string().contains("cannot write results to nowhere"), "{failed}");
    let ledger = redrive.ledger(pipeline.name()).await.expect("read");
    assert_eq!((ledger.queued, ledger.done), (3, 0));
    sink.mended.cancel();
    assert_eq!(redrive.drain(pipeline).await.expect("drained").done, 3);
    assert_eq!(sink.written.lock().expect("unpoisoned").len(), 3);
    assert_sound(&redrive).await;
}

/// What runs a pipeline that cannot work for now: it is tried again, and no job loses an attempt by it.
#[tokio::test]
async fn results_that_cannot_be_written_for_a_while_are_not_worked_out_again() {
    let (redrive, clock) = redrive();
    let sink = Moody::default();
    let runs = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&runs);
    let pipeline = Pipeline::new("p", move |job: Job| {
        counted.fetch_add(1, Ordering::Relaxed);
        async move { Ok(job.input["n"].clone()) }
    })
    .expect("a pipeline")
    .concurrency(2)
    .sink(sink.clone());
    redrive.enqueue(&pipeline, (0..9).map(|n| json!({"n": n}))).await.expect("accepted");
    let stop = CancellationToken::new();
    let working = tokio::spawn({
        let (redrive, pipeline, stop) = (redrive.clone(), pipeline.clone(), stop.clone());
        async move { redrive.work(vec![pipeline], stop).await }
    });
    let tries = async || {
        let workers = redrive.store().list_workers().await.expect("listed");
        workers.first().and_then(|worker| worker.holds.first()).map_or(0, |hold| hold.tries)
    };
    for expected in 1..=4 {
        eventually("it is held", async || tries().await == expected).await;
        clock.advance(Duration::from_secs(60));
    }
    sink.mended.cancel();
    eventually("all are done", async || {
        clock.advance(Duration::from_secs(60));
        redrive.ledger(pipeline.name()).await.expect("read").done == 9
    })
    .await;
    eventually("nothing is held any more", async || tries().await == 0).await;
    stop.cancel();
    working.await.expect("no panic").expect("it ends well");
    assert_eq!(runs.load(Ordering::Relaxed), 9, "each ran once");
    assert_sound(&redrive).await;
}

/// Writes the first result, then has no room until it is mended.
struct Full {
    moody: Moody,
    first: AtomicU32,
}

#[async_trait::async_trait]
impl Sink for Full {
    async fn write(&self, results: &[JobResult]) -> Result<(), Error> {
        if self.first.fetch_add(1, Ordering::Relaxed) > 0 && !self.moody.mended.is_cancelled() {
            let source = std::io::Error::from(std::io::ErrorKind::StorageFull);
            return Err(Error::Sink { place: "nowhere".into(), source });
        }
        self.moody.written.lock().expect("unpoisoned").extend(results.iter().cloned());
        Ok(())
    }
}

/// Whoever works until nothing is left gives up what cannot be written, but a full disk is waited for as it is for the store.
#[tokio::test]
async fn room_for_results_is_waited_for() {
    let (redrive, clock) = redrive();
    let moody = Moody::default();
    let pipeline = Pipeline::new("p", |job: Job| async move { Ok(job.input["n"].clone()) }).expect("a pipeline");
    let pipeline = pipeline.concurrency(1).sink(Full { moody: moody.clone(), first: AtomicU32::new(0) });
    redrive.enqueue(&pipeline, (0..5).map(|n| json!({"n": n}))).await.expect("accepted");
    let working = tokio::spawn({
        let (redrive, pipeline) = (redrive.clone(), pipeline.clone());
        async move { redrive.drain(pipeline).await }
    });
    eventually("it was tried often", async || {
        clock.advance(Duration::from_secs(60));
        let workers = redrive.store().list_workers().await.expect("listed");
        workers.first().and_then(|worker| worker.holds.first()).is_some_and(|hold| hold.tries > 5)
    })
    .await;
    assert!(!working.is_finished(), "it waits");
    moody.mended.cancel();
    eventually("it ends", async || {
        clock.advance(Duration::from_secs(60));
        working.is_finished()
    })
    .await;
    assert_eq!(working.await.expect("no panic").expect("drained").done, 5);
    assert_eq!(moody.written.lock().expect("unpoisoned").len(), 5, "each is written once");
    assert_sound(&redrive).await;
}

#[tokio::test]
async fn a_target_that_stays_away_is_not_waited_for_without_end() {
    let (redrive, clock) = redrive();
    let pipeline = Pipeline::new("p", |_: Job| async {
        let report = FailureReport::new(Reason::Network, "connection refused");
        Err::<serde_json::Value, _>(FailureReport { disposition: Some(Disposition::Hold), ..report })
    })
    .expect("a pipeline");
    redrive.enqueue(&pipeline, (0..5).map(|n| json!({"n": n, "url": "https://sick/"}))).await.expect("accepted");
    let worker = redrive.worker(vec![pipeline.clone()]).max_wait(Duration::from_secs(600));
    let working = tokio::spawn(worker.run(Until::Drained, CancellationToken::new()));
    let ticking = async {
        loop {
            tokio::time::sleep(Duration::from_millis(5)).await;
            clock.advance(Duration::from_secs(1));
        }
    };
    let ended = tokio::select! {
        ended = working => ended.expect("no panic"),
        () = ticking => unreachable!("it ticks for ever"),
    };
    let Err(Error::WaitedInVain(waited)) = ended else { panic!("{ended:?}") };
    assert_eq!((waited.queued, waited.targets.len(), waited.targets[0].target.as_str()), (5, 1, "sick"));
    assert!(waited.targets[0].breaker.last.as_ref().is_some_and(|last| last.message.contains("connection refused")));
    assert!(clock.now().since(at_start()) >= Duration::from_secs(600), "probes went on until then");
    let ledger = redrive.ledger(pipeline.name()).await.expect("read");
    assert_eq!((ledger.queued, ledger.leased, ledger.dead), (5, 0, 0));
}

#[tokio::test]
async fn draining_waits_for_what_is_still_on_its_way() {
    let (redrive, _clock) = redrive();
    let pipeline = Pipeline::new("p", |_: Job| async { Ok(json!(null)) }).expect("a pipeline");
    let fed = CancellationToken::new();
    let worker = redrive.worker(vec![pipeline.clone()]);
    let working = tokio::spawn(worker.run(Until::DrainedAfter(fed.clone()), CancellationToken::new()));
    for n in 0..5 {
        tokio::time::sleep(Duration::from_millis(30)).await;
        assert!(!working.is_finished());
        redrive.enqueue(&pipeline, [json!({"n": n})]).await.expect("accepted");
    }
    fed.cancel();
    working.await.expect("no panic").expect("drained");
    assert_eq!(redrive.ledger(pipeline.name()).await.expect("read").done, 5);
}

#[tokio::test]
async fn an_input_must_be_an_object() {
    let (redrive, _clock) = redrive();
    let pipeline = Pipeline::new("p", |_: Job| async { Ok(json!(null)) }).expect("a pipeline");
    let refused = redrive.enqueue(&pipeline, [json!({}), json!(7)]).await.expect_err("refused");
    assert!(matches!(refused, Error::InputNotAnObject(_)));
    assert_eq!(redrive.ledger(pipeline.name()).await.expect("read").accepted, 0);
    assert!(Pipeline::new("not a name", |_: Job| async { Ok(json!(null)) }).is_err());
}

#[tokio::test]
async fn two_automatic_replays_of_one_attempt_each_fit_under_the_total() {
    let (redrive, clock) = redrive();
    let policy = Policy { auto_replays: vec![AutoReplay::every(Duration::from_secs(3_600))], ..Policy::default() };
    let slow = |_: Job| async { Err(FailureReport::new(Reason::Timeout, "slow")) };
    let pipeline = Pipeline::new("p", slow).expect("a pipeline").with_policy(policy);
    redrive.enqueue(&pipeline, [json!({})]).await.expect("accepted");
    let stop = CancellationToken::new();
    let worker = redrive.worker(vec![pipeline]).with_replays();
    let working = tokio::spawn(worker.run(Until::Stopped, stop.clone()));
    let mut seen = std::collections::BTreeSet::new();
    eventually("nothing more can be done", async || {
        clock.advance(Duration::from_secs(60));
        let letter = dead(&redrive).await.pop();
        seen.extend(letter.iter().map(|letter| (letter.attempts, letter.replays, letter.gate.to_string())));
        letter.is_some_and(|letter| letter.gate == Gate::Never)
    })
    .await;
    // On a slow machine one of them may be over before it is seen.
    let known = [(4, 0, Gate::Auto), (5, 1, Gate::Auto), (6, 2, Gate::Never)];
    let known = known.map(|(attempts, replays, gate)| (attempts, replays, gate.to_string()));
    assert!(seen.contains(&known[2]) && seen.iter().all(|seen| known.contains(seen)), "{seen:?}");
    stop.cancel();
    working.await.expect("no panic").expect("stopped");
    assert_sound(&redrive).await;
}

fn ada() -> redrive_core::actors::Actor {
    redrive_core::actors::Actor::new("ada", redrive_core::actors::Via::Api)
}

#[tokio::test]
async fn short_runs_forget_too() {
    let (redrive, clock) = redrive();
    let policy = Policy { history: Some(Duration::from_secs(3_600)), ..Policy::default() };
    let pipeline = Pipeline::new("p", |_: Job| async { Ok(json!({})) }).expect("a pipeline").with_policy(policy);
    redrive.enqueue(&pipeline, [json!({"n": 1}), json!({"n": 2})]).await.expect("accepted");
    let mut ledgers = Vec::new();
    for _ in 0..3 {
        ledgers.push(drain(&redrive, pipeline.clone()).await.expect("no panic").expect("drained"));
        // A clock that goes ahead by more than a day is not believed at once.
        clock.advance(Duration::from_secs(20 * 3_600));
    }
    let name = "p".parse().expect("a name");
    let ledger = redrive.ledger(&name).await.expect("read");
    assert_eq!((ledger.accepted, ledger.done, ledger.forgotten.done), (2, 2, 2), "{ledgers:?}");
    let params = ListJobs { filter: JobFilter::default(), limit: 9, cursor: None };
    assert!(redrive.store().list_jobs(params).await.expect("listed").items.is_empty());
    assert_sound(&redrive).await;
}
