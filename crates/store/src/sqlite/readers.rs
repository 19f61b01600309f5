//! Reading, on connections of its own, so that a long list never waits for the writer nor the writer for it.
//!
//! An in-memory database has only one connection: there, reads are operations of the writer.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::Connection;

use super::connect;
use super::fault::Fault;
use super::identity::Identity;
use super::view::View;
use super::writer::Writer;
use crate::error::{Result, StoreError};

/// Connections to read on, opened as needed and kept.
#[derive(Clone)]
pub(super) struct Readers {
    path: PathBuf,
    view: View,
    identity: Identity,
    idle: Arc<Mutex<Vec<Connection>>>,
}

/// At most so many idle connections are kept.
const IDLE_MAX: usize = 8;

impl Readers {
    pub(super) fn new(path: &Path, view: View, identity: Identity) -> Self {
        Self { path: path.to_owned(), view, identity, idle: Arc::default() }
    }

    /// From where it is read.
    pub(super) const fn view(&self) -> &View {
        &self.view
    }

    fn take(&self) -> Result<Connection, Fault> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        idle.map_or_else(|| connect::reader(&self.view), Ok)
    }

    fn give_back(&self, conn: Connection) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < IDLE_MAX {
            idle.push(conn);
        }
    }

    fn read<T>(&self, run: impl FnOnce(&Connection) -> Result<T, Fault>) -> Result<T> {
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

/// Runs `run` on a consistent view of the database.
pub(super) async fn read<T, F>(readers: Option<&Readers>, writer: &Writer, run: F) -> Result<T>
where
    T: Send + 'static,
    F: Fn(&Connection) -> Result<T, Fault> + Send + 'static,
{
    match readers {
        Some(readers) => {
            let readers = readers.clone();
            let task = tokio::task::spawn_blocking(move || readers.read(run));
            task.await.map_err(|_| StoreError::Closed)?
        }
        None => writer.call(None, move |batch| run(batch.connection())).await,
    }
}
