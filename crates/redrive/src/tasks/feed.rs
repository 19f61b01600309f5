//! Feeding a task file into a pipeline: in batches, past broken lines, with room to wait for.

use std::time::Duration;

use redrive_core::ids::PipelineName;
use redrive_core::jobs::NewJob;
use redrive_core::state::JobState;
use redrive_core::time::Timestamp;
use redrive_store::StoreError;
use redrive_store::contract::EnqueuedJob;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{BrokenLine, Tasks, TasksError};
use crate::engine::Redrive;
use crate::error::Error;

/// Jobs that are enqueued together.
const BATCH: usize = 1_000;

/// What became of a file.
#[derive(Clone, Copy, Debug, Default)]
pub struct Fed {
    /// Jobs that are new.
    pub accepted: u64,
    /// Jobs that were known, by their end if they came to one before this run.
    pub known_done: u64,
    /// See [`Fed::known_done`].
    pub known_dead: u64,
    /// See [`Fed::known_done`].
    pub known_discarded: u64,
    /// Jobs that were known and open when this run began, or whose key stands twice in the file.
    pub known_open: u64,
    /// Lines that were refused.
    pub broken: u64,
    /// Whether the whole file was read.
    pub complete: bool,
}

impl Fed {
    /// Jobs that were known.
    pub const fn known(&self) -> u64 {
        self.known_done + self.known_dead + self.known_discarded + self.known_open
    }

    fn count(&mut self, enqueued: &[EnqueuedJob], begun: Timestamp) {
        for job in enqueued {
            let before = |ended_at: &Option<Timestamp>| ended_at.is_some_and(|ended_at| ended_at < begun);
            *match job {
                EnqueuedJob::Accepted(_) => &mut self.accepted,
                EnqueuedJob::Known { state, ended_at, .. } if before(ended_at) => match state {
                    JobState::Done => &mut self.known_done,
                    JobState::Dead => &mut self.known_dead,
                    _ => &mut self.known_discarded,
                },
                EnqueuedJob::Known { .. } => &mut self.known_open,
            } += 1;
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

/// A file on its way into a pipeline.
pub struct Feed {
    /// Where to.
    pub redrive: Redrive,
    /// The pipeline.
    pub pipeline: PipelineName,
    /// Queued jobs above which nothing more is accepted.
    pub queued_max: Option<u64>,
    /// What to do then.
    pub when_full: WhenFull,
    /// The target that all jobs have, if not each its own.
    pub target: Option<String>,
    /// Ends it when it is cancelled; what is left stays in the file.
    pub stop: CancellationToken,
}

impl Feed {
    /// Enqueues the whole file. `broken` hears of each line that is refused.
    pub async fn run(&self, tasks: Tasks, broken: impl FnMut(BrokenLine) + Send + 'static) -> Result<Fed, Error> {
        let (sender, mut batches) = mpsc::channel::<Vec<NewJob>>(4);
        let (redrive, target) = (self.redrive.clone(), self.target.clone());
        let reading = tokio::task::spawn_blocking(move || read(&tasks, &redrive, target.as_deref(), &sender, broken));
        let begun = self.redrive.now();
        let mut fed = Fed::default();
        while let Some(batch) = batches.recv().await {
            if self.stop.is_cancelled() {
                break;
            }
            self.enqueue(batch, begun, &mut fed).await?;
        }
        drop(batches);
        let read = reading.await.map_err(|panic| Error::Internal(format!("reading tasks ended: {panic}")))?;
        fed.broken = read?;
        fed.complete = !self.stop.is_cancelled();
        Ok(fed)
    }

    async fn enqueue(&self, mut batch: Vec<NewJob>, begun: Timestamp, fed: &mut Fed) -> Result<(), Error> {
        let mut size = batch.len();
        while !batch.is_empty() && !self.stop.is_cancelled() {
            let part: Vec<NewJob> = batch.iter().take(size).cloned().collect();
            match self.redrive.enqueue_jobs(&self.pipeline, self.queued_max, part).await {
                Ok(enqueued) => {
                    fed.count(&enqueued, begun);
                    batch.drain(..enqueued.len());
                    size = batch.len();
                }
                Err(Error::Store(full @ StoreError::QueueFull { queued, max, .. })) => {
                    let room = usize::try_from(max.saturating_sub(queued)).unwrap_or(usize::MAX);
                    if room > 0 && room < size {
                        size = room;
                    } else if self.when_full == WhenFull::Refuse || max == 0 {
                        return Err(TasksError::Full { accepted: fed.accepted, source: full }.into());
                    } else {
                        tokio::time::sleep(Duration::from_millis(50)).await;
                    }
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// Reads the file into batches; says how many lines were refused.
fn read(
    tasks: &Tasks,
    redrive: &Redrive,
    target: Option<&str>,
    batches: &mpsc::Sender<Vec<NewJob>>,
    mut refused: impl FnMut(BrokenLine),
) -> Result<u64, TasksError> {
    let mut broken = 0;
    let mut batch = Vec::new();
    tasks.read(redrive, |task| {
        match task {
            Ok(job) => batch.push(NewJob { target: target.map(str::to_owned).or(job.target), ..job }),
            Err(line) => {
                broken += 1;
                refused(line);
            }
        }
        batch.len() < BATCH || batches.blocking_send(std::mem::take(&mut batch)).is_ok()
    })?;
    if !batch.is_empty() {
        let _ = batches.blocking_send(batch);
    }
    Ok(broken)
}
