//! An engine that outlives a store which does not answer: it waits, says so once, keeps what it has, and goes on.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use redrive::clock::{Clock, TestClock};
use redrive::events::{Happening, Heard};
use redrive::sink::{JobResult, Sink};
use redrive::worker::Until;
use redrive::{CancellationToken, Error, FailureReport, Job, Pipeline, Reason, Redrive, json};
use redrive_core::ids::PipelineName;
use redrive_core::workers::BEAT_EVERY;
use redrive_store::conformance::decorators::{Decorated, Layer};
use redrive_store::contract::WorkerView;
use redrive_store::sqlite::SqliteStore;
use redrive_store::{Result as StoreResult, StoreError};
use tokio::sync::watch;

use self::in_memory::{eventually, over};

use crate::support::in_memory;

/// What is wrong with the store.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Wrong {
    Unreachable,
    Locked,
    Full,
    /// Unreachable, but for leases, which wait for ever.
    SilentToLeases,
}

/// A store that does not answer while something is wrong with it.
#[derive(Default)]
struct Outage {
    wrong: Mutex<Option<Wrong>>,
    calls: Mutex<BTreeMap<&'static str, u32>>,
}

impl Outage {
    fn set(&self, wrong: Option<Wrong>) {
        *self.wrong.lock().expect("unpoisoned") = wrong;
    }

    /// How often a verb was called while something was wrong.
    fn refused(&self, verb: &str) -> u32 {
        self.calls.lock().expect("unpoisoned").get(verb).copied().unwrap_or_default()
    }
}

impl Layer for Outage {
    async fn around<T, F, R>(&self, verb: &'static str, call: F) -> StoreResult<T>
    where
        T: Send,
        F: Fn() -> R + Send + Sync,
        R: Future<Output = StoreResult<T>> + Send,
    {
        let place = || "the store".to_owned();
        let wrong = *self.wrong.lock().expect("unpoisoned");
        if wrong.is_some() {
            *self.calls.lock().expect("unpoisoned").entry(verb).or_default() += 1;
        }
        match wrong {
            None => call().await,
            Some(Wrong::SilentToLeases) if verb == "lease" => std::future::pending().await,
            Some(Wrong::Unreachable | Wrong::SilentToLeases) => {
                Err(StoreError::Unavailable { place: place(), why: "connection refused".into() })
            }
            Some(Wrong::Locked) => Err(StoreError::Busy { place: place(), retry_after: Duration::ZERO }),
            Some(Wrong::Full) => Err(StoreError::DiskFull { place: place() }),
        }
    }
}

fn name() -> PipelineName {
    "p".parse().expect("a name")
}

/// Jobs that run until they are let go, and how many began.
#[derive(Clone)]
struct Gate {
    open: watch::Sender<bool>,
    begun: Arc<AtomicU32>,
    ended: Arc<AtomicU32>,
}

impl Gate {
    fn new() -> Self {
        Self { open: watch::channel(false).0, begun: Arc::default(), ended: Arc::default() }
    }

    fn pipeline(&self) -> Pipeline {
        let gate = self.clone();
        let run = move |_: Job| {
            let gate = gate.clone();
            async move {
                gate.begun.fetch_add(1, Ordering::SeqCst);
                let _ = gate.open.subscribe().wait_for(|open| *open).await;
                gate.ended.fetch_add(1, Ordering::SeqCst);
                Ok(json!({"ok": true}))
            }
        };
        Pipeline::with_name(name(), Arc::new(run)).concurrency(3)
    }

    fn begun(&self) -> u32 {
        self.begun.load(Ordering::SeqCst)
    }

    fn ended(&self) -> u32 {
        self.ended.load(Ordering::SeqCst)
    }

    fn open(&self) {
        self.open.send_replace(true);
    }
}

/// Counts how often each result was written.
#[derive(Clone, Default)]
struct Written(Arc<Mutex<BTreeMap<String, u32>>>);

#[async_trait]
impl Sink for Written {
    async fn write(&self, results: &[JobResult]) -> Result<(), Error> {
        let mut written = self.0.lock().expect("unpoisoned");
        results.iter().for_each(|result| *written.entry(result.id.to_string()).or_default() += 1);
        Ok(())
    }
}

/// What was told of the store.
fn told(redrive: &Redrive) -> Arc<Mutex<Vec<Happening>>> {
    let (mut events, told) = (redrive.events().listen(), Arc::<Mutex<Vec<Happening>>>::default());
    let heard = Arc::clone(&told);
    tokio::spawn(async move {
        while let Some(Heard::Event(event)) = events.next().await {
            use Happening as H;
            if matches!(
                event.what,
                H::StoreAway { .. } | H::StoreBack { .. } | H::LeftUnsettled { .. } | H::LeaseLost { .. }
            ) {
                heard.lock().expect("unpoisoned").push(event.what.clone());
            }
        }
    });
    told
}

fn unreliable() -> (Arc<Outage>, Arc<dyn redrive_store::Store>) {
    let outage = Arc::<Outage>::default();
    let store = Decorated::around(Arc::new(SqliteStore::in_memory().expect("opened")), &outage);
    (outage, store)
}

/// Whatever it is that keeps the store from answering: jobs that run come to their end, nothing is begun, results wait and are written
/// once, and all of it goes on without anybody doing anything.
async fn outlives(wrong: Wrong) {
    let (outage, store) = unreliable();
    let (redrive, _clock) = over(store);
    let (gate, written, told) = (Gate::new(), Written::default(), told(&redrive));
    let pipeline = gate.pipeline().sink(written.clone());
    redrive.enqueue(&pipeline, (0..9).map(|n| json!({"n": n}))).await.expect("accepted");
    let stop = CancellationToken::new();
    let working = tokio::spawn(redrive.worker(vec![pipeline]).with_replays().run(Until::Stopped, stop.clone()));
    eventually("three run", async || gate.begun() == 3).await;
    outage.set(Some(wrong));
    eventually("it is said what is waited for", async || redrive.away().is_some()).await;
    gate.open();
    let away = redrive.away().expect("it is away");
    assert_eq!(away.place, "the store");
    let before = gate.begun();
    eventually("it is tried now and then", async || outage.refused("lease") >= 5).await;
    assert_eq!(gate.begun(), before, "nothing is begun");
    assert!(written.0.lock().expect("unpoisoned").is_empty(), "results wait until it is known whose the jobs are");
    outage.set(None);
    eventually("all are done", async || redrive.ledger(&name()).await.expect("read").done == 9).await;
    assert!(written.0.lock().expect("unpoisoned").values().all(|times| *times == 1), "each result is written once");
    eventually("it is said that it is over", async || told.lock().expect("unpoisoned").len() >= 2).await;
    let told = told.lock().expect("unpoisoned").clone();
    assert!(
        matches!(told.as_slice(), [Happening::StoreAway { .. }, Happening::StoreBack { .. }]),
        "once each, and no job was lost: {told:?}"
    );
    stop.cancel();
    working.await.expect("no panic").expect("it ends well");
    let audit = redrive.store().audit().await.expect("audited");
    assert!(audit.problems.is_empty(), "{:?}", audit.problems);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_outlives_a_store_that_cannot_be_reached() {
    outlives(Wrong::Unreachable).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_outlives_a_store_that_others_keep_locked() {
    outlives(Wrong::Locked).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_outlives_a_full_disk() {
    outlives(Wrong::Full).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_begins_while_the_store_is_away_waits_for_it() {
    let (outage, store) = unreliable();
    let (redrive, _clock) = over(store);
    let gate = Gate::new();
    gate.open();
    redrive.enqueue(&gate.pipeline(), [json!({"n": 1})]).await.expect("accepted");
    outage.set(Some(Wrong::Unreachable));
    let worker = redrive.worker(vec![gate.pipeline()]);
    let working = tokio::spawn(worker.run(Until::Drained, CancellationToken::new()));
    eventually("it is said what is waited for", async || redrive.away().is_some()).await;
    outage.set(None);
    working.await.expect("no panic").expect("drained");
    assert_eq!(redrive.ledger(&name()).await.expect("read").done, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_is_stopped_before_it_could_begin_ends() {
    let (outage, store) = unreliable();
    let (redrive, _clock) = over(store);
    outage.set(Some(Wrong::Unreachable));
    let stop = CancellationToken::new();
    let working = tokio::spawn(redrive.worker(vec![Gate::new().pipeline()]).run(Until::Stopped, stop.clone()));
    eventually("it is said what is waited for", async || redrive.away().is_some()).await;
    stop.cancel();
    working.await.expect("no panic").expect("it ends");
    assert!(redrive.ledger(&name()).await.is_err(), "and nobody in its process waits any longer");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_is_stopped_during_an_outage_ends_and_says_what_is_done_again() {
    let (outage, store) = unreliable();
    let (redrive, clock) = over(store);
    let (gate, written, told) = (Gate::new(), Written::default(), told(&redrive));
    let pipeline = gate.pipeline().sink(written.clone());
    redrive.enqueue(&pipeline, (0..3).map(|n| json!({"n": n}))).await.expect("accepted");
    let stop = CancellationToken::new();
    let worker = redrive.worker(vec![pipeline.clone()]).with_replays();
    let hurry = worker.hurry();
    let working = tokio::spawn(worker.run(Until::Stopped, stop.clone()));
    eventually("three run", async || gate.begun() == 3).await;
    outage.set(Some(Wrong::Unreachable));
    eventually("it is said what is waited for", async || redrive.away().is_some()).await;
    gate.open();
    stop.cancel();
    hurry.cancel();
    working.await.expect("no panic").expect("it ends");
    eventually("it says what is left", async || {
        told.lock().expect("unpoisoned").iter().any(|what| matches!(what, Happening::LeftUnsettled { jobs: 3 }))
    })
    .await;
    assert!(written.0.lock().expect("unpoisoned").is_empty(), "what is done again has no result yet");
    // Another comes when the store is back: nothing is lost.
    outage.set(None);
    clock.advance(Duration::from_secs(60));
    let stop = CancellationToken::new();
    let working = tokio::spawn(redrive.worker(vec![pipeline]).run(Until::Stopped, stop.clone()));
    in_memory::as_time_passes(&clock, "all are done", async || redrive.ledger(&name()).await.expect("read").done == 3)
        .await;
    stop.cancel();
    working.await.expect("no panic").expect("it ends well");
    assert!(written.0.lock().expect("unpoisoned").values().all(|times| *times == 1));
}

/// What waits for the store ends with the worker, not because the store answers: nobody takes that for an answer and writes results.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_leaves_does_not_take_its_own_end_for_the_end_of_the_outage() {
    let (outage, store) = unreliable();
    let (redrive, clock) = over(store);
    let (gate, written) = (Gate::new(), Written::default());
    let pipeline = gate.pipeline().sink(written.clone());
    redrive.enqueue(&pipeline, (0..3).map(|n| json!({"n": n}))).await.expect("accepted");
    let stop = CancellationToken::new();
    let worker = redrive.worker(vec![pipeline]);
    let hurry = worker.hurry();
    let working = tokio::spawn(worker.run(Until::Stopped, stop.clone()));
    eventually("three run", async || gate.begun() == 3).await;
    // Whoever asks for jobs is not answered at all: only the upkeep of the worker knows of an outage, and ends before its work does.
    outage.set(Some(Wrong::SilentToLeases));
    clock.advance(Duration::from_secs(6));
    eventually("it is said what is waited for", async || redrive.away().is_some()).await;
    gate.open();
    eventually("all have ended", async || gate.ended() == 3).await;
    stop.cancel();
    hurry.cancel();
    working.await.expect("no panic").expect("it ends");
    assert!(written.0.lock().expect("unpoisoned").is_empty(), "what is done again has no result yet");
}

/// A job whose lease ran out during the outage is still its worker's afterwards: nobody could extend anything meanwhile.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_an_outage_leases_are_extended_before_anybody_is_taken_for_gone() {
    let (outage, store) = unreliable();
    let (redrive, clock) = over(store);
    let gate = Gate::new();
    redrive.enqueue(&gate.pipeline(), (0..3).map(|n| json!({"n": n}))).await.expect("accepted");
    let (stop, told) = (CancellationToken::new(), told(&redrive));
    let mut working = tokio::task::JoinSet::new();
    for _ in 0..3 {
        working.spawn(redrive.worker(vec![gate.pipeline()]).run(Until::Stopped, stop.clone()));
    }
    eventually("three run", async || gate.begun() == 3).await;
    // Who has just begun believes nobody for a while; that is over.
    pass(&redrive, &clock, 20).await;
    outage.set(Some(Wrong::Unreachable));
    eventually("it is said what is waited for", async || redrive.away().is_some()).await;
    for _ in 0..28 {
        clock.advance(Duration::from_secs(1));
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    outage.set(None);
    eventually("it is over", async || redrive.away().is_none()).await;
    pass(&redrive, &clock, 40).await;
    assert_eq!(gate.begun(), 3, "nothing was begun anew");
    gate.open();
    eventually("all are done", async || redrive.ledger(&name()).await.expect("read").done == 3).await;
    let told = told.lock().expect("unpoisoned").clone();
    assert!(!told.iter().any(|what| matches!(what, Happening::LeaseLost { .. })), "{told:?}");
    stop.cancel();
    while let Some(ended) = working.join_next().await {
        ended.expect("no panic").expect("stopped");
    }
}

/// Lets seconds pass. Before each, workers have a moment to send the heartbeats that are due.
async fn pass(redrive: &Redrive, clock: &TestClock, secs: u64) {
    for _ in 0..secs {
        clock.advance(Duration::from_secs(1));
        let is_fresh = |worker: &WorkerView| worker.seen_at + BEAT_EVERY * 2 > clock.now();
        let all_are = async || redrive.store().list_workers().await.is_ok_and(|workers| workers.iter().all(is_fresh));
        let _ =
            tokio::time::timeout(Duration::from_millis(250), eventually("all have sent a heartbeat", all_are)).await;
    }
}

/// Somebody sits before a command: it waits for a while, and says what was wrong and where.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_waits_for_half_a_minute_and_then_says_what_is_wrong() {
    let (outage, store) = unreliable();
    let (redrive, _clock) = over(store);
    outage.set(Some(Wrong::Unreachable));
    let (asked, told) = (Instant::now(), told(&redrive));
    let error = redrive.ledger(&name()).await.expect_err("nobody answers");
    assert!(asked.elapsed() >= Duration::from_secs(30), "{:?}", asked.elapsed());
    assert_eq!(error.to_string(), "the store does not answer: connection refused");
    assert!(matches!(told.lock().expect("unpoisoned").as_slice(), [Happening::StoreAway { .. }]), "it said so, once");
    assert!((8..60).contains(&outage.refused("ledgers")), "{}", outage.refused("ledgers"));
    outage.set(Some(Wrong::Full));
    let error = redrive.ledger(&name()).await.expect_err("the disk is full");
    assert!(matches!(error, Error::Store(StoreError::DiskFull { .. })), "{error}");
}

/// Where a worker runs, calls wait for as long as it takes, but not those of who answers others.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_answers_others_gives_up_although_a_worker_waits() {
    let (outage, store) = unreliable();
    let (redrive, _clock) = over(store);
    let _waiting = redrive.keep_waiting();
    outage.set(Some(Wrong::Full));
    let error = redrive.answering().ledger(&name()).await.expect_err("the disk is full");
    assert!(matches!(error, Error::Store(StoreError::DiskFull { .. })), "{error}");
}

/// Chores, alerts and replays wait as everything else: they neither end nor ask without rest.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn during_an_outage_nobody_asks_without_rest() {
    let (outage, store) = unreliable();
    let (redrive, _clock) = over(store);
    let failing = AtomicBool::new(true);
    let run = move |_: Job| {
        let fails = failing.load(Ordering::Relaxed);
        async move { if fails { Err(FailureReport::new(Reason::Timeout, "slow")) } else { Ok(json!(1)) } }
    };
    let pipeline = Pipeline::with_name(name(), Arc::new(run));
    redrive.enqueue(&pipeline, (0..3).map(|n| json!({"n": n}))).await.expect("accepted");
    let stop = CancellationToken::new();
    let working = tokio::spawn(redrive.worker(vec![pipeline]).with_replays().run(Until::Stopped, stop.clone()));
    eventually("it works", async || redrive.ledger(&name()).await.expect("read").retrying == 3).await;
    outage.set(Some(Wrong::Unreachable));
    eventually("it is said what is waited for", async || redrive.away().is_some()).await;
    let all = || outage.calls.lock().expect("unpoisoned").values().sum::<u32>();
    let (before, since) = (all(), Instant::now());
    tokio::time::sleep(Duration::from_secs(4)).await;
    // Of a dozen tasks each asks a few times in the first seconds, and then every few.
    let per_second = f64::from(all() - before) / since.elapsed().as_secs_f64();
    assert!(per_second < 30.0, "{per_second} calls a second");
    stop.cancel();
    working.await.expect("no panic").expect("it ends, since it has no jobs");
}
