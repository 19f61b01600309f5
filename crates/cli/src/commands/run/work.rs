//! Feeding and working at the same time, with progress shown.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use redrive::config::units::Wait;
use redrive::tasks::{Fed, Feed, Tasks};
use redrive::worker::{Running, Until, WorkDone};
use redrive::{CancellationToken, Pipeline, Waited};
use redrive_client::Desk;
use redrive_client::worker::AnyWorker;
use redrive_core::breakers::{BreakerState, BreakerView};
use redrive_core::ids::PipelineName;
use redrive_core::retrying::RetryingView;

use super::super::{breaker, feed, signals, waiting};
use crate::output::progress::Progress;

/// How often the progress is read if nothing happens in this process.
const SHOW_ANYWAY: Duration = Duration::from_secs(1);

/// How long reading it may take before it is looked what keeps the store from answering.
const READ_MAX: Duration = Duration::from_secs(2);

/// How often it is read what jobs failed with that wait for another attempt, while a target is on hold.
const RETRYING_EVERY: Duration = Duration::from_secs(5);

/// Last failures of jobs that wait for another attempt.
#[derive(Default)]
struct Waits {
    known: Option<RetryingView>,
    read_at: Option<Instant>,
}

impl Waits {
    /// Reads it anew if a target is on hold and it was not read lately.
    async fn read(&mut self, redrive: &Desk, name: &PipelineName, held: &[BreakerView]) -> Result<(), redrive::Error> {
        if held.iter().all(|view| view.breaker.state == BreakerState::Closed) {
            *self = Self::default();
        } else if self.read_at.is_none_or(|at| at.elapsed() >= RETRYING_EVERY) {
            self.read_at = Some(Instant::now());
            self.known = redrive.retrying(Some(name)).await?.pop();
        }
        Ok(())
    }
}

/// What a run works with.
pub struct Run<'a> {
    pub redrive: &'a Desk,
    pub pipeline: &'a Pipeline,
    pub progress: &'a Progress,
    pub stop: &'a CancellationToken,
    pub max_wait: Wait,
}

/// How the work went.
pub struct Worked {
    pub fed: Fed,
    /// Cancelled if a signal ended it.
    pub signalled: CancellationToken,
    /// What was waited for, if waiting ended it.
    pub waited: Option<Box<Waited>>,
    /// What came of the jobs that it ran; of those that were handed on, only the ones to other pipelines.
    pub own: WorkDone,
}

impl Worked {
    /// Whether more may be begun.
    pub fn may_go_on(&self) -> bool {
        !self.signalled.is_cancelled() && self.waited.is_none()
    }
}

impl Run<'_> {
    /// Feeds and works at the same time until nothing is left.
    pub async fn through(&self, feeder: &Feed, tasks: Tasks) -> Result<Worked> {
        let worker = self.worker();
        let (running, own, stop) = (worker.running(), worker.work_done(), self.stop);
        let broken = feed::say_broken(&tasks, self.say());
        let signalled = signals::watch(stop.clone(), worker.hurry(), self.say());
        let fed = CancellationToken::new();
        let until = match tasks.is_stream() {
            true => Until::DrainedAfterStream { ended: fed.clone(), is_full: Arc::clone(&feeder.is_full) },
            false => Until::DrainedAfter(fed.clone()),
        };
        let feeding = async {
            let result = feeder.run(tasks, broken).await;
            match &result {
                Ok(fed) => feed::unsaid(fed.broken).iter().for_each(|line| self.progress.say(line)),
                Err(_) => stop.cancel(),
            }
            fed.cancel();
            result
        };
        let working = async {
            let result = worker.run(until, stop.clone()).await;
            // Whatever is not fed yet stays in the file: the next run goes on there.
            if !fed.is_cancelled() {
                stop.cancel();
            }
            result
        };
        let both = async { tokio::join!(feeding, working) };
        let (fed, worked) = self.shown(both, running).await;
        let waited = match worked {
            Ok(()) => None,
            Err(redrive::Error::WaitedInVain(waited)) => Some(waited),
            Err(error) => return Err(error.into()),
        };
        let mut own = own.read();
        // Those of its own it worked on itself.
        own.handed_on.remove(self.pipeline.name());
        Ok(Worked { fed: fed?, signalled, waited, own })
    }

    /// A worker that waits no longer than it may.
    pub fn worker(&self) -> AnyWorker {
        waiting::at_most(self.redrive.worker(vec![self.pipeline.clone()]), self.max_wait)
    }

    /// Says something above the bar.
    pub fn say(&self) -> impl Fn(&str) + Clone + Send + 'static + use<> {
        let progress = self.progress.clone();
        move |line: &str| progress.say(line)
    }

    /// Does something, and shows how far everything is meanwhile.
    pub async fn shown<T>(&self, work: impl Future<Output = T>, running: Running) -> T {
        let Self { redrive, progress, .. } = self;
        let name = self.pipeline.name();
        let showing = async {
            let (mut events, mut shown_at, mut waits) = (redrive.events().listen(), Instant::now(), Waits::default());
            loop {
                tokio::time::sleep(progress.every()).await;
                if let Some(away) = redrive.away() {
                    progress.show_waiting(&away);
                    continue;
                }
                // Where nothing happens nothing is read, but for what other processes do.
                if events.skip() == 0 && shown_at.elapsed() < SHOW_ANYWAY {
                    continue;
                }
                shown_at = Instant::now();
                let read = async {
                    let (ledger, held) =
                        (redrive.ledger(name).await?, breaker::list(redrive, Some(name.clone())).await?);
                    waits.read(redrive, name, &held).await?;
                    Ok::<_, redrive::Error>((ledger, held))
                };
                if let Ok(Ok((ledger, held))) = tokio::time::timeout(READ_MAX, read).await {
                    progress.show(ledger, (&held, waits.known.as_ref()), &running, redrive.now());
                }
            }
        };
        tokio::select! {
            ended = work => ended,
            () = showing => unreachable!("progress is shown for ever"),
        }
    }
}
