//! The clock, passed in, so that tests neither sleep nor flake.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use redrive_core::clock::Uptime;
use redrive_core::time::Timestamp;
use tokio::sync::watch;

/// Tells the time and waits for it.
#[async_trait]
pub trait Clock: Send + Sync {
    /// What time it is.
    fn now(&self) -> Timestamp;

    /// Returns when it is `instant` or later.
    async fn sleep_until(&self, instant: Timestamp);

    /// Returns after so long, whatever is done to the clock meanwhile.
    async fn sleep(&self, duration: Duration);

    /// How long the machine has been running, if that is known.
    fn uptime(&self) -> Option<Uptime> {
        None
    }
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

    async fn sleep(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
    }

    fn uptime(&self) -> Option<Uptime> {
        let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?.trim().to_owned();
        let text = std::fs::read_to_string("/proc/uptime").ok()?;
        let elapsed = Duration::try_from_secs_f64(text.split(' ').next()?.parse().ok()?).ok()?;
        Some(Uptime { boot, millis: u64::try_from(elapsed.as_millis()).ok()? })
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
        self.set(self.now() + by);
    }

    /// Sets the clock, forward or back.
    pub fn set(&self, now: Timestamp) {
        *self.now.lock().unwrap_or_else(PoisonError::into_inner) = now;
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

    /// A clock that is set back says nothing about how long that took: it is over then.
    async fn sleep(&self, duration: Duration) {
        let (begun, mut moved) = (self.now(), self.moved.subscribe());
        while self.now() >= begun && self.now() < begun + duration {
            if moved.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }
}
