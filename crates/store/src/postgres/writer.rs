//! The connection that writes, with group commit, and the one that helps it where many enqueue (`waiting`).
//!
//! It takes every operation that waits, applies them inside one transaction, commits once and then answers all callers. There is no
//! fixed wait: while one group is being written the next gathers. An operation that is refused has written nothing. If a
//! statement fails, the group is rolled back and its operations are tried one by one.
//!
//! What was applied is known before the commit is sent, so a commit that is not answered leaves one question: whether it took place.
//! Each transaction begins by noting its number in the row of its connection in `sender`. Whoever lost the connection reads that row on a
//! new one, which waits until the old server process has let go of it: either the number is there, and the answers hold, or all is
//! written anew. Callers never see the difference. A commit lets go of its locks before it is on disk, so that processes do not wait for
//! each other's disk; what brings it there is sent along with it, and nobody is answered before that is.
//!
//! Operations that look at more than the jobs in their hands have the store to themselves: they hold the store's lock alone, the
//! others share it.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use redrive_core::ids::WorkerId;
use tokio::sync::oneshot;

use super::Running;
use super::batch::{Batch, Known};
use super::bells::Bells;
use super::connect::Target;
use super::copies;
use super::enqueuing::Enqueue;
use super::fault::Fault;
use super::operations::{Call, Enqueuing, Group, Operation, Share, Write, accept_together, answer};
use super::patience::Patience;
use super::sql::{Conn, args};
use super::waiting::{Taker, Waiting};
use crate::contract::{Change, EnqueuedJob, Topic};
use crate::erased::{Erased, restore};
use crate::error::{Result, StoreError};

/// How long a helper rests that got no connection.
const HELPER_RESTS: Duration = Duration::from_secs(10);

/// Why what was sent is not answered, by who sent it.
type Troubles = Arc<Mutex<[Option<StoreError>; 2]>>;

/// A handle to the writer. Once it is dropped, what waits is finished and the connections closed.
pub(super) struct Writer {
    waiting: Arc<Waiting>,
    troubles: Troubles,
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.waiting.close();
    }
}

/// The names under which the two connections of a process note what they wrote.
pub(super) fn names(id: WorkerId) -> [WorkerId; 2] {
    let mut other = *id.as_bytes();
    other[15] ^= 1;
    [id, WorkerId::from_bytes(other)]
}

impl Writer {
    pub(super) fn start(target: Target, conn: Conn, id: WorkerId, (bells, patience): (Arc<Bells>, Duration)) -> Self {
        let (waiting, troubles) = (Arc::<Waiting>::default(), Troubles::default());
        let has_helper = target.has_helper;
        let [first, second] = names(id);
        let work = |taker: Taker, conn: Option<Arc<Conn>>, id: WorkerId| Work {
            target: target.clone(),
            taker,
            waiting: Arc::clone(&waiting),
            conn,
            id,
            group: 0,
            is_noted: false,
            known: Known::default(),
            bells: Arc::clone(&bells),
            patience,
            troubles: Arc::clone(&troubles),
        };
        tokio::spawn(work(Taker::First, Some(Arc::new(conn)), first).run());
        if has_helper {
            tokio::spawn(work(Taker::Helper, None, second).run());
        }
        Self { waiting, troubles }
    }

    /// Why a group that was sent is not answered, if one is not.
    pub(super) fn trouble(&self) -> Option<StoreError> {
        self.troubles.lock().unwrap_or_else(PoisonError::into_inner).iter().flatten().next().cloned()
    }

    /// Runs `run` inside a transaction and answers once it is durable. It may run more than once, and must check what it can refuse
    /// before it writes.
    pub(super) fn call<P, T, F>(
        &self,
        about: Option<Topic>,
        share: Share,
        params: P,
        run: F,
    ) -> impl Future<Output = Result<T>> + Send
    where
        P: Send + Sync + 'static,
        T: Send + 'static,
        F: for<'a> Fn(&'a mut Batch, &'a P) -> Running<'a, T> + Send + Sync + 'static,
    {
        restored(self.send(about, share, Box::new((params, run))))
    }

    fn send(&self, about: Option<Topic>, share: Share, run: Write) -> Result<Answer> {
        let (reply, answer) = oneshot::channel();
        let call = Box::new(Call { about, share, run, value: None, reply });
        self.waiting.add(call).map_err(|_| StoreError::Closed)?;
        Ok(answer)
    }

    /// Accepts jobs together with those of all others that wait.
    pub(super) async fn enqueue(&self, asked: Enqueue) -> Result<Vec<EnqueuedJob>> {
        let (reply, answer) = oneshot::channel();
        let call = Box::new(Enqueuing { asked, accepted: Vec::new(), reply });
        self.waiting.add(call).map_err(|_| StoreError::Closed)?;
        answer.await.map_err(|_| StoreError::Closed)?
    }
}

/// Receives the answer to a call.
type Answer = oneshot::Receiver<Result<Erased>>;

async fn restored<T: 'static>(answer: Result<Answer>) -> Result<T> {
    answer?.await.map_err(|_| StoreError::Closed)?.map(restore)
}

/// A group that was applied: which of its operations were refused, and what was changed.
struct Applied {
    refusals: Vec<Option<StoreError>>,
    change: Change,
}

struct Work {
    target: Target,
    taker: Taker,
    waiting: Arc<Waiting>,
    conn: Option<Arc<Conn>>,
    /// Under which name it notes what it wrote.
    id: WorkerId,
    /// The number of the last group.
    group: i64,
    /// Whether its row is there.
    is_noted: bool,
    known: Known,
    bells: Arc<Bells>,
    /// For how long a server that does not answer is waited for with what was not sent.
    patience: Duration,
    /// Why what was sent is not answered.
    troubles: Troubles,
}

impl Work {
    async fn run(mut self) {
        while self.waiting.is_worth_it(self.taker).await {
            // Nothing is taken that another could write.
            if self.taker == Taker::Helper && self.connection().await.is_err() {
                self.waiting.rest(self.taker);
                tokio::time::sleep(HELPER_RESTS).await;
                continue;
            }
            let group = self.waiting.take(self.taker).await;
            if !group.is_empty() {
                self.settle(group).await;
            }
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
        let mut patience = Patience::of(self.patience);
        let mut unanswered: Option<Applied> = None;
        loop {
            let fault = match self.try_write(group, &mut unanswered).await {
                Ok(applied) => {
                    self.set_trouble(None);
                    self.bells.ring(applied.change);
                    return Ok(applied.refusals);
                }
                Err(fault) => fault,
            };
            self.known.forget();
            if fault.is_lost() {
                self.conn = None;
            } else {
                self.roll_back().await;
            }
            let is_wanted = group.iter().any(|operation| !operation.is_abandoned());
            if unanswered.is_some() && is_wanted {
                // It may have taken place: nobody can be told before that is known.
                self.wait_for_server(fault, &mut patience).await;
            } else if !patience.rest_after(&fault).await {
                self.set_trouble(None);
                let error = fault.into_store_error(&self.target.place);
                return Err(if unanswered.is_some() { error.unanswered() } else { error });
            }
        }
    }

    /// Rests while something that was sent is not answered. Who waited for long enough behind it is refused: it was not sent.
    async fn wait_for_server(&mut self, fault: Fault, patience: &mut Patience) {
        let is_over = patience.is_over_for(&fault);
        let error = fault.into_store_error(&self.target.place);
        self.set_trouble(Some(error.clone()));
        let refused = if is_over { self.waiting.take_all() } else { Vec::new() };
        refused.into_iter().for_each(|operation| operation.answer(Err(error.clone())));
        patience.rest().await;
    }

    fn set_trouble(&self, trouble: Option<StoreError>) {
        self.troubles.lock().unwrap_or_else(PoisonError::into_inner)[self.taker as usize] = trouble;
    }

    async fn try_write(&mut self, group: &mut Group, unanswered: &mut Option<Applied>) -> Result<Applied, Fault> {
        let conn = self.connection().await?;
        if unanswered.is_some() && self.was_written(&conn).await? {
            return unanswered.take().ok_or(Fault::NoRow);
        }
        *unanswered = None;
        self.begin(&conn, Share::of(group)).await?;
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
        let flush = self.target.flush(self.id);
        let (committed, flushed) = tokio::join!(conn.answers(), conn.script(&flush));
        let applied = Applied { refusals, change };
        match (committed, flushed) {
            (Ok(()), Ok(())) => Ok(applied),
            // It took place, and is not on disk yet for all that is known.
            (Ok(()), Err(fault)) => {
                *unanswered = Some(applied);
                Err(fault)
            }
            (Err(fault), _) => {
                *unanswered = fault.is_lost().then_some(applied);
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
            Share::Alone | Share::Copying => format!("pg_advisory_xact_lock({lock})"),
        };
        // Whoever marks the store has it alone: once the lock is there, so is the mark.
        let refuse = if share == Share::Copying { "" } else { copies::REFUSE };
        // Not waited for: whatever follows fails if this did.
        let begin = format!(
            "{}; INSERT INTO sender (id, last) VALUES ('{id}', {group})
                 ON CONFLICT (id) DO UPDATE SET seen_at = excluded.seen_at,
                    last = CASE WHEN greatest(sender.last, sender.void) < excluded.last THEN excluded.last END;
             SELECT {lock}{refuse}",
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
    /// the row, which may have been taken away. If it was not, its number is void: it is not written either if it comes late, as
    /// something on the way may keep it, and is sent anew under another.
    async fn was_written(&mut self, conn: &Conn) -> Result<bool, Fault> {
        let sql = format!(
            "INSERT INTO {}.sender (id, last, void) VALUES ($1, 0, $2)
             ON CONFLICT (id) DO UPDATE SET void = excluded.void, seen_at = excluded.seen_at RETURNING last",
            self.target.schema
        );
        let last: i64 = conn.query_one(&sql, args![self.id, self.group], |row| row.get(0)).await?;
        // It may have been seen, and not be on disk yet.
        conn.script(&self.target.flush(self.id)).await?;
        let was_written = last == self.group;
        self.group += i64::from(!was_written);
        Ok(was_written)
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
