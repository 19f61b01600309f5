//! Reading, on connections of its own, so that a long list never waits for the writer nor the writer for it.
//!
//! An in-memory database has only one connection: there, reads are operations of the writer.

use std::path::{Path, PathBuf};
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
    idle: Arc<Mutex<Vec<Guarded>>>,
    free: Arc<Semaphore>,
}

/// At most so many connections are kept, and so many read at once, unless each of them takes long.
const KEPT_MAX: usize = 8;

/// How long to wait for one of them. To open another takes as long as many short reads, since all of the schema is read for it; but
/// who reads for long is not waited for.
const PATIENCE: Duration = Duration::from_millis(20);

impl Readers {
    pub(super) fn new(path: &Path, view: View, identity: Identity) -> Self {
        let free = Arc::new(Semaphore::new(KEPT_MAX));
        Self { path: path.to_owned(), view, identity, idle: Arc::default(), free }
    }

    /// From where it is read.
    pub(super) const fn view(&self) -> &View {
        &self.view
    }

    /// A place among those that read, if one becomes free soon.
    async fn place(&self) -> Option<OwnedSemaphorePermit> {
        match Arc::clone(&self.free).try_acquire_owned() {
            Ok(place) => Some(place),
            Err(_) => tokio::time::timeout(PATIENCE, Arc::clone(&self.free).acquire_owned()).await.ok()?.ok(),
        }
    }

    fn take(&self) -> Result<Guarded, Fault> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let open = || Ok(Guarded::new(connect::reader(&self.view)?, self.identity.clone()));
        idle.map_or_else(open, Ok)
    }

    fn give_back(&self, conn: Guarded) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < KEPT_MAX {
            idle.push(conn);
        }
    }

    fn read(&self, run: &Run) -> Result<Erased> {
        self.identity.check()?;
        let read = || {
            let conn = self.take()?;
            // One transaction, so that everything read is of one moment.
            let tx = conn.unchecked_transaction()?;
            let value = run(&tx);
            self.view.check()?;
            let value = value?;
            drop(tx);
            self.give_back(conn);
            Ok(value)
        };
        read().map_err(|fault: Fault| fault.into_store_error(&self.path))
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
            let (place, readers) = (readers.place().await, readers.clone());
            let task = tokio::task::spawn_blocking(move || {
                let read = readers.read(&run);
                drop(place);
                read
            });
            task.await.map_err(|_| StoreError::Closed)?
        }
        None => writer.call(None, DuringCopy::Allowed, move |batch| run(batch.connection())).await,
    }
}
