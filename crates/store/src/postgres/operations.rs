//! Operations that wait for the writer, each with who waits for its answer. Those that accept jobs are served together.

use tokio::sync::oneshot;

use super::batch::Batch;
use super::enqueuing::{self, Enqueue};
use super::fault::Fault;
use super::{Run, Running};
use crate::contract::{EnqueuedJob, Topic};
use crate::erased::Erased;
use crate::error::{Result, StoreError};

/// How an operation shares the store with those of other processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Share {
    /// It locks what it works on.
    Beside,
    /// It has the store to itself.
    Alone,
    /// So has what copies the store, or fills it: nobody else may write then.
    Copying,
}

impl Share {
    /// How operations of one transaction share the store.
    pub(super) fn of(group: &Group) -> Self {
        let (mut share, mut all_copy) = (Self::Beside, true);
        for operation in group {
            match operation.share() {
                Self::Beside => all_copy = false,
                Self::Alone => (share, all_copy) = (Self::Alone, false),
                Self::Copying => share = Self::Alone,
            }
        }
        if all_copy { Self::Copying } else { share }
    }
}

/// An operation that waits for the writer.
pub(super) trait Operation: Send {
    fn apply<'a>(&'a mut self, batch: &'a mut Batch) -> Running<'a, ()>;
    fn share(&self) -> Share;
    /// If it enqueues: callers that wait at the same time are served together, before the others.
    fn enqueuing(&mut self) -> Option<&mut Enqueuing> {
        None
    }
    /// Whether nobody waits for the answer any more.
    fn is_abandoned(&self) -> bool;
    fn answer(self: Box<Self>, committed: Result<()>);
}

/// The body of a verb that writes.
pub(super) type Write = Box<dyn for<'a> Run<'a, &'a mut Batch>>;

/// A call of any verb.
pub(super) struct Call {
    /// Topic that listeners hear of if the call changes anything.
    pub(super) about: Option<Topic>,
    pub(super) share: Share,
    pub(super) run: Write,
    pub(super) value: Option<Erased>,
    pub(super) reply: oneshot::Sender<Result<Erased>>,
}

impl Operation for Call {
    fn apply<'a>(&'a mut self, batch: &'a mut Batch) -> Running<'a, ()> {
        Box::pin(async move {
            let before = batch.conn().changed();
            self.value = Some(self.run.run(batch).await?);
            if let Some(topic) = self.about.filter(|_| batch.conn().changed() != before) {
                batch.touch(topic);
            }
            Ok(())
        })
    }

    fn share(&self) -> Share {
        self.share
    }

    fn is_abandoned(&self) -> bool {
        self.reply.is_closed()
    }

    fn answer(self: Box<Self>, committed: Result<()>) {
        let Self { value, reply, .. } = *self;
        let answer = committed.and_then(|()| value.ok_or(StoreError::Closed));
        // The caller may have gone away; the effect is durable all the same.
        let _ = reply.send(answer);
    }
}

/// Jobs that are to be accepted.
pub(super) struct Enqueuing {
    pub(super) asked: Enqueue,
    pub(super) accepted: Vec<EnqueuedJob>,
    pub(super) reply: oneshot::Sender<Result<Vec<EnqueuedJob>>>,
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

    fn is_abandoned(&self) -> bool {
        self.reply.is_closed()
    }

    fn answer(self: Box<Self>, committed: Result<()>) {
        let Self { accepted, reply, .. } = *self;
        let _ = reply.send(committed.map(|()| accepted));
    }
}

/// Accepts the jobs of all that enqueue.
pub(super) async fn accept_together(batch: &mut Batch, group: &mut Group) -> Result<(), Fault> {
    let mut callers: Vec<&mut Enqueuing> = group.iter_mut().filter_map(|operation| operation.enqueuing()).collect();
    let asked: Vec<&Enqueue> = callers.iter().map(|caller| &caller.asked).collect();
    let answers = enqueuing::enqueue_all(batch, &asked).await?;
    for (caller, answer) in callers.iter_mut().zip(answers) {
        caller.accepted = answer;
    }
    Ok(())
}

/// Operations that share a transaction.
pub(super) type Group = [Box<dyn Operation>];

/// Answers all operations of a group: those that were refused with why, or all with what kept them from being written.
pub(super) fn answer(group: Vec<Box<dyn Operation>>, written: Result<Vec<Option<StoreError>>>) {
    match written {
        Ok(refusals) => {
            for (operation, refused) in group.into_iter().zip(refusals) {
                operation.answer(refused.map_or(Ok(()), Err));
            }
        }
        Err(error) => group.into_iter().for_each(|operation| operation.answer(Err(error.clone()))),
    }
}
