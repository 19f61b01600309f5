//! Redrive on a store in memory, with a clock that the test moves, and waiting for what happens in real time.

#![allow(dead_code, reason = "each test binary needs a part of it")]

use std::sync::Arc;
use std::time::Duration;

use redrive::Redrive;
use redrive::chance::SeededChance;
use redrive::clock::TestClock;
use redrive_core::time::Timestamp;
use redrive_store::Store;
use redrive_store::sqlite::SqliteStore;

/// What the clock shows at first.
pub fn at_start() -> Timestamp {
    Timestamp::from_millis(1_700_000_000_000)
}

/// Redrive in memory, and its clock.
pub fn redrive() -> (Redrive, Arc<TestClock>) {
    over(Arc::new(SqliteStore::in_memory().expect("opened")))
}

/// Redrive over a store, and its clock.
pub fn over(store: Arc<dyn Store>) -> (Redrive, Arc<TestClock>) {
    let (redrive, clock) = (Redrive::over(store), Arc::new(TestClock::at(at_start())));
    (redrive.with_surroundings(Arc::<TestClock>::clone(&clock), Arc::new(SeededChance::new(7))), clock)
}

/// Waits, in real time, until something holds.
pub async fn eventually(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    for _ in 0..2_000 {
        if holds().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("never happened: {what}");
}
