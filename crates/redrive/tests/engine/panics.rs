//! A panic in one of a worker's own tasks ends the worker with an error: it never waits for what nobody does any more.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use redrive::chance::SeededChance;
use redrive::clock::{Clock, SystemClock};
use redrive::sink::{JobResult, Sink};
use redrive::worker::Until;
use redrive::{CancellationToken, Error, Job, Pipeline, Policy, Redrive, json};
use redrive_core::time::Timestamp;

/// How long an end is waited for.
const LIMIT: Duration = Duration::from_secs(120);

/// A sink that has a bug.
struct Panicking;

#[async_trait::async_trait]
impl Sink for Panicking {
    async fn write(&self, _: &[JobResult]) -> Result<(), Error> {
        panic!("the sink has a bug");
    }
}

/// How long a heartbeat waits in these tests.
const BEAT: Duration = Duration::from_secs(4);

/// The system's clock, which panics once when it is read after it was told to, or when a heartbeat waits for it.
#[derive(Default)]
struct Tripping {
    on_reading: AtomicBool,
    on_heartbeat: bool,
}

#[async_trait::async_trait]
impl Clock for Tripping {
    fn now(&self) -> Timestamp {
        assert!(!self.on_reading.swap(false, Ordering::SeqCst), "the clock has a bug");
        SystemClock.now()
    }

    async fn sleep_until(&self, instant: Timestamp) {
        SystemClock.sleep_until(instant).await;
    }

    async fn sleep(&self, duration: Duration) {
        assert!(!self.on_heartbeat || duration != BEAT, "the clock has a bug");
        SystemClock.sleep(duration).await;
    }
}

async fn over(clock: Tripping) -> (Redrive, Arc<Tripping>) {
    let (redrive, clock) = (Redrive::open("memory:").await.expect("opened"), Arc::new(clock));
    (redrive.with_surroundings(Arc::<Tripping>::clone(&clock), Arc::new(SeededChance::new(7))), clock)
}

/// Works until it ends, which must be with an error that says that something panicked.
#[track_caller]
fn assert_panicked<T>(ended: Result<Result<T, Error>, tokio::time::error::Elapsed>) {
    let Err(error) = ended.expect("the worker ends") else { panic!("it ended as if all were well") };
    assert!(matches!(error, Error::Internal(_)) && error.to_string().contains("panic"), "{error}");
}

#[tokio::test]
async fn a_sink_that_panics_ends_the_worker_with_an_error() {
    let (redrive, _) = over(Tripping::default()).await;
    let pipeline = Pipeline::new("p", |_: Job| async { Ok(json!(1)) }).expect("a pipeline").sink(Panicking);
    redrive.enqueue(&pipeline, (0..3).map(|n| json!({"n": n}))).await.expect("accepted");
    assert_panicked(tokio::time::timeout(LIMIT, redrive.drain(pipeline)).await);
    let ledger = redrive.ledger(&"p".parse().expect("a name")).await.expect("read");
    assert_eq!(ledger.done, 0, "what was not written is not done");
    assert_eq!(redrive.store().audit().await.expect("audited").problems, Vec::<String>::new());
}

#[tokio::test]
async fn a_panic_around_a_job_ends_the_worker_with_an_error() {
    let (redrive, clock) = over(Tripping::default()).await;
    let trip = move |_: Job| {
        clock.on_reading.store(true, Ordering::SeqCst);
        async { Ok(json!(1)) }
    };
    let pipeline = Pipeline::new("p", trip).expect("a pipeline");
    redrive.enqueue(&pipeline, [json!({"n": 1})]).await.expect("accepted");
    assert_panicked(tokio::time::timeout(LIMIT, redrive.drain(pipeline)).await);
}

#[tokio::test]
async fn a_heartbeat_that_panics_ends_the_worker_with_an_error() {
    let (redrive, _) = over(Tripping { on_heartbeat: true, ..Tripping::default() }).await;
    let policy = Policy { lease: BEAT * 3, ..Policy::default() };
    let pipeline = Pipeline::new("p", |_: Job| async { Ok(json!(1)) }).expect("a pipeline").with_policy(policy);
    let working = redrive.worker(vec![pipeline]).run(Until::Stopped, CancellationToken::new());
    assert_panicked(tokio::time::timeout(LIMIT, working).await);
}
