//! Bells: telling other processes what was written, and hearing of it.
//!
//! `NOTIFY` inside a transaction that works would have every commit of the database wait for the others, so it is sent apart, on a
//! connection of its own: at once, and then at most every 50 ms for all that came meanwhile. What this process writes rings here
//! before it is answered. One connection listens, while anybody does; if others wrote before it did, or it had to be made anew,
//! everything may have changed.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use redrive_core::ids::WorkerId;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_postgres::AsyncMessage;

use super::connect::{Heard, Target};
use super::fault::Fault;
use super::patience::Patience;
use super::sql::{Conn, args};
use super::{PostgresStore, schema, writer};
use crate::contract::{Bell, Change, ChangeStore, Changes, Topic};
use crate::error::StoreError;

/// At least so long apart are two notices of one process.
const EVERY: Duration = Duration::from_millis(50);

/// How often it is looked whether the connection that listens still does.
const CHECK: Duration = Duration::from_secs(10);

/// How long it may take to say so.
const CHECK_MAX: Duration = Duration::from_secs(5);

/// How often it is looked whether others wrote, where a connection cannot listen.
const LOOK: Duration = Duration::from_secs(1);

/// What is heard and told by one handle to a store.
pub(super) struct Bells {
    bell: Arc<Bell>,
    target: Target,
    id: WorkerId,
    /// How much others had written when this handle was opened.
    opened: i64,
    /// What is to be told to others; the first makes the task that does.
    told: Mutex<Option<mpsc::UnboundedSender<Change>>>,
    listening: Mutex<Option<JoinHandle<()>>>,
    /// Whether others are told nothing.
    is_silent: AtomicBool,
}

impl Drop for Bells {
    fn drop(&mut self) {
        if let Some(listening) = self.listening.get_mut().unwrap_or_else(PoisonError::into_inner).take() {
            listening.abort();
        }
    }
}

impl Bells {
    pub(super) fn new(target: Target, id: WorkerId, opened: i64) -> Self {
        Self {
            bell: Arc::default(),
            target,
            id,
            opened,
            told: Mutex::default(),
            listening: Mutex::default(),
            is_silent: AtomicBool::new(false),
        }
    }

    /// Tells others nothing from now on.
    pub(super) fn be_silent(&self) {
        self.is_silent.store(true, Ordering::Relaxed);
    }

    /// Tells of a change: here at once, elsewhere soon.
    pub(super) fn ring(&self, change: Change) {
        if change.is_none() {
            return;
        }
        self.bell.ring(change);
        if self.is_silent.load(Ordering::Relaxed) {
            return;
        }
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let told = told.get_or_insert_with(|| {
            let (told, waiting) = mpsc::unbounded_channel();
            tokio::spawn(tell(self.target.clone(), self.id, waiting));
            told
        });
        // Hints may be lost: others also look by themselves.
        let _ = told.send(change);
    }

    fn listen(&self) -> Changes {
        let changes = self.bell.listen();
        let mut listening = self.listening.lock().unwrap_or_else(PoisonError::into_inner);
        if listening.as_ref().is_none_or(JoinHandle::is_finished) {
            // What was heard once, and is heard again, may have missed something in between.
            let opened = listening.is_none().then_some(self.opened);
            let (target, id, bell) = (self.target.clone(), self.id, Arc::downgrade(&self.bell));
            *listening = Some(tokio::spawn(keep_hearing(target, id, bell, opened)));
        }
        changes
    }
}

impl ChangeStore for PostgresStore {
    fn changes(&self) -> Changes {
        self.bells.listen()
    }
}

/// The channel of a store.
fn channel(target: &Target) -> String {
    format!("redrive_{}", target.schema)
}

/// Tells other processes of changes, until there are no more.
async fn tell(target: Target, id: WorkerId, mut waiting: mpsc::UnboundedReceiver<Change>) {
    let mut conn: Option<Conn> = None;
    while let Some(mut change) = waiting.recv().await {
        while let Ok(more) = waiting.try_recv() {
            more.topics().for_each(|topic| change.add(topic));
        }
        let topics: Vec<&str> = change.topics().map(Topic::as_str).collect();
        let text = format!("{id} {}", topics.join(" "));
        if let Err(fault) = notify(&target, &mut conn, &text).await {
            tracing::debug!(?fault, "other processes were not told of a change");
            conn = None;
        }
        tokio::time::sleep(EVERY).await;
    }
}

async fn notify(target: &Target, conn: &mut Option<Conn>, text: &str) -> Result<(), Fault> {
    if conn.as_ref().is_none_or(Conn::is_closed) {
        *conn = Some(target.connect().await?);
    }
    let Some(conn) = conn else { return Ok(()) };
    conn.execute("SELECT pg_notify($1, $2)", args![channel(target), text]).await?;
    Ok(())
}

/// Hears of changes by others, on one connection after another, while anybody listens.
async fn keep_hearing(target: Target, id: WorkerId, bell: Weak<Bell>, mut opened: Option<i64>) {
    let mut patience = Patience::default();
    while bell.upgrade().is_some_and(|bell| bell.is_heard()) {
        match hear(&target, id, &bell, opened.take()).await {
            Ok(()) => return,
            Err(Fault::Store(error @ StoreError::NewerSchema { .. })) => {
                if let Some(bell) = bell.upgrade() {
                    bell.fail(Some(error));
                }
                return;
            }
            Err(fault) => tracing::debug!(?fault, "changes by others are not heard"),
        }
        patience.rest().await;
    }
}

/// How much processes have written, other than this one: it is another number whenever one did, came or left.
pub(super) async fn written_by_others(conn: &Conn, target: &Target, id: WorkerId) -> Result<i64, Fault> {
    let sql = format!("SELECT coalesce(sum(last), 0)::bigint FROM {}.sender WHERE id <> ALL($1)", target.schema);
    conn.query_one(&sql, args![writer::names(id).to_vec()], |row| row.get(0)).await
}

/// Hears of changes on one connection. `known` is how much others had written when everything was known.
async fn hear(target: &Target, id: WorkerId, bell: &Weak<Bell>, known: Option<i64>) -> Result<(), Fault> {
    let Heard { conn, mut messages } = target.direct().connect_to_hear().await?;
    if conn.is_pooled() {
        return look(&conn, target, id, (bell, known)).await;
    }
    conn.script(&format!("LISTEN {}", channel(target))).await?;
    // Whatever was written before this is not heard of.
    let missed = known != Some(written_by_others(&conn, target, id).await?);
    if let Some(bell) = bell.upgrade().filter(|_| missed) {
        bell.ring(Change::ALL);
    }
    let own = id.to_string();
    loop {
        let message = tokio::time::timeout(CHECK, messages.recv()).await;
        let Some(bell) = bell.upgrade().filter(|bell| bell.is_heard()) else { return Ok(()) };
        match message {
            Ok(Some(AsyncMessage::Notification(notice))) => bell.ring(heard(notice.payload(), &own)),
            Ok(Some(_)) => {}
            Ok(None) => return Err(Fault::Broken("the connection that listens ended".to_owned())),
            Err(_) => tokio::time::timeout(CHECK_MAX, check(&conn, target)).await.unwrap_or(Err(Fault::Silent))?,
        }
    }
}

/// Looks each second whether others wrote, where a pooler gives each transaction another connection: nothing can be heard there. What
/// they wrote is not known then: everything may have changed.
async fn look(
    conn: &Conn,
    target: &Target,
    id: WorkerId,
    (bell, mut known): (&Weak<Bell>, Option<i64>),
) -> Result<(), Fault> {
    tracing::info!(place = target.place, "there is a pooler between: changes by others are looked for each second");
    let mut checked = Instant::now();
    loop {
        let written = written_by_others(conn, target, id).await?;
        let Some(bell) = bell.upgrade().filter(|bell| bell.is_heard()) else { return Ok(()) };
        if known.replace(written) != Some(written) {
            bell.ring(Change::ALL);
        }
        drop(bell);
        tokio::time::sleep(LOOK).await;
        if checked.elapsed() >= CHECK {
            checked = Instant::now();
            schema::check(conn, target).await?;
        }
    }
}

/// What a notice is about; nothing if it is this process's own.
fn heard(text: &str, own: &str) -> Change {
    let mut words = text.split(' ');
    let mut change = Change::default();
    if words.next() != Some(own) {
        let known = words.filter_map(|word| Topic::ALL.into_iter().find(|topic| topic.as_str() == word));
        known.for_each(|topic| change.add(topic));
    }
    change
}

/// Whether the connection still listens, and the store is still one that is understood.
async fn check(conn: &Conn, target: &Target) -> Result<(), Fault> {
    let listens =
        conn.exists("SELECT 1 FROM pg_listening_channels() AS c(name) WHERE c.name = $1", args![channel(target)]);
    if !listens.await? {
        return Err(Fault::Broken("a pooler took the connection that listens".to_owned()));
    }
    schema::check(conn, target).await.map(|_| ())
}
