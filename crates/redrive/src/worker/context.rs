//! What the tasks of one worker share.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use redrive_core::clock::set_back;
use redrive_core::ids::{PipelineName, WorkerId};
use redrive_core::jobs::Lease;
use redrive_core::settlements::Ending;
use redrive_core::time::Timestamp;
use redrive_core::workers::{Runs, TakesReplays};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::GRACE;
use super::holds::Holds;
use super::leader::Leads;
use super::pauses::Pauses;
use super::running::Running;
use super::settle::HURRIED;
use super::slots::{Slot, Slots};
use super::work_done::WorkDoneSoFar;
use crate::engine::Redrive;
use crate::error::Error;
use crate::events::Happening;
use crate::pipeline::Pipeline;

/// How often it is looked whether the store that is waited for answers.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// A job that this worker has.
struct Held {
    /// Ends its run.
    token: CancellationToken,
    /// Until when the lease lasts, if nobody else extended it.
    until: Timestamp,
}

pub(super) struct Context {
    pub(super) redrive: Redrive,
    pub(super) id: WorkerId,
    /// Nothing more is leased or started once it is cancelled.
    pub(super) stop: CancellationToken,
    /// Running jobs are returned at once when it is cancelled.
    pub(super) hurry: CancellationToken,
    /// What runs, for who shows it.
    pub(super) running: Running,
    /// Cancelled when this worker makes way for one with newer pipelines: it begins nothing more, and has time.
    pub(super) retired: CancellationToken,
    /// Cancelled when the process is to stop, or the worker has failed: what runs has not much time left.
    pub(super) ending: CancellationToken,
    /// Sent when any process has moved jobs or breakers.
    pub(super) jobs_changed: watch::Sender<()>,
    /// Sent when any process has ended leases of others.
    pub(super) leases_ended: watch::Sender<()>,
    /// Sent when any process has changed a replay.
    pub(super) replays_changed: watch::Sender<()>,
    /// Cancelled when the worker ends without waiting any longer for a store that does not answer.
    pub(super) left: CancellationToken,
    /// The jobs this worker has.
    held: Mutex<HashMap<Lease, Held>>,
    /// The pipelines that cannot work for now.
    pub(super) holds: Holds,
    /// The pipelines that people paused.
    pub(super) pauses: Pauses,
    failure: Mutex<Option<Error>>,
    /// The pipelines that this worker no longer works on though it goes on with others.
    given_up: Mutex<HashSet<PipelineName>>,
    /// What this worker leads.
    pub(super) leads: Leads,
    /// What this worker runs, for others to see.
    runs: Mutex<Vec<Runs>>,
    /// Whether a heartbeat was answered since this was last asked.
    beaten: AtomicBool,
    /// The newest time that was read, in milliseconds.
    newest: AtomicI64,
    /// What came of the jobs that this worker ran.
    pub(super) work_done: WorkDoneSoFar,
    /// What each pipeline may run at once, whatever lane its jobs come by.
    /// Shared with the worker that this one makes way for.
    slots: Arc<Slots>,
}

impl Context {
    pub(super) fn new(redrive: Redrive, id: WorkerId, pipelines: &[Pipeline]) -> Self {
        Self {
            redrive,
            id,
            stop: CancellationToken::new(),
            hurry: CancellationToken::new(),
            running: Running::default(),
            retired: CancellationToken::new(),
            ending: CancellationToken::new(),
            left: CancellationToken::new(),
            jobs_changed: watch::channel(()).0,
            leases_ended: watch::channel(()).0,
            replays_changed: watch::channel(()).0,
            leads: Leads::default(),
            runs: Mutex::new(pipelines.iter().map(|pipeline| pipeline.runs(TakesReplays::None)).collect()),
            beaten: AtomicBool::new(false),
            held: Mutex::default(),
            holds: Holds::default(),
            pauses: Pauses::default(),
            failure: Mutex::default(),
            given_up: Mutex::default(),
            newest: AtomicI64::new(i64::MIN),
            work_done: WorkDoneSoFar::default(),
            slots: Arc::default(),
        }
    }

    /// That of a worker which takes this one's place: together they run no more than each alone would.
    pub(super) fn successor(&self, id: WorkerId, pipelines: &[Pipeline]) -> Self {
        let mut context = Self::new(self.redrive.clone(), id, pipelines);
        context.slots = Arc::clone(&self.slots);
        context.work_done = self.work_done.clone();
        context.hurry = self.hurry.clone();
        context
    }

    /// Waits as long as what runs may go on after nothing more is begun: without end while the worker only makes way.
    pub(super) async fn grace(&self) {
        if self.retired.is_cancelled() {
            self.ending.cancelled().await;
        }
        tokio::time::sleep(GRACE).await;
    }

    /// Returns when the worker is to end and cannot wait for a store that does not answer: at once if it has no jobs, else when those
    /// had the time that they may take to end.
    pub(super) async fn abandoned(&self) {
        self.ending.cancelled().await;
        let late = async {
            tokio::select! {
                () = self.grace() => {}
                () = self.hurry.cancelled() => {}
            }
            tokio::time::sleep(HURRIED).await;
        };
        tokio::pin!(late);
        let mut is_late = false;
        while !(self.redrive.reach.is_waited_for() && (is_late || self.held().is_empty())) {
            tokio::select! {
                () = &mut late, if !is_late => is_late = true,
                () = tokio::time::sleep(LOOK_EVERY) => {}
            }
        }
    }

    /// Returns when the store answers. Never in a worker that has left: that nobody of it waits any more is no answer.
    pub(super) async fn answered(&self) {
        self.redrive.reach.back().await;
        if self.left.is_cancelled() {
            std::future::pending::<()>().await;
        }
    }

    /// How often it is looked for what nobody tells of: a file shows at once that a worker is gone, and looking at it costs little; a
    /// server that many share is spared.
    pub(super) fn look_every(&self) -> Duration {
        Duration::from_secs(if self.redrive.store.capabilities().instant_presence { 1 } else { 5 })
    }

    /// How long a pipeline waits at most before it asks for jobs of which nobody told. A server that many share is asked when `watch` has
    /// everybody look, and not beside that.
    pub(super) fn look_anyway_every(&self) -> Duration {
        Duration::from_secs(if self.redrive.store.capabilities().instant_presence { 2 } else { 12 })
    }

    pub(super) fn now(&self) -> Timestamp {
        let now = self.redrive.now();
        self.newest.fetch_max(now.as_millis(), Ordering::Relaxed);
        now
    }

    /// By how much the clock was set back since this was last asked, as far as anybody here has read it.
    pub(super) fn take_set_back(&self) -> Option<Duration> {
        let now = self.redrive.now();
        let newest = self.newest.swap(now.as_millis(), Ordering::Relaxed);
        set_back(Timestamp::from_millis(newest), now)
    }

    /// Has others see that this worker runs no jobs.
    pub(super) fn run_nothing(&self) {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Notes that jobs of this worker wait without end for a target that stays away.
    pub(super) fn wait_forever(&self) {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner).iter_mut().for_each(|runs| runs.waits_forever = true);
    }

    /// Notes which replays this worker takes letters of.
    pub(super) fn take_replays(&self, replays: TakesReplays) {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner).iter_mut().for_each(|runs| runs.replays = replays);
    }

    /// What this worker runs.
    pub(super) fn runs(&self) -> Vec<Runs> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Notes that a heartbeat of this worker was answered.
    pub(super) fn note_beat(&self) {
        self.beaten.store(true, Ordering::Relaxed);
    }

    /// Whether a heartbeat of this worker was answered since this was last asked: then those of others could be, too.
    pub(super) fn take_beaten(&self) -> bool {
        self.beaten.swap(false, Ordering::Relaxed)
    }

    fn held(&self) -> MutexGuard<'_, HashMap<Lease, Held>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that this worker has a job; the token is cancelled if it loses it.
    pub(super) fn hold(&self, lease: Lease, until: Timestamp) -> CancellationToken {
        let token = CancellationToken::new();
        self.held().insert(lease, Held { token: token.clone(), until });
        token
    }

    /// Notes that a lease was extended.
    pub(super) fn keep(&self, lease: &Lease, until: Timestamp) {
        if let Some(held) = self.held().get_mut(lease) {
            held.until = until;
        }
    }

    /// Whether a lease has run out, so that another worker may have the job.
    pub(super) fn is_late(&self, lease: &Lease, now: Timestamp) -> bool {
        self.held().get(lease).is_some_and(|held| held.until <= now)
    }

    /// Whether this worker still has a job.
    pub(super) fn holds(&self, lease: &Lease) -> bool {
        self.held().contains_key(lease)
    }

    /// Notes that this worker no longer has a job.
    pub(super) fn release(&self, lease: &Lease) {
        self.held().remove(lease);
    }

    /// The leases this worker has.
    pub(super) fn leases(&self) -> Vec<Lease> {
        self.held().keys().copied().collect()
    }

    /// Ends the run of a job that this worker has lost.
    pub(super) fn lose(&self, lease: &Lease) {
        let lost = self.held().remove(lease);
        if let Some(held) = lost {
            held.token.cancel();
            self.tell(Happening::LeaseLost { job: lease.job });
        }
    }

    /// Tells what happened in this worker.
    pub(super) fn tell(&self, what: Happening) {
        self.redrive.events.tell(self.now(), Some(self.id), what);
    }

    /// The same for what happens with every job: it is made only if somebody wants it.
    pub(super) fn tell_often(&self, what: impl FnOnce() -> Happening) {
        self.redrive.events.tell_often(self.now(), Some(self.id), what);
    }

    /// Waits until a pipeline may run one more job; nothing if the worker is to stop.
    pub(super) async fn slot(&self, pipeline: &Pipeline) -> Option<Slot> {
        tokio::select! {
            biased;
            slot = self.slots.take(&pipeline.name, pipeline.concurrency) => Some(slot),
            () = self.stop.cancelled() => None,
        }
    }

    /// Stops the worker for an error; the first one is kept.
    pub(super) fn fail(&self, error: Error) {
        self.note_failure(error);
        self.ending.cancel();
        self.stop.cancel();
    }

    /// What a task of this worker holds while it runs: if it panics the worker stops with an error, since nobody would go on with
    /// what it was there for.
    pub(super) fn watched(self: &Arc<Self>, task: &'static str) -> Watched {
        Watched { context: Arc::clone(self), task }
    }

    /// Keeps an error for the end, if it is the first; the worker goes on with what it can do.
    pub(super) fn note_failure(&self, error: Error) {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
    }

    /// Keeps why this worker no longer works on a pipeline, and goes on with the others.
    pub(super) fn give_up(&self, pipeline: &PipelineName, why: Error) {
        self.given_up.lock().unwrap_or_else(PoisonError::into_inner).insert(pipeline.clone());
        self.note_failure(why);
    }

    /// Whether this worker no longer works on a pipeline: nothing is to be waited for from there.
    pub(super) fn has_given_up(&self, pipeline: &PipelineName) -> bool {
        self.given_up.lock().unwrap_or_else(PoisonError::into_inner).contains(pipeline)
    }

    pub(super) fn take_failure(&self) -> Option<Error> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// The circumstances of something that ends now.
    pub(super) fn ending(&self) -> Ending {
        Ending { at: self.now(), duration: None, worker: Some(self.id), chance: self.redrive.chance.fraction() }
    }
}

/// Stops its worker if the task that holds it panics.
pub(super) struct Watched {
    context: Arc<Context>,
    task: &'static str,
}

impl Drop for Watched {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.context.fail(Error::Internal(format!("{} ended in a panic", self.task)));
        }
    }
}
