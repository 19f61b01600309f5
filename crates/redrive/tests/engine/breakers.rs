//! Breakers in the engine: what attempts say of their targets is counted whoever settles them, and probes do not kill.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use redrive::api::Deadline;
use redrive::breakers::BreakerError;
use redrive::chance::SeededChance;
use redrive::contract::DeadFilter;
use redrive::leases::EndedJob;
use redrive::worker::Until;
use redrive::{CancellationToken, Error, ErrorKind, FailureReport, Job, Pipeline, Policy, Reason, Redrive, json};
use redrive_core::breakers::{BreakerPolicy, BreakerState};
use redrive_core::causes::CauseRules;
use redrive_core::ids::{LeaseToken, PipelineName, ReplayId, WorkerId};
use redrive_core::jobs::LeasedJob;
use redrive_core::settlements::{Ending, Outcome, Settlement, decide};
use redrive_store::contract::{Beat, BreakersOf, Lane, LeaseJobs, SettleJobs};

use redrive_store::Store;
use redrive_store::conformance::decorators::{Decorated, Delaying};
use redrive_store::sqlite::SqliteStore;

use self::in_memory::{at_start, breakers, eventually, hold, over, redrive, replay_of};

use crate::support::in_memory;

const CALLERS: u32 = 16;
const JOBS: u32 = 20;

fn patient() -> BreakerPolicy {
    BreakerPolicy { attempts_min: 1_000_000, window: Duration::from_secs(86_400), ..BreakerPolicy::default() }
}

/// Leases and settles one job after another until none is left; every one fails for its target's sake.
async fn fail_all(redrive: Redrive, name: PipelineName, worker: WorkerId, caller: u128) {
    let policy = Policy::default();
    for n in 0.. {
        let now = redrive.now();
        let lease = LeaseJobs {
            pipeline: name.clone(),
            lane: Lane::Queue,
            worker,
            definition: None,
            token: LeaseToken::new(now, caller << 64 | n),
            limit: 1,
            until: now + Duration::from_secs(60),
            gates: Vec::new(),
            gates_seen: None,
            freed: Vec::new(),
            with_tried: false,
            only: None,
            now,
        };
        let Some(job) = redrive.lease(lease).await.expect("leased").jobs.pop() else { return };
        let ending = Ending { at: now, duration: None, worker: Some(worker), chance: 0.0 };
        let mut decision = decide(&policy, &job, Outcome::Failed(FailureReport::new(Reason::Timeout, "slow")), ending);
        decision.destination =
            redrive_core::settlements::Destination::Queue { due_at: now + Duration::from_secs(3_600) };
        let settlements = vec![Settlement::new(&job, decision, &CauseRules::default())];
        let params = SettleJobs { settlements, worker, breakers: Vec::new(), keep_late: true, now };
        redrive.settle(&patient(), params).await.expect("settled");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nothing_that_is_said_is_lost_when_settlements_of_two_processes_meet() {
    let folder = tempfile::tempdir().expect("a folder");
    let address = format!("sqlite:{}", folder.path().join("redrive.db").display());
    let handles = [Redrive::open(&address).await.expect("opened"), Redrive::open(&address).await.expect("opened")];
    let pipeline = Pipeline::new("p", |_| async { Ok(json!(null)) }).expect("a pipeline");
    let name: PipelineName = "p".parse().expect("a name");
    let inputs = (0..CALLERS * JOBS).map(|n| json!({"n": n, "url": "https://sick/"}));
    handles[0].enqueue(&pipeline, inputs).await.expect("accepted");
    let (mut tasks, mut workers) = (tokio::task::JoinSet::new(), Vec::new());
    for caller in 0..CALLERS {
        let redrive = handles[caller as usize % 2].clone();
        let worker = WorkerId::new(redrive.now(), u128::from(caller));
        let attach = Beat {
            worker,
            pid: std::process::id(),
            now: redrive.now(),
            host: "here".into(),
            remote: false,
            runs: Vec::new(),
            leases: Vec::new(),
            until: redrive.now(),
        };
        redrive.store().beat(attach).await.expect("attached");
        workers.push(worker);
        tasks.spawn(fail_all(redrive, name.clone(), worker, u128::from(caller)));
    }
    while let Some(ended) = tasks.join_next().await {
        ended.expect("no caller fails");
    }
    let of = |name: PipelineName| BreakersOf { pipeline: name, after: None, limit: 9 };
    let row = handles[1].store().breakers_of(of(name.clone())).await.expect("read").remove(0);
    let breaker = row.breaker.expect("a breaker");
    let pending = u32::try_from(row.pending.len()).expect("few");
    assert_eq!((breaker.attempts + pending, breaker.failures + pending), (CALLERS * JOBS, CALLERS * JOBS));
    // If two settle at the same moment, the next settlement folds in what is pending.
    let one_more = [json!({"n": CALLERS * JOBS, "url": "https://sick/"})];
    handles[0].enqueue(&pipeline, one_more).await.expect("accepted");
    let worker = workers.pop().expect("some worked");
    fail_all(handles[0].clone(), name.clone(), worker, u128::from(CALLERS)).await;
    let row = handles[1].store().breakers_of(of(name)).await.expect("read").remove(0);
    assert_eq!((row.breaker.expect("a breaker").attempts, row.pending.len()), (CALLERS * JOBS + 1, 0));
}

#[tokio::test]
async fn probes_of_a_target_that_stays_ill_kill_no_job_and_all_are_done_when_it_is_well() {
    let (redrive, clock) = redrive();
    let (well, probed) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(Vec::new())));
    let handler = {
        let (well, probed) = (Arc::clone(&well), Arc::clone(&probed));
        move |job: Job| {
            let (well, probed) = (Arc::clone(&well), Arc::clone(&probed));
            async move {
                probed.lock().expect("unpoisoned").push(job.input["n"].as_u64().unwrap_or(0));
                match well.load(Ordering::Relaxed) {
                    true => Ok(json!(null)),
                    false => Err(FailureReport::new(Reason::Blocked, "go away")),
                }
            }
        }
    };
    let policy = Policy { breaker: BreakerPolicy { blocked_max: 1, ..BreakerPolicy::default() }, ..Policy::default() };
    let pipeline = Pipeline::new("p", handler).expect("a pipeline").with_policy(policy).attempts(1).concurrency(1);
    let inputs = (0..20).map(|n| json!({"n": n, "url": "https://sick/"}));
    redrive.enqueue(&pipeline, inputs).await.expect("accepted");
    let stop = CancellationToken::new();
    let working = tokio::spawn(redrive.worker(vec![pipeline]).run(Until::Stopped, stop.clone()));
    let name: PipelineName = "p".parse().expect("a name");
    eventually("the first one dies and opens the breaker, and what nobody has begun is held", async || {
        let held = breakers(&redrive).await.first().map_or(0, |breaker| breaker.held);
        let dead = redrive.ledger(&name).await.expect("read").dead;
        dead > 0 && held + u64::try_from(dead).unwrap_or(0) == 20
    })
    .await;
    let opened = breakers(&redrive).await.remove(0);
    assert_eq!(opened.breaker.state, BreakerState::Open);
    assert_eq!(opened.breaker.opened_by.map(|by| by.to_string()).as_deref(), Some("blocked: go away"));
    let dead = redrive.ledger(&name).await.expect("read").dead;
    let before = probed.lock().expect("unpoisoned").len();
    for probes in 1..=5 {
        eventually("a probe goes", async || {
            clock.advance(Duration::from_secs(30));
            probed.lock().expect("unpoisoned").len() >= before + probes
        })
        .await;
    }
    let seen: std::collections::BTreeSet<_> = probed.lock().expect("unpoisoned")[before..].iter().copied().collect();
    assert!(seen.len() >= 5, "each probe is another job: {seen:?}");
    assert_eq!(redrive.ledger(&name).await.expect("read").dead, dead, "no probe died, though each had one attempt");
    well.store(true, Ordering::Relaxed);
    eventually("all that was held is done", async || {
        clock.advance(Duration::from_secs(30));
        redrive.ledger(&name).await.is_ok_and(|ledger| ledger.done == 20 - dead)
    })
    .await;
    assert!(breakers(&redrive).await.is_empty());
    stop.cancel();
    working.await.expect("no panic").expect("stopped");
    assert_eq!(redrive.store().audit().await.expect("audited").problems, Vec::<String>::new());
}

/// Who is dropped in the middle of settling leaves a breaker that others can change.
#[tokio::test]
async fn a_settlement_that_nobody_waits_for_any_more_does_not_hold_a_breaker() {
    let layer = Arc::new(Delaying::new("settle"));
    let (redrive, _) = over(Decorated::around(Arc::new(SqliteStore::in_memory().expect("opened")), &layer));
    let pipeline = Pipeline::new("p", |_| async { Ok(json!(null)) }).expect("a pipeline");
    let name: PipelineName = "p".parse().expect("a name");
    redrive.enqueue(&pipeline, (0..4).map(|n| json!({"n": n, "url": "https://sick/"}))).await.expect("accepted");
    let worker = WorkerId::new(redrive.now(), 1);
    layer.hold_back(true);
    let dropped = tokio::spawn(fail_all(redrive.clone(), name.clone(), worker, 1));
    eventually("it is settled, and not answered", async || layer.held_back() == 1).await;
    dropped.abort();
    assert!(dropped.await.is_err_and(|error| error.is_cancelled()));
    layer.hold_back(false);
    fail_all(redrive.clone(), name.clone(), worker, 2).await;
    let of = BreakersOf { pipeline: name, after: None, limit: 9 };
    let row = redrive.store().breakers_of(of).await.expect("read").remove(0);
    assert_eq!((row.breaker.map(|breaker| breaker.attempts), row.pending.len()), (Some(4), 0), "all is folded in");
}

/// A pipeline that is blocked by its target until that is well.
fn blocked(well: &Arc<AtomicBool>) -> Pipeline {
    let well = Arc::clone(well);
    let handler = move |_: Job| {
        let well = well.load(Ordering::Relaxed);
        async move { if well { Ok(json!(null)) } else { Err(FailureReport::new(Reason::Blocked, "go away")) } }
    };
    let policy = Policy { breaker: BreakerPolicy { blocked_max: 1, ..BreakerPolicy::default() }, ..Policy::default() };
    Pipeline::new("p", handler).expect("a pipeline").with_policy(policy).attempts(1).concurrency(1)
}

fn task(n: u32) -> serde_json::Value {
    json!({"n": n, "url": "https://sick/"})
}

/// A letter that opened the breaker of its target, in a replay of its own.
async fn replayed(redrive: &Redrive, pipeline: &Pipeline) -> ReplayId {
    redrive.enqueue(pipeline, [task(0)]).await.expect("accepted");
    redrive.drain(pipeline.clone()).await.expect("drained");
    let filter = DeadFilter { pipeline: Some(pipeline.name().clone()), ..DeadFilter::default() };
    redrive.start_replay(replay_of(filter)).await.expect("started").0.expect("a replay")
}

/// Works on queue and replay until so many jobs are held, of which the replay sent so many.
async fn until_held(redrive: &Redrive, pipeline: &Pipeline, held: (u64, u64)) {
    let stop = CancellationToken::new();
    let worker = redrive.worker(vec![pipeline.clone()]).with_replays();
    let working = tokio::spawn(worker.run(Until::Stopped, stop.clone()));
    eventually("they are held", async || {
        let found = breakers(redrive).await;
        found.first().is_some_and(|found| (found.held, found.held_of_replays) == held)
    })
    .await;
    stop.cancel();
    working.await.expect("no panic").expect("stopped");
}

#[tokio::test]
async fn letters_of_a_replay_that_are_held_go_on_with_the_queue_when_the_target_is_well() {
    let (redrive, clock) = redrive();
    let well = Arc::new(AtomicBool::new(false));
    let pipeline = blocked(&well);
    replayed(&redrive, &pipeline).await;
    redrive.enqueue(&pipeline, (1..4).map(task)).await.expect("accepted");
    until_held(&redrive, &pipeline, (4, 1)).await;
    well.store(true, Ordering::Relaxed);
    let stop = CancellationToken::new();
    let worker = redrive.worker(vec![pipeline.clone()]).with_replays();
    let working = tokio::spawn(worker.run(Until::Stopped, stop.clone()));
    eventually("all are done, the letter too", async || {
        clock.advance(Duration::from_secs(30));
        redrive.ledger(pipeline.name()).await.expect("read").done == 4
    })
    .await;
    stop.cancel();
    working.await.expect("no panic").expect("stopped");
}

/// What is held is told beside each lane: who learns by the queue that a breaker has closed still learns what others held beside a
/// replay.
#[tokio::test]
async fn who_knows_the_breakers_by_one_lane_is_told_what_is_held_beside_another() {
    let store: Arc<dyn Store> = Arc::new(SqliteStore::in_memory().expect("opened"));
    let (redrive, clock) = over(Arc::clone(&store));
    let pipeline = blocked(&Arc::default());
    let replay = replayed(&redrive, &pipeline).await;
    redrive.enqueue(&pipeline, (1..20).map(task)).await.expect("accepted");
    until_held(&redrive, &pipeline, (20, 1)).await;
    let other = Redrive::over(store).with_surroundings(clock.clone(), Arc::new(SeededChance::new(8)));
    let worker = other.remote_worker(None, "far.example", 7);
    worker.attach(std::slice::from_ref(&pipeline)).await.expect("attached");
    let lease =
        async |lane| worker.lease(&pipeline, (lane, None), 1, Duration::from_secs(30)).await.expect("answered").jobs;
    let settle = async |job: LeasedJob| {
        let (outcome, duration) = (Outcome::Done, Some(Duration::ZERO));
        let ended = EndedJob {
            lease: job.lease,
            outcome,
            result: None,
            log: None,
            is_written: false,
            handed_on: Vec::new(),
            payload: None,
            duration,
        };
        worker.settle(&pipeline, vec![ended]).await.expect("settled");
    };
    let state = async || breakers(&other).await.remove(0).breaker.state;
    clock.advance(Duration::from_secs(3_600));
    while state().await != BreakerState::Closed {
        settle(lease(Lane::Queue).await.pop().expect("a probe")).await;
    }
    assert_eq!(lease(Lane::Queue).await.len(), 1, "it knows that the breaker is closed");
    assert_eq!(lease(Lane::Replay(replay)).await.len(), 1, "and what was held beside the replay");
}

#[tokio::test]
async fn a_target_is_held_until_a_time_that_is_to_come() {
    let (redrive, _) = redrive();
    let pipeline = Pipeline::new("p", |_: Job| async { Ok(json!(1)) }).expect("a pipeline");
    redrive.enqueue(&pipeline, [json!({"url": "https://shop.example/"})]).await.expect("accepted");
    let hold = async |secs: u64| {
        hold(&redrive, "shop.example", Some(Deadline::At(at_start() + Duration::from_secs(secs)))).await
    };
    let over = hold(0).await.expect_err("it is over");
    assert_eq!((over.kind(), over.field()), (ErrorKind::Invalid, Some("until")));
    assert!(matches!(over, Error::Breaker(BreakerError::Over(until)) if until == at_start()), "{over}");
    assert!(breakers(&redrive).await.is_empty());
    assert_eq!(hold(60).await.expect("held").pipelines.len(), 1);
    assert_eq!(breakers(&redrive).await.len(), 1);
}
