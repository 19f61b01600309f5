//! The clock, passed in, so that tests neither sleep nor flake.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use redrive_core::time::Timestamp;
use tokio::sync::watch;

/// Tells the time and waits for it.
#[async_trait]
pub trait Clock: Send + Sync {
    /// What time it is.
    fn now(&self) -> Timestamp;

    /// Returns when it is `instant` or later.
    async fn sleep_until(&self, instant: Timestamp);
}

/// The system's clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

#[async_trait]
impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp::from_millis(i64::try_from(since_epoch.as_millis()).unwrap_or(i64::MAX))
    }

    async fn sleep_until(&self, instant: Timestamp) {
        tokio::time::sleep(instant.since(self.now())).await;
    }
}

/// A clock that stands still until it is told to go on.
#[derive(Debug)]
pub struct TestClock {
    now: Mutex<Timestamp>,
    moved: watch::Sender<()>,
}

impl TestClock {
    /// A clock that shows `now`.
    pub fn at(now: Timestamp) -> Self {
        Self { now: Mutex::new(now), moved: watch::channel(()).0 }
    }

    /// Moves the clock, and wakes whoever waited for that time.
    pub fn advance(&self, by: Duration) {
        *self.now.lock().unwrap_or_else(PoisonError::into_inner) = self.now() + by;
        self.moved.send_replace(());
    }
}

#[async_trait]
impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        *self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn sleep_until(&self, instant: Timestamp) {
        let mut moved = self.moved.subscribe();
        while self.now() < instant {
            if moved.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }
}
