//! The clock, passed in, so that tests neither sleep nor flake.

use std::sync::{Arc, Mutex, PoisonError, RwLock, Weak};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use redrive_core::clock::{Bearing, Sample, Uptime};
use redrive_core::time::Timestamp;
use redrive_store::{Result, Store};
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

    /// By how much those of others who share a store may be ahead of it, for all that is known.
    fn grace(&self) -> Duration {
        Duration::ZERO
    }
}

/// How often the clock of a server is looked at, and how many looks that takes.
const LOOK_EVERY: Duration = Duration::from_secs(10);
const LOOKS: usize = 8;

/// The looks before anything else is asked: there is more time later.
const FIRST_LOOKS: usize = 2;

/// The clock of the server that a store is on, for all who share it: what their own clocks show does not matter. Between two looks it
/// goes on by a time that nobody sets, also while the server does not answer.
pub struct ServerClock {
    local: Arc<dyn Clock>,
    begun: Instant,
    bearing: RwLock<Bearing>,
}

impl ServerClock {
    /// Looks at the clock of a store's server, and goes on doing so as long as this is kept; nothing if the store has none of its own.
    pub async fn of(store: &Arc<dyn Store>, local: Arc<dyn Clock>) -> Result<Option<Arc<Self>>> {
        let begun = Instant::now();
        let Some(bearing) = look(store, begun, FIRST_LOOKS).await? else { return Ok(None) };
        let clock = Arc::new(Self { local, begun, bearing: RwLock::new(bearing) });
        tokio::spawn(keep_looking(Arc::downgrade(store), Arc::downgrade(&clock)));
        Ok(Some(clock))
    }

    fn bearing(&self) -> Bearing {
        *self.bearing.read().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn look(store: &Arc<dyn Store>, begun: Instant, looks: usize) -> Result<Option<Bearing>> {
    let mut samples = Vec::with_capacity(looks);
    for _ in 0..looks {
        let asked = begun.elapsed();
        let Some(showed) = store.server_time().await? else { return Ok(None) };
        samples.push(Sample { asked, answered: begun.elapsed(), showed });
    }
    Ok(Bearing::of(samples))
}

async fn keep_looking(store: Weak<dyn Store>, clock: Weak<ServerClock>) {
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        let (Some(store), Some(clock)) = (store.upgrade(), clock.upgrade()) else { return };
        match look(&store, clock.begun, LOOKS).await {
            Ok(Some(bearing)) => *clock.bearing.write().unwrap_or_else(PoisonError::into_inner) = bearing,
            Ok(None) => return,
            Err(error) => tracing::debug!(%error, "the server's clock could not be looked at"),
        }
    }
}

#[async_trait]
impl Clock for ServerClock {
    fn now(&self) -> Timestamp {
        self.bearing().now(self.begun.elapsed())
    }

    async fn sleep_until(&self, instant: Timestamp) {
        self.local.sleep(instant.since(self.now())).await;
    }

    async fn sleep(&self, duration: Duration) {
        self.local.sleep(duration).await;
    }

    fn uptime(&self) -> Option<Uptime> {
        self.local.uptime()
    }

    fn grace(&self) -> Duration {
        self.bearing().grace()
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
