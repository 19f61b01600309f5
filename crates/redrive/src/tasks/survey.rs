//! What would become of tasks if they were enqueued. Nothing is changed by asking.

use std::collections::HashSet;
use std::sync::Arc;

use redrive_core::jobs::NewJob;
use redrive_store::contract::FindTasks;
use tokio::sync::mpsc;

use super::feed::{BATCH, Fed, Feed};
use super::{BrokenLine, Tasks};
use crate::error::Error;

/// New tasks that are shown.
const EXAMPLES: usize = 3;

/// What would become of tasks.
#[derive(Clone, Debug, Default)]
pub struct Survey {
    /// How many would be accepted, and how many are known.
    pub fed: Fed,
    /// The first of those that would be accepted.
    pub examples: Vec<NewJob>,
}

impl Feed {
    /// What would become of all tasks. `broken` hears of each line that would be refused. A key that stands twice among a
    /// thousand tasks is counted once; further apart, twice.
    pub async fn survey(
        &self,
        tasks: Tasks,
        mut broken: impl FnMut(BrokenLine) + Send + 'static,
    ) -> Result<Survey, Error> {
        let (sender, mut batches) = mpsc::channel::<Vec<NewJob>>(4);
        let (into, naming) = (Arc::clone(&self.into), self.naming.clone());
        let reading = tokio::task::spawn_blocking(move || {
            let (mut batch, mut refused) = (Vec::new(), 0);
            let read = tasks.read(&*into, &naming, |task| {
                match task {
                    Ok(task) => batch.push(task.job),
                    Err(line) => {
                        refused += 1;
                        broken(line);
                    }
                }
                batch.len() < BATCH || sender.blocking_send(std::mem::take(&mut batch)).is_ok()
            });
            let _ = sender.blocking_send(batch);
            read.map(|end| (refused, end))
        });
        let mut survey = Survey::default();
        while let Some(batch) = batches.recv().await {
            self.look_up(batch, &mut survey).await?;
            if survey.fed.limited {
                break;
            }
        }
        drop(batches);
        let read = reading.await.map_err(|panic| Error::Internal(format!("reading tasks ended: {panic}")))?;
        let (refused, end) = read?;
        (survey.fed.broken, survey.fed.unfinished) = (refused, end.unfinished);
        survey.fed.complete = true;
        Ok(survey)
    }

    async fn look_up(&self, batch: Vec<NewJob>, survey: &mut Survey) -> Result<(), Error> {
        let keys = batch.iter().map(|job| job.key.clone().unwrap_or_default()).collect();
        let params = FindTasks { pipeline: self.pipeline.clone(), round: self.naming.round.clone(), keys };
        let (found, begun) = (self.into.known_tasks(params).await?, self.into.now());
        let mut met = HashSet::new();
        for (job, known) in batch.into_iter().zip(found) {
            let fed = &mut survey.fed;
            match known {
                Some(known) => fed.count_known(known.state, known.ended_at, begun),
                None if !met.insert(job.key.clone()) => fed.known_open += 1,
                None if self.limit.is_some_and(|limit| fed.accepted >= limit) => {
                    fed.limited = true;
                    return Ok(());
                }
                None => {
                    fed.accepted += 1;
                    if survey.examples.len() < EXAMPLES {
                        survey.examples.push(job);
                    }
                }
            }
        }
        Ok(())
    }
}
