//! The one thread that writes, with group commit.
//!
//! It takes every operation that waits, applies them inside one transaction, commits once and then answers all callers:
//! they share the price of the disk's flush. There is no fixed wait: while one group is being written the next gathers.
//!
//! An operation that is refused has written nothing. If the database itself fails, the whole group is rolled back and
//! its operations are tried one by one, so that only those that cannot be written fail; a full or locked disk fails all.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use redrive_core::ids::PipelineName;
use tokio::sync::oneshot;

use super::batch::Batch;
use super::changes::Noticed;
use super::connect::Patience;
use super::fault::Fault;
use super::identity::{Guarded, Identity};
use super::ledger::free_bytes;
use super::path_of;
use crate::contract::Topic;
use crate::erased::{Erased, erase, restore};
use crate::error::{Result, StoreError};
use crate::location::Location;

/// At most so many operations share a transaction.
const GROUP_MAX: usize = 512;

/// Pages by which the write-ahead log grows before it is copied into the database again.
const CHECKPOINT_PAGES: i32 = 2_000;

/// Pages after which the log should be begun anew.
const RESTART_PAGES: i32 = 16_000;

/// Pages by which the log grows before it is looked how much room there is.
const LOOK_PAGES: i32 = 64;

/// Bytes of a page.
const PAGE_BYTES: u64 = 4_096;

/// Treatment of an operation while the store is being copied.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum DuringCopy {
    /// Refused, because its changes would be missing in the copy.
    Refused,
    /// Allowed, because it belongs to the copy or only reads.
    Allowed,
}

/// The body of an operation. It may run more than once.
type Run = Box<dyn FnMut(&mut Batch<'_>) -> Result<Erased, Fault> + Send>;

/// An operation that waits for the writer.
struct Operation {
    /// Topic that listeners hear of if the operation changes anything.
    about: Option<Topic>,
    during_copy: DuringCopy,
    run: Run,
    value: Option<Erased>,
    reply: oneshot::Sender<Result<Erased>>,
}

impl Operation {
    fn apply(&mut self, batch: &mut Batch<'_>, place: &Location) -> Result<(), Fault> {
        if self.during_copy == DuringCopy::Refused {
            batch.check_mark(place)?;
        }
        let before = batch.connection().total_changes();
        self.value = Some((self.run)(batch)?);
        if let Some(topic) = self.about.filter(|_| batch.connection().total_changes() != before) {
            batch.touch(topic);
        }
        Ok(())
    }

    fn answer(self, committed: Result<()>) {
        let Self { value, reply, .. } = self;
        let answer = committed.and_then(|()| value.ok_or(StoreError::Closed));
        // The caller may have gone away; the effect is durable all the same.
        let _ = reply.send(answer);
    }
}

/// A handle to the writer thread. Dropping it finishes what waits and closes the database.
pub(super) struct Writer {
    operations: Option<Sender<Operation>>,
    thread: Option<JoinHandle<()>>,
    /// Why nothing can be written, if nothing can.
    refusal: Option<StoreError>,
}

impl Writer {
    pub(super) fn start(
        conn: Guarded,
        location: Location,
        patience: Patience,
        identity: Identity,
        noticed: Arc<Noticed>,
    ) -> Self {
        let (operations, waiting) = channel();
        let mut work = Work {
            conn,
            patience,
            identity,
            location,
            pipelines: HashMap::new(),
            log_pages: Arc::new(AtomicI32::new(0)),
            copied_pages: 0,
            noticed,
        };
        let thread = std::thread::Builder::new()
            .name("redrive-writer".into())
            .spawn(move || work.run(&waiting))
            .expect("the system can start one more thread");
        Self { operations: Some(operations), thread: Some(thread), refusal: None }
    }

    /// For a store that cannot be written: every operation is refused, with the reason.
    pub(super) fn refusing(refusal: StoreError) -> Self {
        Self { operations: None, thread: None, refusal: Some(refusal) }
    }

    /// Runs `run` inside a transaction and answers once it is durable. It may run more than once, and must check what it
    /// can refuse before it writes.
    pub(super) fn call<T, F>(
        &self,
        about: Option<Topic>,
        during_copy: DuringCopy,
        mut run: F,
    ) -> impl Future<Output = Result<T>> + Send
    where
        T: Send + 'static,
        F: FnMut(&mut Batch<'_>) -> Result<T, Fault> + Send + 'static,
    {
        let answer = self.send(about, during_copy, Box::new(move |batch| run(batch).map(erase)));
        restored(answer)
    }

    fn send(&self, about: Option<Topic>, during_copy: DuringCopy, run: Run) -> Result<Answer> {
        if let Some(refusal) = &self.refusal {
            return Err(refusal.clone());
        }
        let (reply, answer) = oneshot::channel();
        let operation = Operation { about, during_copy, run, value: None, reply };
        let operations = self.operations.as_ref().ok_or(StoreError::Closed)?;
        operations.send(operation).map_err(|_| StoreError::Closed)?;
        Ok(answer)
    }
}

/// Receives the answer to an operation.
type Answer = oneshot::Receiver<Result<Erased>>;

async fn restored<T: 'static>(answer: Result<Answer>) -> Result<T> {
    answer?.await.map_err(|_| StoreError::Closed)?.map(restore)
}

impl Drop for Writer {
    fn drop(&mut self) {
        drop(self.operations.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct Work {
    conn: Guarded,
    patience: Patience,
    identity: Identity,
    location: Location,
    pipelines: HashMap<PipelineName, i64>,
    /// Pages in the write-ahead log, and how many of them were there when it was last copied.
    log_pages: Arc<AtomicI32>,
    copied_pages: i32,
    noticed: Arc<Noticed>,
}

impl Work {
    fn run(&mut self, waiting: &Receiver<Operation>) {
        self.watch_log();
        while let Ok(first) = waiting.recv() {
            let group = std::iter::once(first).chain(waiting.try_iter().take(GROUP_MAX - 1)).collect();
            self.settle_group(group);
            self.checkpoint();
        }
    }

    fn settle_group(&mut self, mut group: Vec<Operation>) {
        match self.write(&mut group) {
            Ok(refusals) => {
                for (operation, refused) in group.into_iter().zip(refusals) {
                    operation.answer(refused.map_or(Ok(()), Err));
                }
            }
            // A full or locked disk fails all of them alike; anything else may be one operation's own fault.
            Err(error) if group.len() == 1 || error.is_about_the_store() => {
                group.into_iter().for_each(|operation| operation.answer(Err(error.clone())));
            }
            Err(_) => group.into_iter().for_each(|operation| self.settle_group(vec![operation])),
        }
    }

    /// Applies all operations in one transaction; says which of them were refused.
    fn write(&mut self, group: &mut [Operation]) -> Result<Vec<Option<StoreError>>> {
        self.try_write(group).map_err(|fault| {
            self.pipelines.clear();
            if !self.conn.is_autocommit()
                && let Err(error) = self.conn.execute_batch("ROLLBACK")
            {
                tracing::error!(%error, "a failed transaction could not be rolled back");
            }
            let error = fault.into_store_error(path_of(&self.location));
            if matches!(error, StoreError::DiskFull { .. }) {
                self.copy_log("TRUNCATE");
            }
            error
        })
    }

    fn try_write(&mut self, group: &mut [Operation]) -> Result<Vec<Option<StoreError>>, Fault> {
        self.identity.check()?;
        self.conn.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        let mut batch = Batch::new(&self.conn, &mut self.pipelines);
        let mut refusals = Vec::with_capacity(group.len());
        for operation in group {
            refusals.push(match operation.apply(&mut batch, &self.location) {
                Ok(()) => None,
                Err(Fault::Store(error)) if error.is_refusal() => Some(error),
                Err(fault) => return Err(fault),
            });
        }
        let added = batch.finish()?;
        self.noticed.expect(&added);
        if let Err(error) = self.conn.prepare_cached("COMMIT").and_then(|mut commit| commit.execute([])) {
            self.noticed.take_back(&added);
            return Err(error.into());
        }
        self.noticed.tell(&added);
        // What was written to a file that nobody can find is not durable.
        self.identity.check()?;
        Ok(refusals)
    }

    fn watch_log(&mut self) {
        let pages = Arc::clone(&self.log_pages);
        let hook = move |_: &mut rusqlite::hooks::Wal, log_pages: i32| {
            pages.store(log_pages, Ordering::Relaxed);
            Ok(())
        };
        // Setting the hook turns SQLite's own checkpoints, which would delay an answer, off.
        if let Err(error) = self.conn.wal_hook(Some(hook)) {
            tracing::warn!(%error, "checkpoints are left to SQLite");
        }
    }

    /// Copies the log into the database between two groups, when nobody waits for an answer. A log that has grown long
    /// is begun anew, unless a reader is still in it: nobody is made to wait for that. On a disk with little room it is cut
    /// to nothing before it takes half of the room that the database needs to take it in.
    fn checkpoint(&mut self) {
        let pages = self.log_pages.load(Ordering::Relaxed);
        if pages < self.copied_pages {
            self.copied_pages = 0;
        }
        let grown = pages - self.copied_pages;
        if grown < LOOK_PAGES {
            return;
        }
        let room = self.room_pages();
        if pages >= room {
            self.copy_log("TRUNCATE");
        } else if grown >= CHECKPOINT_PAGES {
            self.copy_log(if pages >= RESTART_PAGES { "RESTART" } else { "PASSIVE" });
        } else {
            return;
        }
        // What could not be copied now is tried again when the log has grown some more.
        self.copied_pages = pages;
    }

    /// How many pages the log may have, by the free space of the disk.
    fn room_pages(&self) -> i32 {
        let free = self.location.file().and_then(free_bytes);
        free.map_or(i32::MAX, |free| i32::try_from(free / PAGE_BYTES / 2).unwrap_or(i32::MAX))
    }

    fn copy_log(&mut self, mode: &str) {
        // A log that is not the store's any more would be written over what others have put there.
        if self.identity.check().is_err() {
            return;
        }
        let copy = format!("PRAGMA wal_checkpoint({mode})");
        if let Err(error) = self.patience.short(|| self.conn.query_row(&copy, [], |_| Ok(()))) {
            tracing::debug!(%error, "checkpoint put off");
        }
    }
}
