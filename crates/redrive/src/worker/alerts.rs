//! Alerts, as workers see to them: of those with the same pipelines one judges, every worker tells the sinks of its own file, and one that ends does both once
//! more. Nobody who runs jobs waits for any of it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::context::Context;
use crate::alerts::Ending;
use crate::alerts::sinks::Sink;
use crate::error::Error;

/// How often it is looked for something to tell.
const EVERY: Duration = Duration::from_secs(5);

/// The longest that a worker takes for it before it ends.
const SHARE: Duration = Duration::from_secs(10);

/// Tells sinks what is to be told, again and again, while the worker works.
pub(super) struct Telling {
    ending: Ending,
    task: JoinHandle<()>,
}

impl Telling {
    pub(super) fn start(context: &Arc<Context>) -> Self {
        let ending = Ending::default();
        let task = tokio::spawn(tell(Arc::clone(context), ending.clone()));
        Self { ending, task }
    }

    /// Ends it without telling anybody more: what sinks were not told waits for the next worker.
    pub(super) fn stop(self) {
        self.ending.late.cancel();
        self.task.abort();
    }

    /// Judges and tells once more before a worker ends, so that a short run does its share. A notice that is under way is not
    /// dropped: whoever came next could not know whether it arrived. A sink that does not answer in time failed, and is told again
    /// by whoever comes next.
    pub(super) async fn share(self, context: &Context) {
        let Self { ending, task } = self;
        ending.enough.cancel();
        let late = ending.late.clone();
        let telling = async {
            if let Err(panic) = task.await {
                tracing::warn!(%panic, "telling sinks of alerts ended");
            }
            if let Err(error) = both(context, &ending.late).await {
                tracing::warn!(%error, "alerts could not be judged, or sinks not told of them");
            }
        };
        tokio::pin!(telling);
        tokio::select! {
            biased;
            () = &mut telling => return,
            () = tokio::time::sleep(SHARE) => {}
            () = context.hurry.cancelled() => {}
        }
        tracing::info!("sinks take long: what they were not told waits for the next worker");
        late.cancel();
        telling.await;
    }
}

/// Each sink is told by itself: one that takes its time keeps no other from being told what comes meanwhile.
async fn tell(context: Arc<Context>, ending: Ending) {
    let mut busy = BTreeMap::<String, JoinHandle<()>>::new();
    while !ending.enough.is_cancelled() {
        busy.retain(|_, telling| !telling.is_finished());
        if let Some(watching) = context.redrive.alerts.watching() {
            match context.redrive.sinks_to_tell(&watching).await {
                Ok(sinks) => {
                    for sink in sinks {
                        let tell = |sink| tokio::spawn(tell_one(Arc::clone(&context), sink, ending.clone()));
                        busy.entry(sink.name().to_owned()).or_insert_with(|| tell(sink));
                    }
                }
                Err(error) => tracing::warn!(%error, "sinks could not be told of alerts"),
            }
        }
        tokio::select! {
            () = context.redrive.clock.sleep(EVERY) => {}
            () = ending.enough.cancelled() => {}
        }
    }
    for (sink, telling) in busy {
        if let Err(panic) = telling.await {
            tracing::warn!(%panic, sink, "telling a sink of alerts ended");
        }
    }
}

async fn tell_one(context: Arc<Context>, sink: Sink, ending: Ending) {
    if let Err(error) = context.redrive.tell_sink(&sink, &ending).await {
        tracing::warn!(%error, sink = sink.name(), "a sink could not be told of alerts");
    }
}

/// Judges and tells, unless it is late: then what is to be told is only posted.
async fn both(context: &Context, late: &CancellationToken) -> Result<(), Error> {
    let Some(watching) = context.redrive.alerts.watching() else { return Ok(()) };
    context.redrive.judge_alerts(&watching).await?;
    let ending = Ending { enough: late.clone(), late: late.clone() };
    context.redrive.tell_sinks_until(&watching, &ending).await
}
