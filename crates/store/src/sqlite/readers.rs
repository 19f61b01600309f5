//! Reading, on connections of its own, so that a long list never waits for the writer nor the writer for it.
//!
//! An in-memory database has only one connection: there, reads are operations of the writer.

use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rusqlite::Connection;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::connect;
use super::fault::Fault;
use super::identity::{Guarded, Identity};
use super::view::View;
use super::writer::{DuringCopy, Writer};
use crate::erased::{Erased, erase, restore};
use crate::error::{Result, StoreError};

/// Connections to read on, opened as needed and kept.
#[derive(Clone)]
pub(super) struct Readers {
    path: PathBuf,
    view: View,
    identity: Identity,
    idle: Arc<Mutex<Vec<Idle>>>,
    free: Arc<Semaphore>,
    /// Places beside those, while each of those takes long.
    more: Arc<Semaphore>,
}

/// At most so many connections are kept, and so many read at once, unless each of them takes long.
const KEPT_MAX: usize = 8;

/// A connection that nobody reads from.
struct Idle {
    conn: Guarded,
    /// Set if it keeps what it has in memory.
    is_warm: bool,
}

/// So many of the idle ones keep what they have in memory, up to 8 MB each.
const WARM_MAX: usize = 2;

/// So many more read at once while those take long: who comes then waits for one of all. Each takes up to 8 MB.
const MORE_MAX: usize = 16;

/// Steps of SQLite's machine between two looks whether the caller still waits.
const LOOK_EVERY: i32 = 10_000;

/// How long to wait for one of them. To open another takes as long as many short reads, since all of the schema is read for it; but
/// who reads for long is not waited for.
const PATIENCE: Duration = Duration::from_millis(20);

impl Readers {
    pub(super) fn new(path: &Path, view: View, identity: Identity) -> Self {
        let (free, more) = (Arc::new(Semaphore::new(KEPT_MAX)), Arc::new(Semaphore::new(MORE_MAX)));
        Self { path: path.to_owned(), view, identity, idle: Arc::default(), free, more }
    }

    /// From where it is read.
    pub(super) const fn view(&self) -> &View {
        &self.view
    }

    /// Waits for a place among those that read.
    async fn place(&self) -> Result<OwnedSemaphorePermit> {
        let mut free = pin!(Arc::clone(&self.free).acquire_owned());
        let place = match tokio::time::timeout(PATIENCE, &mut free).await {
            Ok(place) => place,
            Err(_) => tokio::select! {
                place = free => place,
                place = Arc::clone(&self.more).acquire_owned() => place,
            },
        };
        place.map_err(|_| StoreError::Closed)
    }

    fn take(&self) -> Result<Guarded, Fault> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let open = || Ok(Guarded::new(connect::reader(&self.view)?, self.identity.clone()));
        idle.map_or_else(open, |idle| Ok(idle.conn))
    }

    /// Keeps a connection, and what it has in memory only while few others are warm: what was taken for a burst is returned.
    fn give_back(&self, conn: Guarded) {
        let idle = || self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let is_warm = idle().iter().filter(|idle| idle.is_warm).count() < WARM_MAX;
        if !is_warm && conn.execute_batch("PRAGMA shrink_memory").is_err() {
            return;
        }
        let mut idle = idle();
        if idle.len() < KEPT_MAX {
            // Warm ones are taken first.
            let at = if is_warm { idle.len() } else { 0 };
            idle.insert(at, Idle { conn, is_warm });
        }
    }

    fn read(&self, run: &Run, is_left: &Arc<AtomicBool>) -> Result<Erased> {
        self.identity.check()?;
        let read = || {
            let mut conn = self.take()?;
            let is_left = Arc::clone(is_left);
            conn.progress_handler(LOOK_EVERY, Some(move || is_left.load(Ordering::Relaxed)))?;
            // One transaction, so that everything read is of one moment.
            let tx = conn.unchecked_transaction()?;
            let value = run(&tx);
            self.view.check()?;
            let value = value?;
            drop(tx);
            conn.progress_handler(0, None::<fn() -> bool>)?;
            self.give_back(conn);
            Ok(value)
        };
        read().map_err(|fault: Fault| fault.into_store_error(&self.path))
    }
}

/// Says that the caller no longer waits, once it is dropped: what is read for them is interrupted.
#[derive(Default)]
struct Leaves(Arc<AtomicBool>);

impl Drop for Leaves {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Something to be read.
type Run = Box<dyn Fn(&Connection) -> Result<Erased, Fault> + Send>;

/// Runs `run` on a consistent view of the database.
pub(super) fn read<'s, T, F>(
    readers: Option<&'s Readers>,
    writer: &'s Writer,
    run: F,
) -> impl Future<Output = Result<T>> + Send
where
    T: Send + 'static,
    F: Fn(&Connection) -> Result<T, Fault> + Send + 'static,
{
    restored(readers, writer, Box::new(move |conn| run(conn).map(erase)))
}

async fn restored<T: 'static>(readers: Option<&Readers>, writer: &Writer, run: Run) -> Result<T> {
    read_erased(readers, writer, run).await.map(restore)
}

async fn read_erased(readers: Option<&Readers>, writer: &Writer, run: Run) -> Result<Erased> {
    match readers {
        Some(readers) => {
            let (place, readers) = (readers.place().await?, readers.clone());
            let left = Leaves::default();
            let is_left = Arc::clone(&left.0);
            let task = tokio::task::spawn_blocking(move || {
                let read = readers.read(&run, &is_left);
                drop(place);
                read
            });
            let read = task.await.map_err(|_| StoreError::Closed)?;
            drop(left);
            read
        }
        None => writer.call(None, DuringCopy::Allowed, move |batch| run(batch.connection())).await,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;
    use crate::location::Options;
    use crate::sqlite::SqliteStore;

    /// Never ends by itself.
    const ENDLESS: &str = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n";

    #[tokio::test(flavor = "multi_thread")]
    async fn reads_are_bounded_and_end_when_their_callers_leave() {
        let folder = tempfile::tempdir().expect("a folder");
        let store =
            SqliteStore::open(&folder.path().join("redrive.db"), Options { create: true, ..Options::default() });
        let store = Arc::new(store.expect("opened"));
        let (begun, begins) = mpsc::channel();
        let endless = || {
            let (store, begun) = (Arc::clone(&store), begun.clone());
            tokio::spawn(async move {
                store
                    .read(move |conn| {
                        begun.send(()).expect("somebody waits");
                        Ok(conn.query_row(ENDLESS, [], |row| row.get::<_, i64>(0))?)
                    })
                    .await
            })
        };
        let callers: Vec<_> = (0..KEPT_MAX + MORE_MAX + 10).map(|_| endless()).collect();
        for _ in 0..KEPT_MAX + MORE_MAX {
            begins.recv().expect("it begins");
        }
        let beyond = begins.recv_timeout(PATIENCE * 10);
        assert!(beyond.is_err(), "no more read at once");
        callers.iter().for_each(tokio::task::JoinHandle::abort);
        let one = store.read(|conn| Ok(conn.query_row("SELECT 1", [], |row| row.get::<_, i64>(0))?));
        assert_eq!(one.await.expect("there is a place again"), 1);
    }
}
