//! Taking up pipelines that changed: a worker with the new ones begins, and the one before begins nothing more and lets its jobs
//! end by the rules they began with. Both share what may run at once.

use std::pin::Pin;
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

/// A worker that takes its turn, and makes way for one with newer pipelines.
pub trait Turn: Send + Sync + 'static {
    /// Which one it is.
    fn id(&self) -> WorkerId;
    /// Has it begin nothing more, and let its jobs end.
    fn retire(&self);
    /// Tells those who listen.
    fn tell(&self, what: Happening);
}

/// A worker and its work, until it has ended.
pub type Begun<T> = (Arc<T>, Pin<Box<dyn Future<Output = Result<(), Error>> + Send>>);

pub(super) async fn run(
    first: Worker,
    source: Box<dyn Source>,
    until: Until,
    stop: CancellationToken,
) -> Result<(), Error> {
    let Worker { context, pipelines, task, max_wait, waits_forever, .. } = first;
    let end = stop.clone();
    let begin = move |context: Arc<Context>, pipelines| -> Begun<Context> {
        let worker = Worker { context: Arc::clone(&context), pipelines, task, max_wait, waits_forever, source: None };
        (context, Box::pin(worker.run_as_it_is(until.clone(), end.clone())))
    };
    let next = |former: &Context, pipelines| {
        let pipelines = acquainted(pipelines);
        let pipelines = match waits_forever {
            true => pipelines.into_iter().map(Pipeline::waiting_forever).collect(),
            false => pipelines,
        };
        let id = WorkerId::new(former.redrive.now(), former.redrive.chance.bits());
        begin(Arc::new(former.successor(id, &pipelines)), pipelines)
    };
    take_turns(begin(context, pipelines), next, source, stop).await
}

/// Has one worker work after the other, each with the pipelines as they were when it began.
pub async fn take_turns<T: Turn>(
    first: Begun<T>,
    next: impl Fn(&T, Vec<Pipeline>) -> Begun<T>,
    source: Box<dyn Source>,
    stop: CancellationToken,
) -> Result<(), Error> {
    let (_watching, mut changes) = watch(source);
    let mut turns = Turns { present: Arc::clone(&first.0), workers: JoinSet::new(), failure: None };
    turns.begin(first);
    loop {
        tokio::select! {
            over = turns.one_ended() => {
                if over {
                    break;
                }
            }
            Some(changed) = changes.recv(), if !stop.is_cancelled() => match changed {
                Ok(pipelines) => {
                    let former = Arc::clone(&turns.present);
                    turns.begin(next(&former, pipelines));
                    former.tell(Happening::PipelinesChanged);
                    former.retire();
                }
                Err(why) => turns.present.tell(Happening::PipelinesUnusable { why }),
            }
        }
    }
    turns.finish().await
}

/// The worker that is present, and those that made way and still have jobs.
struct Turns<T> {
    present: Arc<T>,
    workers: JoinSet<(WorkerId, Result<(), Error>)>,
    failure: Option<Error>,
}

impl<T: Turn> Turns<T> {
    fn begin(&mut self, (worker, work): Begun<T>) {
        let id = worker.id();
        self.present = worker;
        self.workers.spawn(async move { (id, work.await) });
    }

    /// Waits until a worker has ended; says whether that was the present one, or one that failed.
    async fn one_ended(&mut self) -> bool {
        match self.workers.join_next().await {
            Some(Ok((id, ended))) => {
                let is_present = id == self.present.id();
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

    /// Lets all that still have jobs come to their end.
    async fn finish(mut self) -> Result<(), Error> {
        self.present.retire();
        while !self.workers.is_empty() {
            self.one_ended().await;
        }
        self.failure.map_or(Ok(()), Err)
    }
}

impl Turn for Context {
    fn id(&self) -> WorkerId {
        self.id
    }

    fn retire(&self) {
        self.retired.cancel();
    }

    fn tell(&self, what: Happening) {
        Self::tell(self, what);
    }
}

/// Looks again and again, as long as the set is there.
fn watch(source: Box<dyn Source>) -> (JoinSet<()>, Receiver<Reread>) {
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
