//! Feeding tasks into a pipeline: in batches, past broken lines, with room to wait for, and as they come.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use redrive_core::ids::{JobId, PipelineName};
use redrive_core::jobs::{NewJob, Origin};
use redrive_core::policy::Bounds;
use redrive_core::state::JobState;
use redrive_core::time::Timestamp;
use redrive_store::StoreError;
use redrive_store::contract::EnqueuedJob;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::by_line::count_changed;
use super::intake::{Intake, Moves};
use super::source::Attention;
use super::{BrokenLine, Naming, ReadEnd, ReadTask, Tasks, TasksError};
use crate::error::Error;

/// Jobs that are enqueued together, and how large they may be together.
pub(super) const BATCH: usize = 1_000;
const BATCH_BYTES: usize = 8 * 1024 * 1024;

/// When to look for room although nobody said that jobs moved: hints may get lost.
const LOOK_ANYWAY: Duration = Duration::from_secs(5);

/// The shortest time between two looks for room.
const REST: Duration = Duration::from_millis(50);

/// Dead letters of earlier runs that are noted to be replayed.
const DEAD_MAX: usize = 100_000;

/// What became of tasks.
#[derive(Clone, Debug, Default)]
pub struct Fed {
    /// Tasks that are new.
    pub accepted: u64,
    /// Tasks that were known, by their end if they came to one before this run.
    pub known_done: u64,
    /// See [`Fed::known_done`].
    pub known_dead: u64,
    /// See [`Fed::known_done`].
    pub known_discarded: u64,
    /// Tasks that were known and open when this run began, or whose key stands twice in the file.
    pub known_open: u64,
    /// Lines that were refused.
    pub broken: u64,
    /// Whether all was read.
    pub complete: bool,
    /// Why the last line of a file was left out, if somebody is writing it: the next reading takes it.
    pub unfinished: Option<String>,
    /// Whether as many new tasks were taken as were allowed; more may be left.
    pub limited: bool,
    /// Tasks of a stream that had come, and were not taken because as many were as were allowed: they are nowhere else.
    pub not_taken: Option<u64>,
    /// The dead letters among the known tasks, if they were to be noted.
    pub dead: Vec<JobId>,
}

impl Fed {
    /// Tasks that were known.
    pub const fn known(&self) -> u64 {
        self.known_done + self.known_dead + self.known_discarded + self.known_open
    }

    /// Counts a task that was known.
    pub(super) const fn count_known(&mut self, state: JobState, ended_at: Option<Timestamp>, begun: Timestamp) {
        let before = match ended_at {
            Some(ended_at) => ended_at.as_millis() < begun.as_millis(),
            None => false,
        };
        *match state {
            JobState::Done if before => &mut self.known_done,
            JobState::Dead if before => &mut self.known_dead,
            JobState::Discarded if before => &mut self.known_discarded,
            _ => &mut self.known_open,
        } += 1;
    }

    fn count(&mut self, enqueued: &[EnqueuedJob], begun: Timestamp, keep_dead: bool) {
        for job in enqueued {
            match *job {
                EnqueuedJob::Accepted(_) => self.accepted += 1,
                EnqueuedJob::Known { id, state, ended_at } => {
                    let dead = self.known_dead;
                    self.count_known(state, ended_at, begun);
                    if keep_dead && self.known_dead > dead && self.dead.len() < DEAD_MAX {
                        self.dead.push(id);
                    }
                }
            }
        }
    }
}

/// What to do when the queue is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenFull {
    /// Wait: this process works on it.
    Wait,
    /// Say so.
    Refuse,
}

/// Tasks on their way into a pipeline.
pub struct Feed {
    /// Where to.
    pub into: Arc<dyn Intake>,
    /// The pipeline.
    pub pipeline: PipelineName,
    /// Limits at which nothing more is accepted.
    pub bounds: Bounds,
    /// What to do then.
    pub when_full: WhenFull,
    /// The target that all jobs have, if not each its own.
    pub target: Option<String>,
    /// The trace that all tasks are part of, as the W3C's Trace Context writes it, if they are.
    pub traceparent: Option<String>,
    /// By what tasks are known.
    pub naming: Naming,
    /// At most so many new tasks are taken.
    pub limit: Option<u64>,
    /// Whether dead letters among the known tasks are noted.
    pub keep_dead: bool,
    /// Whether tasks of a stream may be new that may have been known before tasks were known by their content.
    pub may_be_changed: bool,
    /// Set while there is no room in the queue.
    pub is_full: Arc<AtomicBool>,
    /// Ends it when it is cancelled. What is left stays in the file; of a stream, what had come is still taken.
    pub stop: CancellationToken,
}

impl Feed {
    /// A feed of all that is read, by content.
    pub fn new(into: Arc<dyn Intake>, pipeline: PipelineName, stop: CancellationToken) -> Self {
        Self {
            into,
            pipeline,
            bounds: Bounds::default(),
            when_full: WhenFull::Refuse,
            target: None,
            traceparent: None,
            naming: Naming::default(),
            limit: None,
            keep_dead: false,
            may_be_changed: false,
            is_full: Arc::default(),
            stop,
        }
    }

    /// Enqueues all tasks. `broken` hears of each line that is refused.
    pub async fn run(&self, tasks: Tasks, broken: impl FnMut(BrokenLine) + Send + 'static) -> Result<Fed, Error> {
        let (sender, mut batches) = mpsc::channel::<Vec<NewJob>>(4);
        let (is_stream, place) = (tasks.is_stream(), tasks.name().to_owned());
        // However this ends, nobody goes on reading.
        let leave = self.stop.child_token();
        let _left = leave.clone().drop_guard();
        let reader = Reader {
            into: Arc::clone(&self.into),
            target: self.target.clone(),
            origin: self.traceparent.clone().map(|trace| Origin::here("push").told(None, Some(trace))),
            naming: self.naming.clone(),
            stop: leave.clone(),
            batcher: Arc::new(Batcher { sender, batch: Mutex::default() }),
        };
        let reading = tokio::task::spawn_blocking(move || reader.read(&tasks, broken));
        let begun = self.into.now();
        let mut fed = Fed::default();
        let mut is_first = is_stream && !self.may_be_changed;
        while let Some(batch) = batches.recv().await {
            if self.stop.is_cancelled() && !is_stream {
                break;
            }
            if std::mem::take(&mut is_first) {
                self.refuse_changed(&batch, &place).await?;
            }
            let left = self.enqueue(batch, is_stream, begun, &mut fed).await?;
            if fed.limited {
                leave.cancel();
                fed.not_taken = is_stream.then_some(left);
                break;
            }
        }
        while let Some(not_taken) = &mut fed.not_taken {
            // What else had come of a stream is lost to whoever reads it next: it is counted.
            let Some(batch) = batches.recv().await else { break };
            *not_taken += batch.len() as u64;
        }
        drop(batches);
        let read = reading.await.map_err(|panic| Error::Internal(format!("reading tasks ended: {panic}")))?;
        let (refused, end) = read?;
        fed.broken = refused;
        fed.complete = fed.limited || if is_stream { !end.is_cut } else { !self.stop.is_cancelled() };
        fed.unfinished = end.unfinished;
        Ok(fed)
    }

    /// Refuses a stream whose first tasks are not known, where they may have been known by their lines.
    async fn refuse_changed(&self, batch: &[NewJob], place: &str) -> Result<(), Error> {
        if self.naming.round.is_some() {
            return Ok(());
        }
        match count_changed(&*self.into, &self.pipeline, batch).await? {
            0 => Ok(()),
            new => Err(TasksError::Changed { place: place.to_owned(), new }.into()),
        }
    }

    /// Enqueues a batch, as far as is allowed; says how many of it are left.
    async fn enqueue(
        &self,
        mut batch: Vec<NewJob>,
        is_stream: bool,
        begun: Timestamp,
        fed: &mut Fed,
    ) -> Result<u64, Error> {
        let (mut size, mut moves) = (batch.len(), None);
        while !batch.is_empty() && !fed.limited && (is_stream || !self.stop.is_cancelled()) {
            let left = self.limit.map_or(usize::MAX, |limit| to_size(limit.saturating_sub(fed.accepted)));
            // What had come of a stream before it was left is nowhere else: nobody makes room for it any more.
            let is_left = is_stream && self.stop.is_cancelled();
            let bounds = if is_left { Bounds::default() } else { self.bounds };
            let part: Vec<NewJob> = batch.iter().take(size.min(left)).cloned().collect();
            match self.into.enqueue(&self.pipeline, bounds, part).await {
                Ok(enqueued) => {
                    self.is_full.store(false, Ordering::Relaxed);
                    fed.count(&enqueued, begun, self.keep_dead);
                    batch.drain(..enqueued.len());
                    size = batch.len();
                    fed.limited = self.limit.is_some_and(|limit| fed.accepted >= limit);
                }
                Err(Error::Store(full @ StoreError::QueueFull { queued, max, .. })) => {
                    let room = to_size(max.saturating_sub(queued));
                    if room > 0 && room < size.min(left) {
                        size = room;
                    } else if self.when_full == WhenFull::Refuse || max == 0 {
                        return Err(TasksError::Full { accepted: fed.accepted, source: full }.into());
                    } else {
                        self.is_full.store(true, Ordering::Relaxed);
                        self.wait_for_room(&mut **moves.get_or_insert_with(|| self.into.moves())).await?;
                    }
                }
                // Only a person makes room.
                Err(Error::Store(full @ StoreError::LettersFull { .. })) => {
                    return Err(TasksError::Full { accepted: fed.accepted, source: full }.into());
                }
                Err(error) => return Err(error),
            }
        }
        Ok(batch.len() as u64)
    }

    /// Waits until jobs moved, or may have.
    async fn wait_for_room(&self, moves: &mut dyn Moves) -> Result<(), Error> {
        tokio::select! {
            () = self.stop.cancelled() => return Ok(()),
            moved = tokio::time::timeout(LOOK_ANYWAY, moves.next()) => moved.unwrap_or(Ok(()))?,
        }
        // Room for one job after another is not worth a transaction each.
        tokio::time::sleep(REST).await;
        Ok(())
    }
}

fn to_size(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

/// Reads tasks into batches.
struct Reader {
    into: Arc<dyn Intake>,
    target: Option<String>,
    origin: Option<Origin>,
    naming: Naming,
    stop: CancellationToken,
    batcher: Arc<Batcher>,
}

impl Reader {
    /// Reads all; says how many lines were refused, and how it ended.
    fn read(self, tasks: &Tasks, mut refused: impl FnMut(BrokenLine)) -> Result<(u64, ReadEnd), TasksError> {
        let batcher = Arc::clone(&self.batcher);
        // Nothing that was read waits for what has not come.
        let before_waiting = Arc::new(move || {
            batcher.flush();
        });
        let attention = Attention { stop: self.stop.clone(), before_waiting };
        let mut broken = 0;
        let end = tasks.read_attentively(&*self.into, &self.naming, attention, |task| match task {
            Ok(ReadTask { job, bytes }) => {
                let (target, origin) = (self.target.clone().or(job.target), self.origin.clone());
                self.batcher.push(NewJob { target, origin, ..job }, bytes)
            }
            Err(line) => {
                broken += 1;
                refused(line);
                !self.batcher.sender.is_closed()
            }
        })?;
        self.batcher.flush();
        Ok((broken, end))
    }
}

/// Puts tasks together that are enqueued together.
struct Batcher {
    sender: mpsc::Sender<Vec<NewJob>>,
    /// The tasks, and their size in bytes.
    batch: Mutex<(Vec<NewJob>, usize)>,
}

impl Batcher {
    /// Adds a task; says whether more are wanted.
    fn push(&self, job: NewJob, bytes: usize) -> bool {
        let mut batch = self.batch.lock().unwrap_or_else(PoisonError::into_inner);
        batch.0.push(job);
        batch.1 += bytes;
        let is_full = batch.0.len() >= BATCH || batch.1 >= BATCH_BYTES;
        drop(batch);
        !is_full || self.flush()
    }

    /// Hands over what there is; says whether more is wanted.
    fn flush(&self) -> bool {
        let (batch, _) = std::mem::take(&mut *self.batch.lock().unwrap_or_else(PoisonError::into_inner));
        match batch.is_empty() {
            true => !self.sender.is_closed(),
            false => self.sender.blocking_send(batch).is_ok(),
        }
    }
}
