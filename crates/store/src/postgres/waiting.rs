//! Operations that wait to be written, and who takes them.
//!
//! One connection writes everything. Where many callers enqueue at once, a second one helps: while the server brings the jobs of one half
//! of them to the disk, it works on those of the other. It takes nothing else, so that what a worker does keeps its order.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::operations::Operation;

/// At most so many operations share a transaction.
const GROUP_MAX: usize = 512;

/// At most so often it is looked who else comes.
const GATHER_MAX: usize = 16;

/// From so many callers on that enqueue at once a second connection is worth it.
const CROWD: usize = 16;

/// Who takes operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taker {
    /// Takes whatever waits.
    First,
    /// Takes jobs to be enqueued, if many callers wait with some.
    Helper,
}

impl Taker {
    const fn other(self) -> Self {
        match self {
            Self::First => Self::Helper,
            Self::Helper => Self::First,
        }
    }
}

/// What waits.
#[derive(Default)]
pub(super) struct Waiting {
    here: Mutex<Here>,
    /// Something waits.
    came: Notify,
    /// Many callers wait who enqueue.
    crowded: Notify,
}

#[derive(Default)]
struct Here {
    operations: VecDeque<Box<dyn Operation>>,
    enqueues: VecDeque<Box<dyn Operation>>,
    /// Nobody brings anything any more.
    is_closed: bool,
    /// Who has nothing to do.
    idle: [bool; 2],
}

impl Here {
    fn len(&self) -> usize {
        self.operations.len() + self.enqueues.len()
    }
}

impl Waiting {
    fn here(&self) -> MutexGuard<'_, Here> {
        self.here.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an operation; gives it back if nobody takes it any more.
    pub(super) fn add(&self, mut operation: Box<dyn Operation>) -> Result<(), Box<dyn Operation>> {
        let mut here = self.here();
        if here.is_closed {
            return Err(operation);
        }
        match operation.enqueuing().is_some() {
            true => here.enqueues.push_back(operation),
            false => here.operations.push_back(operation),
        }
        let is_crowded = here.enqueues.len() >= CROWD;
        drop(here);
        self.came.notify_one();
        if is_crowded {
            self.crowded.notify_one();
        }
        Ok(())
    }

    /// Nothing more is added; what waits is still taken.
    pub(super) fn close(&self) {
        self.here().is_closed = true;
        self.came.notify_one();
        self.crowded.notify_one();
    }

    /// All that waits, for who cannot write it.
    pub(super) fn take_all(&self) -> Vec<Box<dyn Operation>> {
        let mut here = self.here();
        let Here { operations, enqueues, .. } = &mut *here;
        operations.drain(..).chain(enqueues.drain(..)).collect()
    }

    /// Waits until there is something to take, without taking it; says whether there will be.
    pub(super) async fn is_worth_it(&self, taker: Taker) -> bool {
        loop {
            {
                let mut here = self.here();
                let is_here = match taker {
                    Taker::First => here.len() > 0,
                    Taker::Helper => here.enqueues.len() >= CROWD,
                };
                here.idle[taker as usize] = true;
                if is_here || here.is_closed {
                    return is_here;
                }
            }
            match taker {
                Taker::First => self.came.notified().await,
                Taker::Helper => self.crowded.notified().await,
            }
        }
    }

    /// Somebody rests: nothing is left to it.
    pub(super) fn rest(&self, taker: Taker) {
        self.here().idle[taker as usize] = false;
    }

    /// Takes a group, once nobody else comes at this moment. It is empty if the other took all.
    pub(super) async fn take(&self, taker: Taker) -> Vec<Box<dyn Operation>> {
        self.gather().await;
        let mut here = self.here();
        let mut group = Vec::new();
        if taker == Taker::First {
            let count = here.operations.len().min(GROUP_MAX);
            group.extend(here.operations.drain(..count));
        }
        // Half of a crowd is left to the other, if it has nothing to do.
        let waiting = here.enqueues.len();
        let is_shared = here.idle[taker.other() as usize] && waiting >= 2 * CROWD;
        let wanted = if is_shared { waiting.div_ceil(2) } else { waiting };
        let room = GROUP_MAX - group.len();
        group.extend(here.enqueues.drain(..wanted.min(room)));
        here.idle[taker as usize] = group.is_empty();
        drop(here);
        if is_shared {
            self.came.notify_one();
            self.crowded.notify_one();
        }
        group
    }

    /// Lets those come along who were answered a moment ago and ask for more, as long as they do. Nobody is waited for who is not here.
    async fn gather(&self) {
        let mut here = self.here().len();
        for _ in 0..GATHER_MAX {
            tokio::task::yield_now().await;
            let now = self.here().len();
            if now == here || now >= GROUP_MAX {
                return;
            }
            here = now;
        }
    }
}
