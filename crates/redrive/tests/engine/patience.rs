//! How long the engine waits, and for what: targets that stay away, pipelines that cannot work.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use redrive::clock::{Clock, TestClock};
use redrive::leases::EndedJob;
use redrive::vault::{Keep, Vault};
use redrive::worker::Until;
use redrive::{
    CancellationToken, Disposition, Error, FailureReport, Handler, HandlerError, Job, Pipeline, Policy, Reason, Success,
};
use redrive::{Redrive, Waited, json};
use redrive_core::actors::{Actor, Via};
use redrive_core::breakers::BreakerPolicy;
use redrive_core::dead::{DeadLetter, Gate};
use redrive_core::payloads::Response;
use redrive_core::proxies::ProxyPolicy;
use redrive_core::replays::{AutoReplay, Pacing};
use redrive_core::settlements::{Outcome, TARGET_ON_HOLD};
use redrive_core::time::Timestamp;
use redrive_core::workers::TakesReplays;

use redrive_core::ids::PipelineName;
use redrive_store::conformance::decorators::{Counting, Decorated, Delaying, Layer};
use redrive_store::contract::{CountDead, DeadBy, DeadFilter, Lane, ListDead, ListReplays};
use redrive_store::sqlite::SqliteStore;
use redrive_store::{Result as StoreResult, Store, StoreError};

use self::in_memory::{as_time_passes, breakers, eventually, over, redrive};

use crate::support::in_memory;

/// Works until the worker has waited in vain for ten minutes, which pass quickly.
async fn wait_in_vain(redrive: &Redrive, pipeline: &Pipeline, clock: &TestClock) -> Waited {
    let worker = redrive.worker(vec![pipeline.clone()]).max_wait(Duration::from_secs(600));
    let working = worker.run(Until::Drained, CancellationToken::new());
    let ticking = async {
        for _ in 0..6_000 {
            // What runs is settled at the time at which it began, however long that takes here.
            eventually("nothing runs", async || redrive.ledger(pipeline.name()).await.expect("read").leased == 0).await;
            tokio::time::sleep(Duration::from_millis(5)).await;
            clock.advance(Duration::from_secs(1));
        }
    };
    let ended = tokio::select! {
        ended = working => ended,
        () = ticking => panic!("it still waits after a hundred minutes"),
    };
    match ended {
        Err(Error::WaitedInVain(waited)) => *waited,
        other => panic!("{other:?}"),
    }
}

fn hold(retry_after_secs: Option<f64>) -> HandlerError {
    let report = FailureReport::new(Reason::Network, "connection refused");
    FailureReport { disposition: Some(Disposition::Hold), retry_after_secs, ..report }.into()
}

/// Two proxies through which nothing is reached; the first job holds its target.
struct Unreached {
    clock: Arc<TestClock>,
    ran_at: Mutex<Vec<Timestamp>>,
}

#[async_trait]
impl Handler for Unreached {
    async fn run(&self, job: Job) -> Result<Success, HandlerError> {
        let mut ran_at = self.ran_at.lock().expect("unpoisoned");
        ran_at.push(self.clock.now());
        if ran_at.len() == 1 {
            return Err(hold(None));
        }
        let proxy = if job.tried.iter().any(|tried| tried.label == "a") { "b" } else { "a" };
        let report = FailureReport::new(Reason::Network, "connection refused");
        Err(FailureReport { proxy: Some(proxy.into()), stage: Some("connect".into()), ..report }.into())
    }

    fn proxies(&self) -> ProxyPolicy {
        ProxyPolicy { labels: vec!["a".into(), "b".into()], ..ProxyPolicy::default() }
    }
}

#[tokio::test]
async fn of_many_held_jobs_one_goes_to_see_per_cool_down_through_however_many_proxies() {
    let (redrive, clock) = redrive();
    let handler = Arc::new(Unreached { clock: Arc::<TestClock>::clone(&clock), ran_at: Mutex::new(Vec::new()) });
    let name = "p".parse().expect("a name");
    let breaker = BreakerPolicy { hold_max: None, ..BreakerPolicy::default() };
    let policy = Policy { breaker, ..Policy::default() };
    let pipeline = Pipeline::with_name(name, Arc::<Unreached>::clone(&handler)).with_policy(policy).concurrency(1);
    assert_eq!(pipeline.policy().proxies.labels.len(), 2);
    redrive.enqueue(&pipeline, (0..60).map(|n| json!({"n": n, "url": "https://sick/"}))).await.expect("accepted");
    let waited = wait_in_vain(&redrive, &pipeline, &clock).await;
    let ran_at = handler.ran_at.lock().expect("unpoisoned").clone();
    // What was leased with the first one may begin before the target is held.
    let probes: Vec<_> = ran_at.iter().filter(|at| at.since(ran_at[0]) >= Duration::from_secs(20)).collect();
    let waits: Vec<u64> = probes.windows(2).map(|pair| pair[1].since(*pair[0]).as_secs()).collect();
    assert!(waits.len() >= 2, "probes went on: {waits:?}");
    assert!(waits.iter().zip([60, 120, 240, 240]).all(|(wait, cool_down)| *wait >= cool_down), "{waits:?}");
    assert!(waited.queued >= 55, "{waited:?}");
    let why = waited.targets[0].breaker.last.as_ref().map(ToString::to_string);
    let why = why.as_deref();
    assert!(why.is_some_and(|why| why.contains("connection refused")), "{why:?}");
}

/// A target that answers nothing, and what it is asked: a job fails for this reason until it is well.
fn absent(reason: Reason, well: &Arc<AtomicBool>, policy: BreakerPolicy) -> Pipeline {
    let well = Arc::clone(well);
    let handler = move |_: Job| {
        let well = well.load(Ordering::Relaxed);
        async move { if well { Ok(json!(null)) } else { Err(FailureReport::new(reason, "nobody is there")) } }
    };
    let policy = Policy { breaker: BreakerPolicy { blocked_max: 1, ..policy }, ..Policy::default() };
    Pipeline::new("p", handler).expect("a pipeline").with_policy(policy).concurrency(1)
}

async fn enqueue_of_one_target(redrive: &Redrive, pipeline: &Pipeline, jobs: u32) {
    redrive.enqueue(pipeline, (0..jobs).map(|n| json!({"n": n, "url": "https://sick/"}))).await.expect("accepted");
}

/// Lets time pass until something holds; says how long that took.
async fn pass_until(clock: &TestClock, what: &str, mut holds: impl AsyncFnMut() -> bool) -> Duration {
    let begun = clock.now();
    eventually(what, async || {
        clock.advance(Duration::from_secs(1));
        holds().await
    })
    .await;
    clock.now().since(begun)
}

fn on_hold() -> DeadFilter {
    DeadFilter { code: Some(TARGET_ON_HOLD.into()), ..DeadFilter::default() }
}

/// The letters of a pipeline whose target stayed away.
async fn given_up(redrive: &Redrive) -> Vec<DeadLetter> {
    redrive.store().list_dead(ListDead::newest(on_hold(), 100)).await.expect("listed").items
}

#[tokio::test]
async fn jobs_of_a_target_that_stays_away_become_letters_and_are_replayed_when_it_is_back() {
    let (redrive, clock) = redrive();
    let well = Arc::new(AtomicBool::new(false));
    let pipeline = absent(Reason::Dns, &well, BreakerPolicy::default());
    let begun = clock.now();
    enqueue_of_one_target(&redrive, &pipeline, 60).await;
    let stop = CancellationToken::new();
    let worker = redrive.worker(vec![pipeline.clone()]).with_replays();
    let working = tokio::spawn(worker.run(Until::Stopped, stop.clone()));
    let dead = async |redrive: &Redrive| redrive.ledger(pipeline.name()).await.expect("read").dead;
    let took = pass_until(&clock, "all are letters", async || dead(&redrive).await == 60).await;
    assert!(took >= Duration::from_secs(30 * 60), "not before the half hour is over: {took:?}");
    let letters = given_up(&redrive).await;
    assert!(letters.len() >= 40, "few used their attempts up: {}", letters.len());
    let died = redrive.count_died(pipeline.name(), begun).await.expect("counted");
    assert_eq!(died, 60, "alerts and rates count them");
    for letter in &letters {
        let said = (letter.reason, letter.gate, letter.message.as_str());
        assert_eq!(said, (Reason::Dns, Gate::Auto, "nobody is there"), "{letter:?}");
    }
    well.store(true, Ordering::Relaxed);
    // Nobody asks the target while nothing is left of it: the next job does.
    enqueue_of_one_target(&redrive, &pipeline, 3).await;
    pass_until(&clock, "they are replayed, by whom nobody asked", async || given_up(&redrive).await.is_empty()).await;
    pass_until(&clock, "they are done", async || {
        let ledger = redrive.ledger(pipeline.name()).await.expect("read");
        ledger.done >= 3 + i64::try_from(letters.len()).expect("few")
    })
    .await;
    stop.cancel();
    working.await.expect("no panic").expect("stopped");
    let replays = redrive.store().list_replays(ListReplays::newest(9)).await;
    let replays = replays.expect("listed").items;
    assert_eq!(replays.iter().map(|replay| replay.name.as_str()).collect::<Vec<_>>(), ["recovered: sick"]);
    assert_eq!(replays[0].progress.total, letters.len() as u64);
    assert_eq!(replays[0].pacing.ramp, Pacing::default().ramp, "in growing steps");
    assert!(!replays[0].automatic, "it is none of the two automatic replays of a letter");
}

#[tokio::test]
async fn letters_of_a_target_that_is_back_are_replayed_a_thousand_at_a_time() {
    let (redrive, clock) = redrive();
    let well = Arc::new(AtomicBool::new(false));
    let policy = BreakerPolicy { hold_max: Some(Duration::from_secs(120)), ..BreakerPolicy::default() };
    let pipeline = absent(Reason::Dns, &well, policy).concurrency(50);
    enqueue_of_one_target(&redrive, &pipeline, 1_100).await;
    let stop = CancellationToken::new();
    let worker = redrive.worker(vec![pipeline.clone()]).with_replays();
    let working = tokio::spawn(worker.run(Until::Stopped, stop.clone()));
    let ledger = async || redrive.ledger(pipeline.name()).await.expect("read");
    pass_until(&clock, "all are letters", async || ledger().await.dead == 1_100).await;
    let count = CountDead { filter: on_hold(), by: DeadBy::Target, limit: 1 };
    let letters = redrive.store().count_dead(count).await.expect("counted")[0].count;
    assert!(letters > 1_000, "{letters}");
    well.store(true, Ordering::Relaxed);
    enqueue_of_one_target(&redrive, &pipeline, 3).await;
    pass_until(&clock, "they are done", async || ledger().await.done == letters + 3).await;
    stop.cancel();
    working.await.expect("no panic").expect("stopped");
    let all = ListReplays::newest(9);
    let replays = redrive.store().list_replays(all).await.expect("listed").items;
    let totals: Vec<_> = replays.iter().map(|replay| i64::try_from(replay.progress.total).expect("few")).collect();
    assert_eq!(totals, [letters - 1_000, 1_000], "the newest first");
}

#[tokio::test]
async fn letters_stay_though_their_target_is_back_if_recovery_is_to_do_nothing() {
    let (redrive, clock) = redrive();
    let well = Arc::new(AtomicBool::new(false));
    let policy = BreakerPolicy { replays_on_recovery: false, ..BreakerPolicy::default() };
    let pipeline = absent(Reason::Dns, &well, policy);
    enqueue_of_one_target(&redrive, &pipeline, 60).await;
    let stop = CancellationToken::new();
    let worker = redrive.worker(vec![pipeline.clone()]).with_replays();
    let working = tokio::spawn(worker.run(Until::Stopped, stop.clone()));
    let ledger = async || redrive.ledger(pipeline.name()).await.expect("read");
    pass_until(&clock, "all are letters", async || ledger().await.dead == 60).await;
    let letters = given_up(&redrive).await.len();
    well.store(true, Ordering::Relaxed);
    enqueue_of_one_target(&redrive, &pipeline, 5).await;
    pass_until(&clock, "it is well again", async || ledger().await.done == 5).await;
    assert!(breakers(&redrive).await.is_empty());
    stop.cancel();
    working.await.expect("no panic").expect("stopped");
    assert_eq!(given_up(&redrive).await.len(), letters);
    let all = ListReplays::newest(9);
    assert!(redrive.store().list_replays(all).await.expect("listed").items.is_empty());
}

#[tokio::test]
async fn letters_of_a_target_that_refused_us_are_left_to_people() {
    let (redrive, clock) = redrive();
    let well = Arc::new(AtomicBool::new(false));
    let pipeline = absent(Reason::Blocked, &well, BreakerPolicy::default());
    enqueue_of_one_target(&redrive, &pipeline, 10).await;
    let stop = CancellationToken::new();
    let worker = redrive.worker(vec![pipeline.clone()]).with_replays();
    let working = tokio::spawn(worker.run(Until::Stopped, stop.clone()));
    let ledger = async || redrive.ledger(pipeline.name()).await.expect("read");
    pass_until(&clock, "all are letters", async || ledger().await.dead == 10).await;
    let letters = given_up(&redrive).await;
    assert!(!letters.is_empty() && letters.iter().all(|letter| letter.gate == Gate::Review), "{letters:?}");
    well.store(true, Ordering::Relaxed);
    enqueue_of_one_target(&redrive, &pipeline, 5).await;
    pass_until(&clock, "it is well again", async || ledger().await.done == 5).await;
    assert!(breakers(&redrive).await.is_empty());
    assert_eq!(given_up(&redrive).await.len(), letters.len(), "nobody said that we are welcome again");
    stop.cancel();
    working.await.expect("no panic").expect("stopped");
}

#[tokio::test]
async fn time_in_a_pause_does_not_make_letters_of_jobs_that_wait() {
    let (redrive, clock) = redrive();
    let pipeline = absent(Reason::Dns, &Arc::default(), BreakerPolicy::default());
    enqueue_of_one_target(&redrive, &pipeline, 60).await;
    let stop = CancellationToken::new();
    let working = tokio::spawn(redrive.worker(vec![pipeline.clone()]).run(Until::Stopped, stop.clone()));
    pass_until(&clock, "the target is held", async || {
        breakers(&redrive).await.first().is_some_and(|breaker| breaker.held > 40)
    })
    .await;
    let ada = Actor::new("ada", Via::Cli);
    redrive.pause_pipeline(pipeline.name(), None, &ada).await.expect("paused");
    // More than the half hour.
    for _ in 0..50 {
        clock.advance(Duration::from_secs(60));
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(given_up(&redrive).await.len(), 0, "the pause is nobody's fault");
    redrive.resume_pipeline(pipeline.name(), &ada).await.expect("resumed");
    let took = pass_until(&clock, "they become letters", async || given_up(&redrive).await.len() > 40).await;
    assert!(took >= Duration::from_secs(20 * 60), "what was waited before counts, and no more: {took:?}");
    stop.cancel();
    working.await.expect("no panic").expect("stopped");
}

/// How a drain ended whose target stays away, after how long, and how many letters of that there are.
async fn drained(policy: BreakerPolicy, max_wait: u64) -> (Result<(), Error>, Duration, usize) {
    let (redrive, clock) = redrive();
    let pipeline = absent(Reason::Network, &Arc::default(), policy);
    enqueue_of_one_target(&redrive, &pipeline, 60).await;
    let begun = clock.now();
    let worker = redrive.worker(vec![pipeline.clone()]).max_wait(Duration::from_secs(max_wait));
    let working = tokio::spawn(worker.run(Until::Drained, CancellationToken::new()));
    pass_until(&clock, "it ends", async || working.is_finished()).await;
    (working.await.expect("no panic"), clock.now().since(begun), given_up(&redrive).await.len())
}

#[tokio::test]
async fn what_a_drain_has_waited_for_in_vain_are_letters_in_the_end() {
    let (ended, took, letters) = drained(BreakerPolicy::default(), 600).await;
    ended.expect("nothing is left");
    // After ten minutes, and then what was under way, which a cool-down of four minutes bounds.
    assert!((600..=840).contains(&took.as_secs()), "{took:?}");
    assert!(letters >= 40, "{letters}");
}

#[tokio::test]
async fn jobs_stay_queued_if_no_letters_are_wanted_or_nothing_was_waited_for() {
    let wait_for_ever = BreakerPolicy { hold_max: None, ..BreakerPolicy::default() };
    for (policy, max_wait) in [(wait_for_ever, 600), (BreakerPolicy::default(), 0)] {
        let (ended, _, letters) = drained(policy, max_wait).await;
        let Err(Error::WaitedInVain(waited)) = ended else { panic!("{ended:?}") };
        assert!(waited.queued >= 40 && letters == 0, "{waited:?}, {letters} letters");
    }
}

/// Neither a wait without end, as of `--max-wait forever`, nor one that is broken off, as with Ctrl-C, makes letters.
#[tokio::test]
async fn jobs_stay_queued_if_they_are_waited_for_without_end_or_the_worker_is_stopped() {
    for (max_wait, minutes) in [(None, 120), (Some(Duration::from_secs(3_600)), 20)] {
        let (redrive, clock) = redrive();
        let pipeline = absent(Reason::Network, &Arc::default(), BreakerPolicy::default());
        enqueue_of_one_target(&redrive, &pipeline, 60).await;
        let stop = CancellationToken::new();
        let worker = redrive.worker(vec![pipeline.clone()]);
        let worker = match max_wait {
            Some(max_wait) => worker.max_wait(max_wait),
            None => worker.wait_forever(),
        };
        let working = tokio::spawn(worker.run(Until::Drained, stop.clone()));
        pass_until(&clock, "the target is held", async || {
            breakers(&redrive).await.first().is_some_and(|breaker| breaker.held > 40)
        })
        .await;
        let until = clock.now() + Duration::from_secs(60 * minutes);
        eventually("time has passed", async || {
            clock.advance(Duration::from_secs(20));
            clock.now() > until
        })
        .await;
        assert!(!working.is_finished(), "it waits");
        stop.cancel();
        working.await.expect("no panic").expect("stopped");
        let ledger = redrive.ledger(pipeline.name()).await.expect("read");
        assert!(ledger.queued >= 40 && given_up(&redrive).await.is_empty(), "{max_wait:?}: {ledger:?}");
    }
}

/// A server gives up the jobs that its workers would, and none while no worker is there.
#[tokio::test]
async fn jobs_of_remote_workers_are_given_up_unless_those_wait_without_end_or_have_left() {
    for (waits_forever, leaves) in [(false, false), (true, false), (false, true)] {
        let (redrive, clock) = redrive();
        let breaker = BreakerPolicy { hold_max: Some(Duration::from_secs(20)), ..BreakerPolicy::default() };
        let served = absent(Reason::Network, &Arc::default(), breaker);
        let ran = if waits_forever { served.clone().waiting_forever() } else { served.clone() };
        enqueue_of_one_target(&redrive, &served, 60).await;
        let stop = CancellationToken::new();
        let upkeep = redrive.worker(vec![served.clone()]).only_upkeep();
        let upkeep = tokio::spawn(upkeep.run(Until::Stopped, stop.clone()));
        let worker = redrive.remote_worker(None, "far.example", 7);
        let ended = |lease| {
            let outcome = Outcome::Failed(FailureReport::new(Reason::Network, "nobody is there"));
            let (handed_on, duration) = (Vec::new(), Some(Duration::from_secs(1)));
            EndedJob { lease, outcome, result: None, log: None, is_written: false, handed_on, payload: None, duration }
        };
        for _ in 0..4 {
            worker.look(std::slice::from_ref(&ran), (TakesReplays::None, 0)).await.expect("seen");
            let leased = worker.lease(&ran, (Lane::Queue, None), 10, Duration::from_secs(30)).await.expect("leased");
            let ended = leased.jobs.iter().map(|job| ended(job.lease)).collect();
            worker.settle(&ran, ended).await.expect("settled");
        }
        if leaves {
            worker.detach().await.expect("it left");
        }
        let begun = clock.now();
        eventually("it is given up, or a minute has passed", async || {
            clock.advance(Duration::from_millis(100));
            clock.now().since(begun) > Duration::from_secs(60) || !given_up(&redrive).await.is_empty()
        })
        .await;
        let letters = given_up(&redrive).await.len();
        assert_eq!(letters > 0, !waits_forever && !leaves, "{letters} letters, {waits_forever}, {leaves}");
        stop.cancel();
        upkeep.await.expect("no panic").expect("stopped");
    }
}

#[tokio::test]
async fn jobs_that_another_worker_goes_on_with_stay_queued() {
    let (redrive, clock) = redrive();
    let pipeline = absent(Reason::Network, &Arc::default(), BreakerPolicy::default());
    enqueue_of_one_target(&redrive, &pipeline, 60).await;
    let stop = CancellationToken::new();
    let other = tokio::spawn(redrive.worker(vec![pipeline.clone()]).run(Until::Stopped, stop.clone()));
    let worker = redrive.worker(vec![pipeline.clone()]).max_wait(Duration::from_secs(60));
    let working = tokio::spawn(worker.run(Until::Drained, CancellationToken::new()));
    pass_until(&clock, "it ends", async || working.is_finished()).await;
    let ended = working.await.expect("no panic");
    assert!(matches!(ended, Err(Error::WaitedInVain(_))), "{ended:?}");
    assert_eq!(given_up(&redrive).await.len(), 0);
    stop.cancel();
    other.await.expect("no panic").expect("stopped");
}

/// One job holds its target for hours; another, of the same target, finds that nothing can be run.
struct Broken {
    held: CancellationToken,
}

#[async_trait]
impl Handler for Broken {
    async fn run(&self, job: Job) -> Result<Success, HandlerError> {
        if job.input["n"] == 0 {
            return Err(hold(Some(7_200.0)));
        }
        self.held.cancelled().await;
        Err(HandlerError::Unavailable("the command is gone".into()))
    }
}

#[tokio::test]
async fn a_held_pipeline_whose_jobs_all_wait_for_a_target_is_waited_for_in_vain() {
    let (redrive, clock) = redrive();
    let held = CancellationToken::new();
    let pipeline = Pipeline::new("p", Broken { held: held.clone() }).expect("a pipeline").concurrency(2);
    redrive.enqueue(&pipeline, (0..2).map(|n| json!({"n": n, "url": "https://sick/"}))).await.expect("accepted");
    let begun = clock.now();
    let opening = async {
        eventually("the target is held", async || !breakers(&redrive).await.is_empty()).await;
        held.cancel();
        std::future::pending::<()>().await;
    };
    let waited = tokio::select! {
        waited = wait_in_vain(&redrive, &pipeline, &clock) => waited,
        () = opening => unreachable!("it is pending"),
    };
    assert_eq!((waited.queued, waited.targets.len()), (2, 1));
    assert!(clock.now().since(begun) < Duration::from_secs(7_200));
}

/// What becomes of a job's evidence.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Mood {
    Unkept,
    NotNeeded,
    Kept,
}

struct Moody {
    mood: Arc<Mutex<Mood>>,
    runs: Arc<AtomicU32>,
}

#[async_trait]
impl Handler for Moody {
    async fn run(&self, job: Job) -> Result<Success, HandlerError> {
        self.runs.fetch_add(1, Ordering::Relaxed);
        let mood = *self.mood.lock().expect("unpoisoned");
        match mood {
            Mood::Unkept => return Err(HandlerError::Unkept("the spool is full".into())),
            Mood::NotNeeded => {}
            Mood::Kept => job.evidence.save(job.evidence.capture()?, Response::default(), None).await?,
        }
        Ok(json!(null).into())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_that_kept_no_evidence_does_not_prove_that_evidence_can_be_kept() {
    let (redrive, clock) = redrive();
    let folder = tempfile::tempdir().expect("a folder");
    let vault = Vault::open(&folder.path().join("payloads").display().to_string(), &redrive).expect("a vault");
    let (mood, runs) = (Arc::new(Mutex::new(Mood::Unkept)), Arc::new(AtomicU32::new(0)));
    let handler = Moody { mood: Arc::clone(&mood), runs: Arc::clone(&runs) };
    let pipeline = Pipeline::new("p", handler).expect("a pipeline").vault(vault).keep_payloads(Keep::Always, 1 << 20);
    let stop = CancellationToken::new();
    let working = tokio::spawn(redrive.worker(vec![pipeline.clone()]).run(Until::Stopped, stop.clone()));
    let tries = async || {
        let workers = redrive.store().list_workers().await.expect("listed");
        workers.first().and_then(|worker| worker.holds.first()).map_or(0, |hold| hold.tries)
    };
    let done = async || redrive.ledger(pipeline.name()).await.expect("read").done;
    for expected in 1..=3 {
        *mood.lock().expect("unpoisoned") = Mood::Unkept;
        redrive.enqueue(&pipeline, [json!({"n": expected})]).await.expect("accepted");
        eventually("it is held", async || tries().await == expected).await;
        assert_eq!(runs.load(Ordering::Relaxed), 2 * expected - 1, "one job is one try");
        *mood.lock().expect("unpoisoned") = Mood::NotNeeded;
        clock.advance(Duration::from_secs(1 << (expected - 1)));
        eventually("it is done", async || done().await == i64::from(expected)).await;
        assert_eq!(tries().await, expected, "that says nothing about evidence");
    }
    *mood.lock().expect("unpoisoned") = Mood::Kept;
    redrive.enqueue(&pipeline, [json!({"n": "kept"})]).await.expect("accepted");
    eventually("evidence is kept again", async || tries().await == 0).await;
    stop.cancel();
    working.await.expect("no panic").expect("it ends well");
}

fn decorated<L: Layer>(layer: &Arc<L>) -> Arc<dyn Store> {
    Decorated::around(Arc::new(SqliteStore::in_memory().expect("opened")), layer)
}

fn quick_name() -> PipelineName {
    "p".parse().expect("a name")
}

fn quick() -> Pipeline {
    Pipeline::with_name(quick_name(), Arc::new(|_: Job| async { Ok(json!(1)) }))
}

/// A lease that was asked before tasks came, and is answered after, says nothing about them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lease_that_is_answered_late_does_not_end_the_waiting() {
    let layer = Arc::new(Delaying::new("lease"));
    let (redrive, clock) = over(decorated(&layer));
    let fed = CancellationToken::new();
    let worker = redrive.worker(vec![quick()]).max_wait(Duration::from_secs(60));
    layer.hold_back(true);
    let working = tokio::spawn(worker.run(Until::DrainedAfter(fed.clone()), CancellationToken::new()));
    eventually("a lease is asked for", async || layer.held_back() > 0).await;
    redrive.enqueue(&quick(), [json!({"n": 1})]).await.expect("accepted");
    clock.advance(Duration::from_secs(120));
    fed.cancel();
    layer.hold_back(false);
    working.await.expect("no panic").expect("it did not wait in vain");
    assert_eq!(redrive.ledger(&quick_name()).await.expect("read").done, 1);
}

/// Ten workers that have nothing to do ask for jobs at first and then every few seconds, and one of them does the chores.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn idle_workers_ask_rarely_and_one_does_the_chores() {
    const WORKERS: u64 = 10;
    let layer = Arc::<Counting>::default();
    let (redrive, clock) = over(decorated(&layer));
    redrive.enqueue(&quick(), [json!({"n": 1})]).await.expect("accepted");
    redrive.drain(quick()).await.expect("drained");
    let stop = CancellationToken::new();
    let mut working = tokio::task::JoinSet::new();
    for _ in 0..WORKERS {
        working.spawn(redrive.worker(vec![quick()]).run(Until::Stopped, stop.clone()));
    }
    eventually("all of them are there", async || layer.calls("attach_worker") > WORKERS).await;
    let chores = layer.calls("expire_dead");
    // The chores of a minute are done within it, by whoever leads.
    for _ in 0..66 {
        clock.advance(Duration::from_secs(1));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(layer.calls("expire_dead") - chores <= 2, "{:?}", layer.all());
    tokio::time::sleep(Duration::from_secs(1)).await;
    let before = layer.all();
    tokio::time::sleep(Duration::from_secs(4)).await;
    let leases = layer.calls("lease") - before.get("lease").copied().unwrap_or_default();
    assert!(leases <= 4 * WORKERS, "{leases} leases in 4 s by idle workers");
    stop.cancel();
    while let Some(ended) = working.join_next().await {
        ended.expect("no panic").expect("stopped");
    }
}

/// Says that another process keeps the store locked, the first times that some verbs are called.
#[derive(Default)]
struct Locked(Mutex<std::collections::BTreeMap<&'static str, u32>>);

const LOCKED: [&str; 3] = ["attach_worker", "lost_leases", "open_replay"];

impl Layer for Locked {
    async fn around<T, F, R>(&self, verb: &'static str, call: F) -> StoreResult<T>
    where
        T: Send,
        F: Fn() -> R + Send + Sync,
        R: Future<Output = StoreResult<T>> + Send,
    {
        let times = {
            let mut calls = self.0.lock().expect("unpoisoned");
            let times = calls.entry(verb).or_default();
            *times += 1;
            *times
        };
        if LOCKED.contains(&verb) && times <= 2 {
            return Err(StoreError::Busy { place: "here".into(), retry_after: Duration::ZERO });
        }
        call().await
    }
}

#[tokio::test]
async fn a_worker_that_begins_waits_for_a_store_that_is_locked_for_a_moment() {
    let layer = Arc::<Locked>::default();
    let (redrive, _) = over(decorated(&layer));
    redrive.enqueue(&quick(), [json!({"n": 1})]).await.expect("accepted");
    assert_eq!(redrive.drain(quick()).await.expect("drained").done, 1);
}

/// A replay that a policy asks for is begun once, though the store is locked on the way.
#[tokio::test]
async fn an_automatic_replay_waits_for_a_store_that_is_locked_for_a_moment() {
    let layer = Arc::<Locked>::default();
    let (redrive, clock) = over(decorated(&layer));
    let failing = |_: Job| async { Err::<serde_json::Value, _>(FailureReport::new(Reason::Timeout, "slow")) };
    let auto_replays = vec![AutoReplay::every(Duration::from_secs(3_600))];
    let policy = Policy { auto_replays, ..Policy::default() };
    let pipeline = Pipeline::with_name(quick_name(), Arc::new(failing)).with_policy(policy.clone()).attempts(1);
    redrive.enqueue(&pipeline, [json!({"n": 1})]).await.expect("accepted");
    redrive.drain(pipeline).await.expect("drained");
    clock.advance(Duration::from_secs(1));
    let stop = CancellationToken::new();
    let worker = redrive.worker(vec![quick().with_policy(policy)]).with_replays();
    let working = tokio::spawn(worker.run(Until::Stopped, stop.clone()));
    eventually("it recovers", async || redrive.ledger(&quick_name()).await.expect("read").done == 1).await;
    let all = ListReplays::newest(9);
    assert_eq!(redrive.store().list_replays(all).await.expect("listed").items.len(), 1);
    stop.cancel();
    working.await.expect("no panic").expect("stopped");
}

/// What one leader has to do does not keep the others from doing theirs.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_chore_that_does_not_end_stops_no_other() {
    let (counting, delaying) = (Arc::<Counting>::default(), Arc::new(Delaying::new("fold_counts")));
    let (redrive, clock) = over(Decorated::around(decorated(&counting), &delaying));
    redrive.enqueue(&quick(), [json!({"n": 1})]).await.expect("accepted");
    delaying.hold_back(true);
    let stop = CancellationToken::new();
    let working = tokio::spawn(redrive.worker(vec![quick()]).run(Until::Stopped, stop.clone()));
    eventually("it hangs", async || delaying.held_back() == 1).await;
    let before = counting.calls("expire_dead");
    // A look at the store for each second: whoever leads is answered before its term is over.
    as_time_passes(&clock, "others are done", async || {
        redrive.ledger(&quick_name()).await.expect("read");
        counting.calls("expire_dead") > before + 1
    })
    .await;
    stop.cancel();
    working.await.expect("no panic").expect("stopped");
}
