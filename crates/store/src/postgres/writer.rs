//! The one connection that writes, with group commit.
//!
//! It takes every operation that waits, applies them inside one transaction, commits once and then answers all callers. There is no
//! fixed wait: while one group is being written the next gathers. An operation that is refused has written nothing. If a
//! statement fails, the group is rolled back and its operations are tried one by one.
//!
//! What was applied is known before the commit is sent, so a commit that is not answered leaves one question: whether it took place.
//! Each transaction begins by noting its number in the row of this process in `sender`. Whoever lost the connection reads that row on a
//! new one, which waits until the old server process has let go of it: either the number is there, and the answers hold, or all is
//! written anew. Callers never see the difference.
//!
//! Operations that look at more than the jobs in their hands have the store to themselves: they hold the store's lock alone, the
//! others share it.

use std::sync::Arc;

use redrive_core::ids::WorkerId;
use tokio::sync::{mpsc, oneshot};

use super::Running;
use super::batch::{Batch, Known};
use super::bells::Bells;
use super::connect::Target;
use super::enqueuing::{self, Enqueue};
use super::fault::Fault;
use super::patience::Patience;
use super::sql::{Conn, args};
use crate::contract::{Change, EnqueuedJob, Topic};
use crate::error::{Result, StoreError};

/// At most so many operations share a transaction.
const GROUP_MAX: usize = 512;

/// At most so often it is looked who else comes.
const GATHER_MAX: usize = 16;

/// How an operation shares the store with those of other processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Share {
    /// It locks what it works on.
    Beside,
    /// It has the store to itself.
    Alone,
}

/// An operation that waits for the writer.
trait Operation: Send {
    fn apply<'a>(&'a mut self, batch: &'a mut Batch) -> Running<'a, ()>;
    fn share(&self) -> Share;
    /// If it enqueues: callers that wait at the same time are served together, before the others.
    fn enqueuing(&mut self) -> Option<&mut Enqueuing> {
        None
    }
    fn answer(self: Box<Self>, committed: Result<()>);
}

struct Call<P, T, F> {
    /// What it is about, if it changes anything.
    about: Option<Topic>,
    share: Share,
    params: P,
    run: F,
    value: Option<T>,
    reply: oneshot::Sender<Result<T>>,
}

impl<P, T, F> Operation for Call<P, T, F>
where
    P: Send + Sync,
    T: Send,
    F: for<'a> Fn(&'a mut Batch, &'a P) -> Running<'a, T> + Send + Sync,
{
    fn apply<'a>(&'a mut self, batch: &'a mut Batch) -> Running<'a, ()> {
        Box::pin(async move {
            let before = batch.conn().changed();
            self.value = Some((self.run)(batch, &self.params).await?);
            if let Some(topic) = self.about.filter(|_| batch.conn().changed() != before) {
                batch.touch(topic);
            }
            Ok(())
        })
    }

    fn share(&self) -> Share {
        self.share
    }

    fn answer(self: Box<Self>, committed: Result<()>) {
        let Self { value, reply, .. } = *self;
        let answer = committed.and_then(|()| value.ok_or(StoreError::Closed));
        // The caller may have gone away; the effect is durable all the same.
        let _ = reply.send(answer);
    }
}

/// Jobs that are to be accepted.
struct Enqueuing {
    asked: Enqueue,
    accepted: Vec<EnqueuedJob>,
    reply: oneshot::Sender<Result<Vec<EnqueuedJob>>>,
}

impl Operation for Enqueuing {
    fn apply<'a>(&'a mut self, _: &'a mut Batch) -> Running<'a, ()> {
        Box::pin(async { Ok(()) })
    }

    fn share(&self) -> Share {
        Share::Beside
    }

    fn enqueuing(&mut self) -> Option<&mut Enqueuing> {
        Some(self)
    }

    fn answer(self: Box<Self>, committed: Result<()>) {
        let Self { accepted, reply, .. } = *self;
        let _ = reply.send(committed.map(|()| accepted));
    }
}

/// Accepts the jobs of all that enqueue.
async fn accept_together(batch: &mut Batch, group: &mut Group) -> Result<(), Fault> {
    let mut callers: Vec<&mut Enqueuing> = group.iter_mut().filter_map(|operation| operation.enqueuing()).collect();
    let asked: Vec<&Enqueue> = callers.iter().map(|caller| &caller.asked).collect();
    let answers = enqueuing::enqueue_all(batch, &asked).await?;
    for (caller, answer) in callers.iter_mut().zip(answers) {
        caller.accepted = answer;
    }
    Ok(())
}

/// A handle to the writer. Once it is dropped, what waits is finished and the connection closed.
pub(super) struct Writer {
    operations: mpsc::UnboundedSender<Box<dyn Operation>>,
}

impl Writer {
    pub(super) fn start(target: Target, conn: Conn, id: WorkerId, bells: Arc<Bells>) -> Self {
        let (operations, waiting) = mpsc::unbounded_channel();
        let work =
            Work { target, conn: Some(Arc::new(conn)), id, group: 0, is_noted: false, known: Known::default(), bells };
        tokio::spawn(work.run(waiting));
        Self { operations }
    }

    /// Runs `run` inside a transaction and answers once it is durable. It may run more than once, and must check what it can refuse
    /// before it writes.
    pub(super) async fn call<P, T, F>(&self, (about, share): (Option<Topic>, Share), params: P, run: F) -> Result<T>
    where
        P: Send + Sync + 'static,
        T: Send + 'static,
        F: for<'a> Fn(&'a mut Batch, &'a P) -> Running<'a, T> + Send + Sync + 'static,
    {
        let (reply, answer) = oneshot::channel();
        let call = Box::new(Call { about, share, params, run, value: None, reply });
        self.operations.send(call).map_err(|_| StoreError::Closed)?;
        answer.await.map_err(|_| StoreError::Closed)?
    }

    /// Accepts jobs together with those of all others that wait.
    pub(super) async fn enqueue(&self, asked: Enqueue) -> Result<Vec<EnqueuedJob>> {
        let (reply, answer) = oneshot::channel();
        let call = Box::new(Enqueuing { asked, accepted: Vec::new(), reply });
        self.operations.send(call).map_err(|_| StoreError::Closed)?;
        answer.await.map_err(|_| StoreError::Closed)?
    }
}

/// A group that was applied: which of its operations were refused, and what was changed.
struct Applied {
    refusals: Vec<Option<StoreError>>,
    change: Change,
}

struct Work {
    target: Target,
    conn: Option<Arc<Conn>>,
    /// Under which name this process notes what it wrote.
    id: WorkerId,
    /// The number of the last group.
    group: i64,
    /// Whether the row of this process is there.
    is_noted: bool,
    known: Known,
    bells: Arc<Bells>,
}

type Group = [Box<dyn Operation>];

impl Work {
    async fn run(mut self, mut waiting: mpsc::UnboundedReceiver<Box<dyn Operation>>) {
        while let Some(first) = waiting.recv().await {
            gather(&waiting).await;
            let mut group = vec![first];
            while group.len() < GROUP_MAX
                && let Ok(next) = waiting.try_recv()
            {
                group.push(next);
            }
            self.settle(group).await;
        }
        self.leave().await;
    }

    async fn settle(&mut self, mut group: Vec<Box<dyn Operation>>) {
        match self.write(&mut group).await {
            // What no server answers fails all of them alike; anything else may be one operation's own fault.
            Err(error) if group.len() > 1 && !error.is_about_the_store() => {
                for operation in group {
                    let mut alone = vec![operation];
                    let written = self.write(&mut alone).await;
                    answer(alone, written);
                }
            }
            written => answer(group, written),
        }
    }

    /// Writes a group, on as many connections as that takes; says which of its operations were refused.
    async fn write(&mut self, group: &mut Group) -> Result<Vec<Option<StoreError>>> {
        self.group += 1;
        let mut patience = Patience::default();
        let mut unanswered: Option<Applied> = None;
        loop {
            let fault = match self.try_write(group, &mut unanswered).await {
                Ok(applied) => {
                    self.bells.ring(applied.change);
                    return Ok(applied.refusals);
                }
                Err(fault) => fault,
            };
            self.known.forget();
            if fault.is_lost() || fault.is_read_only() {
                self.conn = None;
            } else {
                self.roll_back().await;
            }
            if !(fault.is_lost() || fault.is_crossed()) || !patience.rest().await {
                let error = fault.into_store_error(&self.target.place);
                return Err(if unanswered.is_some() { error.unanswered() } else { error });
            }
        }
    }

    async fn try_write(&mut self, group: &mut Group, unanswered: &mut Option<Applied>) -> Result<Applied, Fault> {
        let conn = self.connection().await?;
        if unanswered.is_some() && self.was_written(&conn).await? {
            return unanswered.take().ok_or(Fault::NoRow);
        }
        *unanswered = None;
        let share = group.iter().map(|operation| operation.share()).find(|share| *share == Share::Alone);
        self.begin(&conn, share.unwrap_or(Share::Beside)).await?;
        let mut batch = Batch::new(Arc::clone(&conn), std::mem::take(&mut self.known));
        accept_together(&mut batch, group).await?;
        let mut refusals = Vec::with_capacity(group.len());
        for operation in group {
            refusals.push(match operation.apply(&mut batch).await {
                Ok(()) => None,
                Err(Fault::Store(error)) if error.is_refusal() => Some(error),
                Err(fault) => return Err(fault),
            });
        }
        let (change, known) = batch.finish().await?;
        self.known = known;
        // With what is written at the end, which nobody waits for: a statement of it that fails makes a rollback of the commit.
        conn.send_script("COMMIT".to_owned()).await;
        match conn.answers().await {
            Ok(()) => Ok(Applied { refusals, change }),
            Err(fault) => {
                *unanswered = fault.is_lost().then_some(Applied { refusals, change });
                Err(fault)
            }
        }
    }

    async fn connection(&mut self) -> Result<Arc<Conn>, Fault> {
        if let Some(conn) = self.conn.as_ref().filter(|conn| !conn.is_closed()) {
            return Ok(Arc::clone(conn));
        }
        let conn = Arc::new(self.target.connect().await?);
        if self.is_noted {
            self.end_former(&conn).await;
        }
        self.conn = Some(Arc::clone(&conn));
        Ok(conn)
    }

    /// Begins a transaction: its number first, which is the fence, then the store's lock.
    async fn begin(&mut self, conn: &Conn, share: Share) -> Result<(), Fault> {
        let (id, group, lock) = (self.id, self.group, self.target.lock());
        if !self.is_noted {
            self.note(conn).await?;
        }
        let lock = match share {
            Share::Beside => format!("pg_advisory_xact_lock_shared({lock})"),
            Share::Alone => format!("pg_advisory_xact_lock({lock})"),
        };
        // Not waited for: whatever follows fails if this did.
        let begin = format!(
            "{}; INSERT INTO sender VALUES ('{id}', {group}, now())
                 ON CONFLICT (id) DO UPDATE SET last = excluded.last, seen_at = excluded.seen_at; SELECT {lock}",
            self.target.begin_writing()
        );
        conn.send_script(begin).await;
        Ok(())
    }

    /// Makes the row of this process, which must be there before it is a fence, and takes away those of processes that were not heard of for long.
    async fn note(&mut self, conn: &Conn) -> Result<(), Fault> {
        let schema = &self.target.schema;
        conn.execute(
            &format!("INSERT INTO {schema}.sender (id, last) VALUES ($1, 0) ON CONFLICT DO NOTHING"),
            args![self.id],
        )
        .await?;
        conn.script(&format!(
            "DELETE FROM {schema}.sender WHERE id IN
                (SELECT id FROM {schema}.sender WHERE seen_at < now() - interval '30 days' FOR UPDATE SKIP LOCKED)"
        ))
        .await?;
        self.is_noted = true;
        Ok(())
    }

    /// Ends the server's processes that still have, or wait for, the row of this process: those of connections that were lost, which the
    /// server may not have noticed for minutes. What they were about to commit, they did or they did not: the row tells.
    async fn end_former(&self, conn: &Conn) {
        let sql = format!(
            "SELECT pg_terminate_backend(l.pid) FROM {}.sender s
             JOIN pg_locks l ON l.locktype = 'transactionid' AND l.transactionid = s.xmax
             WHERE s.id = $1 AND l.pid <> pg_backend_pid()",
            self.target.schema
        );
        if let Err(fault) = conn.exists(&sql, args![self.id]).await {
            tracing::debug!(?fault, "the connection before this one is left to the server");
        }
    }

    /// Whether the last group was written, once the server process that may still be at it has ended. It is waited for even if it makes
    /// the row: it may have been taken away.
    async fn was_written(&self, conn: &Conn) -> Result<bool, Fault> {
        let sql = format!(
            "INSERT INTO {}.sender (id, last) VALUES ($1, 0)
             ON CONFLICT (id) DO UPDATE SET seen_at = excluded.seen_at RETURNING last",
            self.target.schema
        );
        let last: i64 = conn.query_one(&sql, args![self.id], |row| row.get(0)).await?;
        Ok(last == self.group)
    }

    async fn roll_back(&mut self) {
        let Some(conn) = &self.conn else { return };
        // What was sent is of no interest any more, but its answers come first.
        let _ = conn.answers().await;
        if conn.script("ROLLBACK").await.is_err() {
            self.conn = None;
        }
    }

    /// Takes the row of this process away: nothing of it is unanswered.
    async fn leave(&mut self) {
        let schema = &self.target.schema;
        if let Some(conn) = self.conn.as_ref().filter(|_| self.is_noted) {
            let _ = conn.execute(&format!("DELETE FROM {schema}.sender WHERE id = $1"), args![self.id]).await;
        }
    }
}

/// Lets those come along who were answered a moment ago and ask for more, as long as they do. Nobody is waited for who is not here.
async fn gather(waiting: &mpsc::UnboundedReceiver<Box<dyn Operation>>) {
    let mut here = waiting.len();
    for _ in 0..GATHER_MAX {
        tokio::task::yield_now().await;
        let now = waiting.len();
        if now == here || now >= GROUP_MAX {
            return;
        }
        here = now;
    }
}

fn answer(group: Vec<Box<dyn Operation>>, written: Result<Vec<Option<StoreError>>>) {
    match written {
        Ok(refusals) => {
            for (operation, refused) in group.into_iter().zip(refusals) {
                operation.answer(refused.map_or(Ok(()), Err));
            }
        }
        Err(error) => group.into_iter().for_each(|operation| operation.answer(Err(error.clone()))),
    }
}
