//! Changes: SQLite cannot tell another process that it wrote, so one thread per open store asks, and only while somebody
//! listens. What this process writes rings at once.
//!
//! A transaction counts up what it is about: `pipeline.changes` beside the ledger for jobs, a row of `topic` for the rest. Who
//! notices that the file was written reads these counters and takes off what this process has added itself.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

use rusqlite::Connection;

use super::SqliteStore;
use super::connect;
use super::fault::Fault;
use super::identity::{Guarded, Identity};
use super::schema;
use super::view::View;
use crate::contract::{Bell, Change, ChangeStore, Changes, Topic};
use crate::error::{Result, StoreError};

/// How often the file is looked at. A look reads one number.
const EVERY: Duration = Duration::from_millis(20);

/// How far the counter of each topic is, or by how much it grows.
pub(super) type Counters = [i64; Topic::ALL.len()];

/// What this process knows of changes: shared by the writer and the thread that asks.
#[derive(Default)]
pub(super) struct Noticed {
    pub(super) bell: Bell,
    /// What this process has added to each counter.
    own: [AtomicI64; Topic::ALL.len()],
    /// Set when the counters are to be read though the file looks as it did.
    look: AtomicBool,
}

impl Noticed {
    /// Called before a commit that adds so much: whoever looks in between must not take it for another's.
    pub(super) fn expect(&self, added: &Counters) {
        for (own, added) in self.own.iter().zip(added) {
            own.fetch_add(*added, Ordering::SeqCst);
        }
    }

    /// Called when the commit failed.
    pub(super) fn take_back(&self, added: &Counters) {
        self.expect(&added.map(|added| -added));
        self.look.store(true, Ordering::SeqCst);
    }

    /// Called after the commit.
    pub(super) fn tell(&self, added: &Counters) {
        let mut change = Change::default();
        for topic in Topic::ALL.into_iter().filter(|topic| added[*topic as usize] != 0) {
            change.add(topic);
        }
        self.bell.ring(change);
    }
}

/// Looks for changes by other processes, while anybody listens.
pub(super) struct Watcher {
    noticed: Arc<Noticed>,
    /// How to look; nothing in memory, where no other process can reach the store.
    looks: Option<Looks>,
    running: Arc<Mutex<bool>>,
    /// The thread that looks, and what ends it.
    thread: Mutex<Option<(Sender<()>, JoinHandle<()>)>>,
}

impl Drop for Watcher {
    /// Waits for the thread: a connection that is open when the process ends leaves the log behind.
    fn drop(&mut self) {
        let thread = self.thread.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((ends, thread)) = thread {
            drop(ends);
            let _ = thread.join();
        }
    }
}

#[derive(Clone)]
struct Looks {
    view: View,
    identity: Identity,
    path: PathBuf,
}

impl Watcher {
    /// Nobody else can change the store.
    pub(super) fn alone(noticed: Arc<Noticed>) -> Self {
        Self { noticed, looks: None, running: Arc::default(), thread: Mutex::default() }
    }

    pub(super) fn new(noticed: Arc<Noticed>, path: &Path, view: View, identity: Identity) -> Self {
        let looks = Some(Looks { view, identity, path: path.to_owned() });
        Self { noticed, looks, running: Arc::default(), thread: Mutex::default() }
    }

    fn listen(&self) -> Changes {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(looks) = self.looks.clone().filter(|_| !*running) else { return self.noticed.bell.listen() };
        // From this look on nothing is missed; what was before it is what the first hint is about.
        let mut seen = Seen::default();
        seen.look(&looks, &self.noticed);
        let changes = self.noticed.bell.listen();
        let (noticed, alive) = (Arc::downgrade(&self.noticed), Arc::clone(&self.running));
        let (ends, ended) = channel();
        let look = move || while keep_looking(&ended, &noticed, &alive, &looks, &mut seen) {};
        match std::thread::Builder::new().name("redrive-watcher".into()).spawn(look) {
            Ok(thread) => {
                *running = true;
                *self.thread.lock().unwrap_or_else(PoisonError::into_inner) = Some((ends, thread));
            }
            Err(error) => tracing::warn!(%error, "changes by other processes are noticed late"),
        }
        changes
    }
}

/// Looks once; says whether it is to go on: not if the store was closed, or nobody listens any more.
fn keep_looking(
    ended: &Receiver<()>,
    noticed: &Weak<Noticed>,
    running: &Mutex<bool>,
    looks: &Looks,
    seen: &mut Seen,
) -> bool {
    if ended.recv_timeout(EVERY) != Err(RecvTimeoutError::Timeout) {
        return false;
    }
    let noticed = {
        let mut running = running.lock().unwrap_or_else(PoisonError::into_inner);
        let noticed = noticed.upgrade().filter(|noticed| noticed.bell.is_heard());
        *running = noticed.is_some();
        noticed
    };
    noticed.inspect(|noticed| seen.look(looks, noticed)).is_some()
}

impl ChangeStore for SqliteStore {
    fn changes(&self) -> Changes {
        self.watcher.listen()
    }
}

/// What the last look found.
#[derive(Default)]
struct Seen {
    conn: Option<Guarded>,
    version: Option<i64>,
    /// What others have added to each counter.
    others: Option<Counters>,
}

impl Seen {
    fn look(&mut self, looks: &Looks, noticed: &Noticed) {
        match self.try_look(looks, noticed) {
            Ok(change) => {
                noticed.bell.fail(None);
                noticed.bell.ring(change);
            }
            Err(error @ (StoreError::Gone { .. } | StoreError::NewerSchema { .. })) => noticed.bell.fail(Some(error)),
            // A moment's trouble, which those who need an answer run into themselves.
            Err(error) => tracing::debug!(%error, "the store could not be looked at"),
        }
    }

    fn try_look(&mut self, looks: &Looks, noticed: &Noticed) -> Result<Change> {
        looks.identity.check()?;
        let mut look = || {
            let conn = match self.conn.take() {
                Some(conn) => conn,
                None => {
                    self.version = None;
                    Guarded::new(connect::reader(&looks.view)?, looks.identity.clone())
                }
            };
            let version = conn.pragma_query_value(None, "data_version", |row| row.get(0))?;
            let mut change = Change::default();
            if self.version != Some(version) || noticed.look.swap(false, Ordering::SeqCst) {
                // Somebody may have brought the store to a newer version meanwhile.
                schema::check(&conn, &looks.path)?;
                change = self.compare(counters(&conn)?, noticed);
                self.version = Some(version);
            }
            self.conn = Some(conn);
            Ok(change)
        };
        look().map_err(|fault: Fault| fault.into_store_error(&looks.path))
    }

    /// What others have added. What happened before the first look is not known. A commit of this process that is under way is
    /// taken off already though it is not yet counted, so less than before says nothing; the look after the commit tells.
    fn compare(&mut self, counters: Counters, noticed: &Noticed) -> Change {
        let mut change = Change::default();
        let others = self.others.get_or_insert([i64::MIN; Topic::ALL.len()]);
        for topic in Topic::ALL {
            let added = counters[topic as usize] - noticed.own[topic as usize].load(Ordering::SeqCst);
            if added > others[topic as usize] {
                others[topic as usize] = added;
                change.add(topic);
            }
        }
        change
    }
}

fn counters(conn: &Connection) -> Result<Counters, Fault> {
    let tx = conn.unchecked_transaction()?;
    let mut counters = Counters::default();
    let jobs = "SELECT ifnull(sum(changes), 0) FROM pipeline";
    counters[Topic::Jobs as usize] = tx.prepare_cached(jobs)?.query_row([], |row| row.get(0))?;
    let mut select = tx.prepare_cached("SELECT name, changes FROM topic")?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        let name: String = row.get(0)?;
        if let Some(topic) = Topic::ALL.into_iter().find(|topic| topic.as_str() == name) {
            counters[topic as usize] += row.get::<_, i64>(1)?;
        }
    }
    Ok(counters)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_under_way_is_not_taken_for_another_s_and_hides_none() {
        let (mut seen, noticed) = (Seen::default(), Noticed::default());
        let so_far = Counters::default();
        let one_more = so_far.map(|count| count + 1);
        assert_eq!(seen.compare(so_far, &noticed), Change::ALL, "what was before the first look is not known");
        noticed.expect(&one_more);
        assert!(seen.compare(so_far, &noticed).is_none(), "nobody wrote");
        assert!(seen.compare(one_more, &noticed).is_none(), "this process wrote");
        noticed.expect(&one_more);
        assert!(
            seen.compare(one_more.map(|count| count + 1), &noticed).is_none(),
            "this process wrote, or another did"
        );
        assert_eq!(seen.compare(one_more.map(|count| count + 2), &noticed), Change::ALL, "another wrote too");
        noticed.expect(&one_more);
        noticed.take_back(&one_more);
        assert!(seen.compare(one_more.map(|count| count + 2), &noticed).is_none(), "the commit failed");
    }
}
