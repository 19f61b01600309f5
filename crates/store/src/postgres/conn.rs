//! A connection, and asking on it.
//!
//! Statements are kept prepared where the server's end stays the same. Behind a pooler that gives each transaction another one, a
//! name of ours may stand there for a statement of somebody else's: each statement is sent whole then.
//!
//! Statements whose answers nobody needs are sent and not waited for ([`Conn::send`]): the server works on them while the next are
//! written. Whether they went through is known when [`Conn::answers`] says so, or when anything after them is answered. Answers come
//! in the order of what was asked, and the driver keeps only the beginning of one that nobody takes: whoever waits for an answer takes
//! those before it, too.
//!
//! What is asked is boxed here: else the compiler goes through all of the driver anew for each verb that asks.

use std::collections::HashMap;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use futures_util::TryStreamExt;
use tokio::runtime::Handle;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{CancelToken, Client, RowStream, Statement};

use super::Running;
use super::connect::{Target, Task};
use super::fault::Fault;
use super::sql::{Args, Row, Value};
use super::watch::Watch;

/// The answer to something, when it comes.
type Answer = Pin<Box<dyn Future<Output = Result<(), tokio_postgres::Error>> + Send>>;

/// Something that was sent.
enum Sent {
    Waiting(Answer),
    Answered(Result<(), tokio_postgres::Error>),
}

impl Sent {
    /// Takes as much of the answer as has come.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Self::Waiting(answer) = self else { return Poll::Ready(()) };
        answer.as_mut().poll(cx).map(|answer| *self = Self::Answered(answer))
    }

    async fn answer(mut self) -> Result<(), tokio_postgres::Error> {
        std::future::poll_fn(|cx| self.poll(cx)).await;
        match self {
            Self::Waiting(answer) => answer.await,
            Self::Answered(answer) => answer,
        }
    }
}

/// A connection.
pub(super) struct Conn {
    client: Arc<Client>,
    task: Task,
    watch: Watch,
    is_pooled: bool,
    keeps_statements: bool,
    statements: Mutex<HashMap<String, Statement>>,
    changed: AtomicU64,
    sent: Mutex<Vec<Sent>>,
}

/// At most so many statements are kept prepared: some are written for one filter.
const STATEMENTS_MAX: usize = 512;

impl Conn {
    pub(super) fn new(client: Client, task: Task, watch: Watch, is_pooled: bool) -> Self {
        Self {
            client: Arc::new(client),
            task,
            watch,
            is_pooled,
            keeps_statements: !is_pooled,
            statements: Mutex::default(),
            changed: AtomicU64::new(0),
            sent: Mutex::default(),
        }
    }

    /// The same that keeps statements prepared, or not.
    pub(super) fn keeping_statements(self, keeps_statements: bool) -> Self {
        Self { keeps_statements, ..self }
    }

    /// Has the server end what is under way here once this is dropped: it goes on else, though nobody takes the answer.
    pub(super) fn cancel_on_drop(&self) -> CancelOnDrop {
        CancelOnDrop(Some((self.client.cancel_token(), self.watch.target().clone())))
    }

    /// Whether nothing can be asked here any more.
    pub(super) fn is_closed(&self) -> bool {
        self.client.is_closed()
    }

    /// Whether each transaction may meet another process of the server.
    pub(super) const fn is_pooled(&self) -> bool {
        self.is_pooled
    }

    /// How many rows were written so far.
    pub(super) fn changed(&self) -> u64 {
        self.changed.load(Ordering::Relaxed)
    }

    /// Waits for an answer while the server works on it. If it fails after something that was sent has failed, that is the reason.
    async fn answer<T>(&self, answer: impl Future<Output = Result<T, tokio_postgres::Error>>) -> Result<T, Fault> {
        match self.answer_alone(answer).await {
            Ok(value) => Ok(value),
            Err(fault) => {
                self.answers().await?;
                Err(fault)
            }
        }
    }

    async fn answer_alone<T>(
        &self,
        answer: impl Future<Output = Result<T, tokio_postgres::Error>>,
    ) -> Result<T, Fault> {
        let mut answer = pin!(answer);
        let in_turn = std::future::poll_fn(|cx| {
            self.take_answers(cx);
            answer.as_mut().poll(cx)
        });
        match self.watch.answer(in_turn).await {
            Some(answer) => Ok(answer?),
            None => {
                self.task.end();
                Err(Fault::Silent)
            }
        }
    }

    /// Takes what has come of the answers to what was sent, in their order.
    fn take_answers(&self, cx: &mut Context<'_>) {
        let mut sent = self.sent();
        let _ = sent.iter_mut().try_for_each(|sent| if sent.poll(cx).is_ready() { Ok(()) } else { Err(()) });
    }

    fn sent(&self) -> MutexGuard<'_, Vec<Sent>> {
        self.sent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn statement<'a>(&'a self, sql: &'a str) -> Running<'a, Statement> {
        Box::pin(async move {
            let known = || self.statements.lock().unwrap_or_else(PoisonError::into_inner);
            let found = known().get(sql).cloned();
            if let Some(statement) = found {
                return Ok(statement);
            }
            let statement = self.answer(self.client.prepare(sql)).await?;
            let mut known = known();
            if known.len() >= STATEMENTS_MAX {
                known.clear();
            }
            known.insert(sql.to_owned(), statement.clone());
            Ok(statement)
        })
    }

    /// Runs statements without values, one after another.
    pub(super) fn script<'a>(&'a self, sql: &'a str) -> Running<'a, ()> {
        Box::pin(self.answer(self.client.batch_execute(sql)))
    }

    /// Sends statements without values.
    pub(super) async fn send_script(&self, sql: String) {
        let client = Arc::clone(&self.client);
        self.begin(Box::pin(async move { client.batch_execute(&sql).await })).await;
    }

    /// Sends a statement whose answer nobody needs, besides that it went through.
    pub(super) async fn send(&self, sql: &str, args: impl Args + 'static) -> Result<(), Fault> {
        // How many rows it writes is not known yet: at least one, as far as others are told.
        self.changed.fetch_add(1, Ordering::Relaxed);
        let client = Arc::clone(&self.client);
        if !self.keeps_statements {
            let sql = sql.to_owned();
            let run = async move { run_out(client.query_typed_raw(&sql, typed(args.as_ref())).await?).await };
            self.begin(Box::pin(run)).await;
        } else {
            let statement = self.statement(sql).await?;
            let run = async move { run_out(client.query_raw(&statement, values(args.as_ref())).await?).await };
            self.begin(Box::pin(run)).await;
        }
        Ok(())
    }

    /// Something is sent when it is first looked at.
    async fn begin(&self, answer: Answer) {
        let mut sent = Sent::Waiting(answer);
        // Whatever has come of the answer by then.
        let _ = std::future::poll_fn(|cx| Poll::Ready(sent.poll(cx))).await;
        self.sent().push(sent);
    }

    /// Waits for the answers to what was sent; the first fault is the reason of all that follow it.
    pub(super) fn answers(&self) -> Running<'_, ()> {
        Box::pin(async move {
            let sent = std::mem::take(&mut *self.sent());
            let mut first = Ok(());
            for sent in sent {
                let answered = self.answer_alone(sent.answer()).await;
                first = first.and(answered);
            }
            first
        })
    }

    async fn ask(&self, sql: &str, args: &[Value]) -> Result<RowStream, Fault> {
        if !self.keeps_statements {
            return self.answer(self.client.query_typed_raw(sql, typed(args))).await;
        }
        let statement = self.statement(sql).await?;
        self.answer(self.client.query_raw(&statement, values(args))).await
    }

    /// Runs a statement; says how many rows it wrote.
    pub(super) async fn execute(&self, sql: &str, args: impl Args) -> Result<u64, Fault> {
        let (_, rows) = self.rows(sql, args.as_ref()).await?;
        self.changed.fetch_add(rows, Ordering::Relaxed);
        Ok(rows)
    }

    /// The rows of a statement, and how many it read or wrote.
    fn rows<'a>(&'a self, sql: &'a str, args: &'a [Value]) -> Running<'a, (Vec<tokio_postgres::Row>, u64)> {
        Box::pin(async move {
            let mut answers = pin!(self.ask(sql, args).await?);
            let mut rows = Vec::new();
            while let Some(row) = self.answer(answers.try_next()).await? {
                rows.push(row);
            }
            let affected = answers.rows_affected().unwrap_or(0);
            Ok((rows, affected))
        })
    }

    async fn read_rows(&self, sql: &str, args: impl Args) -> Result<Vec<tokio_postgres::Row>, Fault> {
        let (rows, _) = self.rows(sql, args.as_ref()).await?;
        if !sql.trim_start().starts_with("SELECT") {
            self.changed.fetch_add(rows.len() as u64, Ordering::Relaxed);
        }
        Ok(rows)
    }

    /// All rows of a statement.
    pub(super) async fn query<T>(
        &self,
        sql: &str,
        args: impl Args,
        mut read: impl FnMut(&Row<'_>) -> Result<T, Fault> + Send,
    ) -> Result<Vec<T>, Fault> {
        let rows = self.read_rows(sql, args).await?;
        rows.iter().map(|row| read(&Row(row))).collect()
    }

    /// The rows of a statement as far as they are wanted: `read` says whether more are. Only one is in memory besides those.
    pub(super) fn query_until<'a, T: Send + 'a>(
        &'a self,
        sql: &'a str,
        args: impl Args + 'a,
        mut read: impl FnMut(&Row<'_>) -> Result<(T, bool), Fault> + Send + 'a,
    ) -> Running<'a, Vec<T>> {
        Box::pin(async move {
            let mut answers = pin!(self.ask(sql, args.as_ref()).await?);
            let mut found = Vec::new();
            while let Some(row) = self.answer(answers.try_next()).await? {
                let (value, more) = read(&Row(&row))?;
                found.push(value);
                if !more {
                    break;
                }
            }
            Ok(found)
        })
    }

    /// The first row of a statement, if it has one.
    pub(super) async fn query_opt<T>(
        &self,
        sql: &str,
        args: impl Args,
        read: impl FnOnce(&Row<'_>) -> Result<T, Fault> + Send,
    ) -> Result<Option<T>, Fault> {
        let rows = self.read_rows(sql, args).await?;
        rows.first().map(|row| read(&Row(row))).transpose()
    }

    /// The first row of a statement that has one.
    pub(super) async fn query_one<T>(
        &self,
        sql: &str,
        args: impl Args,
        read: impl FnOnce(&Row<'_>) -> Result<T, Fault> + Send,
    ) -> Result<T, Fault> {
        self.query_opt(sql, args, read).await?.ok_or(Fault::NoRow)
    }

    /// Whether a statement has a row.
    pub(super) async fn exists(&self, sql: &str, args: impl Args) -> Result<bool, Fault> {
        Ok(!self.read_rows(sql, args).await?.is_empty())
    }
}

/// Cancels what is under way on a connection when it is dropped.
pub(super) struct CancelOnDrop(Option<(CancelToken, Target)>);

impl CancelOnDrop {
    /// Cancels nothing: it is over.
    pub(super) fn disarm(mut self) {
        self.0 = None;
    }
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        if let (Some((token, target)), Ok(runtime)) = (self.0.take(), Handle::try_current()) {
            runtime.spawn(target.cancel(token));
        }
    }
}

/// Reads an answer to its end.
async fn run_out(answers: RowStream) -> Result<(), tokio_postgres::Error> {
    let mut answers = pin!(answers);
    while answers.try_next().await?.is_some() {}
    Ok(())
}

fn values(args: &[Value]) -> impl ExactSizeIterator<Item = &(dyn ToSql + Sync)> {
    args.iter().map(|arg| &*arg.value as &(dyn ToSql + Sync))
}

fn typed(args: &[Value]) -> impl Iterator<Item = (&(dyn ToSql + Sync), Type)> {
    values(args).zip(args.iter().map(|arg| arg.of.clone()))
}
