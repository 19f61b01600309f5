//! Taking up pipelines that changed: a worker with the new ones begins, and the one before begins nothing more and lets its jobs
//! end by the rules they began with. Both share what may run at once.

use std::sync::Arc;
use std::time::Duration;

use redrive_core::ids::WorkerId;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::context::Context;
use super::{Until, Worker};
use crate::error::Error;
use crate::events::Happening;
use crate::pipeline::{Pipeline, acquainted};

/// How often it looks whether pipelines have changed.
const EVERY: Duration = Duration::from_millis(500);

/// What came of reading the pipelines anew.
pub type Reread = Result<Vec<Pipeline>, String>;

/// Where pipelines come from.
pub trait Source: Send {
    /// The pipelines as they are now, if they have changed since this was last asked; why they cannot be taken up, once.
    fn changed(&mut self) -> Option<Reread>;
}

/// The worker that is present, and those that made way and still have jobs.
struct Generations {
    present: Arc<Context>,
    workers: JoinSet<(WorkerId, Result<(), Error>)>,
    failure: Option<Error>,
}

pub(super) async fn run(
    first: Worker,
    source: Box<dyn Source>,
    until: Until,
    stop: CancellationToken,
) -> Result<(), Error> {
    let Worker { context, pipelines, task, max_wait, .. } = first;
    let begin = |generations: &mut Generations, pipelines: Vec<Pipeline>| {
        let context = Arc::clone(&generations.present);
        let id = context.id;
        let worker = Worker { context, pipelines, task, max_wait, source: None };
        let work = worker.run_as_it_is(until.clone(), stop.clone());
        generations.workers.spawn(async move { (id, work.await) });
    };
    let (_watching, mut changes) = watch(source);
    let mut generations = Generations { present: context, workers: JoinSet::new(), failure: None };
    begin(&mut generations, pipelines);
    loop {
        tokio::select! {
            over = generations.one_ended() => {
                if over {
                    break;
                }
            }
            Some(changed) = changes.recv(), if !stop.is_cancelled() => match changed {
                Ok(pipelines) => {
                    let pipelines = acquainted(pipelines);
                    generations.make_way(&pipelines);
                    begin(&mut generations, pipelines);
                }
                Err(why) => generations.present.tell(Happening::PipelinesUnusable { why }),
            }
        }
    }
    generations.finish().await
}

impl Generations {
    /// Waits until a worker has ended; says whether that was the present one, or one that failed.
    async fn one_ended(&mut self) -> bool {
        match self.workers.join_next().await {
            Some(Ok((id, ended))) => {
                let is_present = id == self.present.id;
                // What one that made way could not do, or waited for, is for the present one to do.
                let left = |error: &Error| matches!(error, Error::Held { .. } | Error::WaitedInVain(_));
                self.note(ended.or_else(|error| if !is_present && left(&error) { Ok(()) } else { Err(error) }));
                is_present || self.failure.is_some()
            }
            Some(Err(panic)) => {
                self.note(Err(Error::Internal(format!("a worker ended: {panic}"))));
                true
            }
            None => true,
        }
    }

    fn note(&mut self, ended: Result<(), Error>) {
        if let Err(error) = ended {
            self.failure.get_or_insert(error);
        }
    }

    /// Has another worker take the place of the present one.
    fn make_way(&mut self, pipelines: &[Pipeline]) {
        let redrive = &self.present.redrive;
        let next = self.present.successor(WorkerId::new(redrive.now(), redrive.chance.bits()), pipelines);
        let former = std::mem::replace(&mut self.present, Arc::new(next));
        former.tell(Happening::PipelinesChanged);
        former.retired.cancel();
    }

    /// Lets all that still have jobs come to their end.
    async fn finish(mut self) -> Result<(), Error> {
        self.present.retired.cancel();
        while !self.workers.is_empty() {
            self.one_ended().await;
        }
        self.failure.map_or(Ok(()), Err)
    }
}

/// Looks again and again, as long as the set is there.
pub fn watch(source: Box<dyn Source>) -> (JoinSet<()>, Receiver<Reread>) {
    let (sender, changes) = channel(1);
    let mut watching = JoinSet::new();
    watching.spawn(look(source, sender));
    (watching, changes)
}

async fn look(mut source: Box<dyn Source>, changes: Sender<Reread>) {
    loop {
        tokio::time::sleep(EVERY).await;
        // Files are read, and commands looked for.
        let looked = tokio::task::spawn_blocking(move || {
            let changed = source.changed();
            (source, changed)
        });
        let (same, changed) = match looked.await {
            Ok(looked) => looked,
            Err(panic) => {
                // Nobody is left to tell if this cannot be sent.
                let _ = changes.send(Err(format!("reading it ended: {panic}"))).await;
                return;
            }
        };
        source = same;
        if let Some(changed) = changed
            && changes.send(changed).await.is_err()
        {
            return;
        }
    }
}
