//! Whether the store answers. Every call passes through here: one that finds that it does not is tried again, with growing rests, for as
//! long as it is worth it for who waits. What is waited for is told once, and once when it is over.
//!
//! A command waits for half a minute. Where a worker runs, nothing gives up: calls come back when the store does. What a call is about
//! must not depend on when that is; where it does (leases, heartbeats) it is made anew for each try.

use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use redrive_core::outages::{FORGIVEN_FOR, Obstacle, SAID_AFTER, Waiter, rest};
use redrive_store::decorated::{Decorated, Layer, Rows};
use redrive_store::{Location, Options, Result, Store, StoreError};
use tokio::sync::watch;

use crate::chance::{Chance, SystemChance};
use crate::clock::{Clock, SystemClock};
use crate::events::{Events, Happening};
use crate::times::Times;

/// How often it is looked why a call is not answered.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// How long a call rests at least before it takes an answer that another got for a reason to try again.
const REST_MIN: Duration = Duration::from_millis(250);

/// After so long without any answer, while something waits, nothing is answered at all.
const SILENT_AFTER: Duration = Duration::from_secs(2);

/// Whether a store answers, as far as is known in this process.
pub struct Reach {
    events: Events,
    outage: Mutex<Option<Outage>>,
    /// Whether anything waits: asked with every call.
    is_waited_for: AtomicBool,
    /// When the last outage ended that was long enough to be spoken of.
    over_at: Mutex<Option<Instant>>,
    waiters: watch::Sender<Waiters>,
    /// Sent when something is answered during an outage, and when one begins or ends.
    changed: watch::Sender<()>,
    /// How long calls took, with all that they waited.
    pub(crate) times: Times<&'static str>,
}

/// An outage that is not over.
struct Outage {
    since: Instant,
    /// When a call was first refused: what was asked before, and answered late, says nothing about it.
    found_at: Instant,
    place: String,
    why: String,
    is_told: bool,
    /// Whether a call that waited was answered: it ends then, rather than for want of anybody who waits.
    is_answered: bool,
    /// When anything was last answered meanwhile: what waits may wait for something of its own, such as a lock.
    answered_at: Option<Instant>,
    /// Calls that wait. It is over when none is left.
    waiting: usize,
}

/// Who waits in this process.
#[derive(Clone, Copy, Default)]
struct Waiters {
    workers: usize,
    /// Whether the last worker that was here had no time left to wait.
    has_left: bool,
}

/// A store that does not answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Away {
    /// Where it is.
    pub place: String,
    /// What was last wrong.
    pub why: String,
    /// For how long it has not answered.
    pub lasts: Duration,
}

impl Reach {
    /// A store, or a server, of which nothing is known yet. What is waited for is told to these events.
    pub fn new(events: Events) -> Self {
        Self {
            events,
            outage: Mutex::default(),
            is_waited_for: AtomicBool::new(false),
            over_at: Mutex::default(),
            waiters: watch::channel(Waiters::default()).0,
            changed: watch::channel(()).0,
            times: Times::default(),
        }
    }

    /// A store of which every call passes through here, and waits as this one does, or else as whoever is in this process.
    pub(crate) fn around(self: &Arc<Self>, store: &Arc<dyn Store>, waiter: Option<Waiter>) -> Arc<dyn Store> {
        let patient = Patient { reach: Arc::clone(self), store: Arc::clone(store), waiter };
        Decorated::around(Arc::clone(store), &Arc::new(patient))
    }

    /// Opens a store. A server that takes its time is waited for too: nobody can tell yet what is wrong with it.
    pub(crate) async fn open(&self, location: &Location, options: Options, waiter: Waiter) -> Result<Arc<dyn Store>> {
        let begun = Instant::now();
        let silent = async {
            if !location.is_shared() {
                std::future::pending::<()>().await;
            }
            tokio::time::sleep(SAID_AFTER).await;
            let waits = Waits::begin(self, begun);
            waits.note(&location.to_string(), "it has not answered yet");
            std::future::pending::<()>().await;
        };
        tokio::select! {
            biased;
            opened = self.call_for(Some(waiter), &|| None, || location.open(options.impatient())) => opened,
            () = silent => unreachable!("it waits for ever"),
        }
    }

    fn outage(&self) -> MutexGuard<'_, Option<Outage>> {
        self.outage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is waited for, if it is for long enough to be spoken of.
    pub fn away(&self) -> Option<Away> {
        let outage = self.outage();
        let Outage { since, place, why, is_told, .. } = outage.as_ref()?;
        is_told.then(|| Away { place: place.clone(), why: why.clone(), lasts: since.elapsed() })
    }

    /// Whether anything waits for the store.
    pub(crate) fn is_waited_for(&self) -> bool {
        self.is_waited_for.load(Ordering::Relaxed)
    }

    /// Whether nothing at all is answered.
    pub(crate) fn is_away(&self) -> bool {
        let is_silent = |outage: &Outage| outage.answered_at.is_none_or(|at| at.elapsed() >= SILENT_AFTER);
        self.is_waited_for() && self.outage().as_ref().is_some_and(is_silent)
    }

    /// Returns when something is answered.
    pub(crate) async fn back(&self) {
        let mut changed = self.changed.subscribe();
        while self.is_away() {
            // The sender is here.
            let _ = changed.changed().await;
        }
    }

    /// Whether there is an outage, or was one so lately that others may not have come back from it yet.
    pub(crate) fn is_forgiving(&self) -> bool {
        let over_at = *self.over_at.lock().unwrap_or_else(PoisonError::into_inner);
        self.is_away() || over_at.is_some_and(|at| at.elapsed() < FORGIVEN_FOR)
    }

    /// Notes that a worker runs in this process, for as long as that is kept: nothing gives up.
    pub fn work(self: &Arc<Self>) -> Working {
        self.waiters.send_modify(|waiters| *waiters = Waiters { workers: waiters.workers + 1, has_left: false });
        Working(Arc::clone(self))
    }

    fn waiter(&self) -> Waiter {
        match *self.waiters.borrow() {
            Waiters { workers: 1.., .. } => Waiter::Worker,
            Waiters { has_left: true, .. } => Waiter::Leaving,
            Waiters { .. } => Waiter::Command,
        }
    }

    /// Calls a store until it answers, or that is not worth waiting for any more. `stuck` says why a call that was taken is not answered.
    pub async fn call<T, F>(&self, stuck: Stuck<'_>, call: impl Fn() -> F) -> Result<T>
    where
        F: Future<Output = Result<T>>,
    {
        self.call_for(None, stuck, call).await
    }

    /// The same, as this one waits, or else as whoever is in this process.
    pub(crate) async fn call_for<T, F>(
        &self,
        waiter: Option<Waiter>,
        stuck: Stuck<'_>,
        call: impl Fn() -> F,
    ) -> Result<T>
    where
        F: Future<Output = Result<T>>,
    {
        let mut tries = Tries { reach: self, waiter, begun: Instant::now(), waits: None, count: 0 };
        loop {
            let tried = Instant::now();
            let answer = tokio::select! {
                biased;
                answer = call() => answer,
                error = tries.watch(stuck) => Err(error),
            };
            if tries.end(answer.as_ref().err(), tried).await {
                return answer;
            }
        }
    }

    /// Notes that something was answered during an outage: others need not rest. What was asked before it began says nothing.
    fn note_answer(&self, has_waited: bool, tried: Instant) {
        if let Some(outage) = self.outage().as_mut().filter(|outage| has_waited || tried > outage.found_at) {
            outage.is_answered |= has_waited;
            outage.answered_at = Some(Instant::now());
        }
        self.changed.send_replace(());
    }

    /// Rests before another try: less if another call is answered meanwhile, and not at all for who is not to wait any more.
    async fn rest(&self, tries: u32, may_leave: bool) {
        let long = rest(tries, SystemChance.fraction());
        let (mut changed, mut waiters) = (self.changed.subscribe(), self.waiters.subscribe());
        let answered = async {
            tokio::time::sleep(REST_MIN).await;
            let _ = changed.changed().await;
        };
        let left = async {
            while !may_leave || self.waiter() != Waiter::Leaving {
                let _ = waiters.changed().await;
            }
        };
        tokio::select! {
            () = tokio::time::sleep(long) => {}
            () = answered => {}
            () = left => {}
        }
    }
}

/// Says why a call that was taken is not answered, if that is known.
type Stuck<'a> = &'a (dyn Fn() -> Option<StoreError> + Send + Sync);

/// The tries of one call. It does not depend on the call's type, so it is compiled once for all verbs.
struct Tries<'a> {
    reach: &'a Reach,
    waiter: Option<Waiter>,
    begun: Instant,
    waits: Option<Waits<'a>>,
    count: u32,
}

impl<'a> Tries<'a> {
    fn goes_on(&self, obstacle: Obstacle) -> bool {
        self.waiter.unwrap_or_else(|| self.reach.waiter()).goes_on(obstacle, self.begun.elapsed())
    }

    fn wait(&mut self) -> &Waits<'a> {
        self.waits.get_or_insert_with(|| Waits::begin(self.reach, self.begun))
    }

    /// Watches a try that is not answered: while it is stuck, that counts as waiting. Returns once it is given up; nobody can know then
    /// whether it took place.
    async fn watch(&mut self, stuck: Stuck<'_>) -> StoreError {
        let mut waiters = self.reach.waiters.subscribe();
        loop {
            tokio::select! {
                () = tokio::time::sleep(LOOK_EVERY) => {}
                // Another may be to wait from now on, or nobody.
                _ = waiters.changed() => {}
            }
            let Some(error) = stuck() else { continue };
            match error.passing() {
                Some(passing) => self.wait().note(passing.place, passing.why),
                None => tracing::debug!(%error, "what was sent is not answered"),
            }
            if !self.goes_on(Obstacle::Away) {
                return error.unanswered();
            }
        }
    }

    /// Notes how a try ended. Returns whether it was the last; otherwise rests before the next one.
    async fn end(&mut self, error: Option<&StoreError>, tried: Instant) -> bool {
        let Some(passing) = error.and_then(StoreError::passing) else {
            if self.reach.is_waited_for() {
                self.reach.note_answer(self.waits.is_some(), tried);
            }
            return true;
        };
        if !self.goes_on(passing.obstacle) {
            return true;
        }
        self.wait().note(passing.place, passing.why);
        self.reach.rest(self.count, self.waiter.is_none()).await;
        self.count += 1;
        false
    }
}

/// A call that waits, for as long as it does.
struct Waits<'a>(&'a Reach);

impl<'a> Waits<'a> {
    fn begin(reach: &'a Reach, since: Instant) -> Self {
        let fresh = || Outage {
            since,
            found_at: Instant::now(),
            place: String::new(),
            why: String::new(),
            is_told: false,
            is_answered: false,
            answered_at: None,
            waiting: 0,
        };
        reach.outage().get_or_insert_with(fresh).waiting += 1;
        reach.is_waited_for.store(true, Ordering::Relaxed);
        Self(reach)
    }

    /// Notes why it waits, which is told once it is worth it.
    fn note(&self, place: &str, why: &str) {
        let mut outage = self.0.outage();
        let Some(known) = outage.as_mut() else { return };
        (known.place, known.why) = (place.to_owned(), why.to_owned());
        let is_news = !known.is_told && known.since.elapsed() >= SAID_AFTER;
        known.is_told |= is_news;
        drop(outage);
        if is_news {
            let (place, why) = (place.to_owned(), why.to_owned());
            self.0.events.tell(SystemClock.now(), None, Happening::StoreAway { place, why });
        }
    }
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        let mut outage = self.0.outage();
        let Some(known) = outage.as_mut() else { return };
        known.waiting -= 1;
        if known.waiting > 0 {
            return;
        }
        let over = outage.take().filter(|outage| outage.is_told && outage.is_answered);
        self.0.is_waited_for.store(false, Ordering::Relaxed);
        drop(outage);
        self.0.changed.send_replace(());
        if let Some(Outage { place, since, .. }) = over {
            *self.0.over_at.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
            let secs = since.elapsed().as_secs();
            self.0.events.tell(SystemClock.now(), None, Happening::StoreBack { place, secs });
        }
    }
}

/// A worker that runs, or whoever else waits as one does.
pub struct Working(Arc<Reach>);

impl Working {
    /// It ends without waiting any longer: if it is the last, whoever waits is answered at once.
    pub fn leave(self) {
        self.0.waiters.send_modify(|waiters| waiters.has_left = true);
    }
}

impl Drop for Working {
    fn drop(&mut self) {
        self.0.waiters.send_modify(|waiters| waiters.workers -= 1);
    }
}

/// The layer around a store.
struct Patient {
    reach: Arc<Reach>,
    store: Arc<dyn Store>,
    waiter: Option<Waiter>,
}

impl Layer for Patient {
    async fn around<T, F, R>(&self, verb: &'static str, call: F) -> Result<T>
    where
        T: Rows + Send,
        F: Fn() -> R + Send + Sync,
        R: Future<Output = Result<T>> + Send,
    {
        let begun = Instant::now();
        let answer = self.reach.call_for(self.waiter, &|| self.store.trouble(), call).await;
        self.reach.times.note(verb, begun.elapsed(), answer.is_err());
        answer
    }
}
