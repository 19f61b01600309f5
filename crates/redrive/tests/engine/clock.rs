//! A clock that was wrong and is set right: nothing expires at once, nothing waits for a time that is far away.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use redrive::clock::Clock;
use redrive::{CancellationToken, Error, FailureReport, Job, Pipeline, Reason, Redrive, json};
use redrive_core::ledger::Ledger;
use redrive_store::contract::LeaderStore;
use redrive_store::sqlite::SqliteStore;
use tokio::task::JoinHandle;

use self::in_memory::{eventually, over, redrive};

use crate::support::in_memory;

const DAY: Duration = Duration::from_secs(86_400);

async fn ledger(redrive: &Redrive) -> Ledger {
    redrive.ledger(&"p".parse().expect("a name")).await.expect("read")
}

fn work(redrive: &Redrive, pipeline: Pipeline, stop: &CancellationToken) -> JoinHandle<Result<(), Error>> {
    let (redrive, stop) = (redrive.clone(), stop.clone());
    tokio::spawn(async move { redrive.work(vec![pipeline], stop).await })
}

#[tokio::test]
async fn a_clock_that_is_set_right_discards_nothing_for_a_day() {
    let store = Arc::new(SqliteStore::in_memory().expect("opened"));
    let (redrive, clock) = over(Arc::<SqliteStore>::clone(&store));
    let right = clock.now() + DAY * 45;
    let broken = |_: Job| async { Err(FailureReport::new(Reason::NotFound, "no")) };
    let pipeline = Pipeline::new("p", broken).expect("a pipeline");
    redrive.enqueue(&pipeline, (0..3).map(|n| json!({"n": n}))).await.expect("accepted");
    let stop = CancellationToken::new();
    let working = work(&redrive, pipeline.clone(), &stop);
    eventually("they died, 45 days ago", async || ledger(&redrive).await.dead == 3).await;
    clock.set(right);
    // Retention looks every minute: these are many looks, within a day.
    for _ in 0..100 {
        clock.advance(Duration::from_secs(600));
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(ledger(&redrive).await.dead, 3);
    stop.cancel();
    working.await.expect("no panic").expect("stopped");
    // Another worker knows of it too.
    let stop = CancellationToken::new();
    let working = work(&redrive, pipeline, &stop);
    for _ in 0..20 {
        clock.advance(Duration::from_secs(60));
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(ledger(&redrive).await.dead, 3);
    while ledger(&redrive).await.discarded < 3 {
        assert!(clock.now() < right + DAY * 3, "the wait is never over");
        clock.advance(Duration::from_secs(3_600));
        let since = clock.now();
        // Second by second, however slow the machine is: a step of hours would end the leader's term before it is renewed.
        eventually("retention looked", async || {
            clock.advance(Duration::from_secs(1));
            let chores = store.list_chores("pipeline p".to_owned()).await.expect("read");
            chores.iter().any(|chore| chore.name == "expire" && chore.last_run >= since)
        })
        .await;
    }
    assert!(clock.now() >= right + DAY, "not before a day was over");
    stop.cancel();
    working.await.expect("no panic").expect("stopped");
}

#[tokio::test]
async fn a_clock_that_was_ahead_for_a_moment_parks_no_retry() {
    let (redrive, clock) = redrive();
    let right = clock.now();
    let runs = Arc::new(AtomicU32::new(0));
    let (counted, seen) = (Arc::clone(&runs), Arc::clone(&clock));
    let pipeline = Pipeline::new("p", move |_: Job| {
        let run = counted.fetch_add(1, Ordering::SeqCst);
        if run == 0 {
            seen.set(right + Duration::from_secs(3 * 3_600));
        }
        async move {
            match run {
                0 => Err(FailureReport::new(Reason::Timeout, "slow")),
                _ => Ok(json!(null)),
            }
        }
    })
    .expect("a pipeline");
    redrive.enqueue(&pipeline, [json!({})]).await.expect("accepted");
    let stop = CancellationToken::new();
    let working = work(&redrive, pipeline, &stop);
    eventually("it failed three hours ahead", async || ledger(&redrive).await.retrying == 1).await;
    clock.set(right);
    eventually("it is tried again", async || ledger(&redrive).await.done == 1).await;
    assert_eq!((clock.now(), runs.load(Ordering::SeqCst)), (right, 2), "nobody waited for it");
    stop.cancel();
    working.await.expect("no panic").expect("stopped");
}
