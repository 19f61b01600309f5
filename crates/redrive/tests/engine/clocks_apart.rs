//! Workers on machines whose clocks are apart: they go by that of the server which they share.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use redrive::chance::SystemChance;
use redrive::clock::{Clock, ServerClock};
use redrive::worker::Until;
use redrive::{CancellationToken, Job, Pipeline, Policy, Redrive, json};
use redrive_core::time::Timestamp;
use redrive_store::{Options, Store};

use crate::server;

/// A machine whose own clock shows something else altogether, and the same store.
async fn machine(address: &str, shows: Timestamp) -> Redrive {
    let store: Arc<dyn Store> = redrive_store::open(address, Options::create()).await.expect("opened");
    let local = Arc::new(OffBy(shows));
    let clock = ServerClock::of(&store, local).await.expect("answered").expect("a server has a clock");
    Redrive::over(store).with_surroundings(clock, Arc::new(SystemChance))
}

/// A clock that stands at a wrong time; waiting works.
struct OffBy(Timestamp);

#[async_trait::async_trait]
impl Clock for OffBy {
    fn now(&self) -> Timestamp {
        self.0
    }

    async fn sleep_until(&self, _: Timestamp) {
        unreachable!("nobody goes by this clock")
    }

    async fn sleep(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
    }
}

/// Each of them would take the other's leases for run out, or last for ever, by its own clock.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn workers_whose_clocks_are_minutes_apart_leave_each_other_their_jobs() {
    let address = server::url(&server::schema());
    let real = Redrive::open(&address).await.expect("opened").now();
    let ahead = machine(&address, real + Duration::from_secs(1_200)).await;
    let behind = machine(&address, real - Duration::from_secs(1_200)).await;
    let apart = ahead.now().since(behind.now()).max(behind.now().since(ahead.now()));
    assert!(apart < Duration::from_secs(60), "{apart:?}");
    let runs = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&runs);
    let run = move |_: Job| {
        counted.fetch_add(1, Ordering::SeqCst);
        // Longer than a lease, which is extended meanwhile.
        async {
            tokio::time::sleep(Duration::from_secs(8)).await;
            Ok(json!(1))
        }
    };
    let policy = Policy { lease: Duration::from_secs(5), ..Policy::default() };
    let name = "p".parse().expect("a name");
    let pipeline = Pipeline::with_name(name, Arc::new(run)).with_policy(policy).concurrency(1);
    ahead.enqueue(&pipeline, (0..2).map(|n| json!({"n": n}))).await.expect("accepted");
    let stop = CancellationToken::new();
    let working = [&ahead, &behind]
        .map(|machine| tokio::spawn(machine.worker(vec![pipeline.clone()]).run(Until::Drained, stop.clone())));
    for working in working {
        working.await.expect("no panic").expect("drained");
    }
    assert_eq!(runs.load(Ordering::SeqCst), 2, "nothing was taken from who had it");
    assert_eq!(ahead.ledger(pipeline.name()).await.expect("read").done, 2);
}
