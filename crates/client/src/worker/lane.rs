//! The jobs of one pipeline: leasing as many as may run, running them, and knowing when nothing is left.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use redrive::clock::{Clock, SystemClock};
use redrive::handler::NotesProgress;
use redrive::worker::Until;
use redrive::worker::elsewhere::{Attempted, Leased, attempt};
use redrive::worker::pace::Pace;
use redrive::{CancellationToken, Error, Pipeline};
use redrive_core::ids::PipelineName;
use redrive_core::jobs::LeasedJob;
use redrive_core::ledger::Ledger;
use redrive_core::settlements::Outcome;
use redrive_core::time::Timestamp;
use tempfile::TempDir;
use tokio::task::JoinSet;

use super::lease::Offer;
use super::{Shared, lease, settle};
use crate::desk::Desk;

/// How often a pipeline that cannot work is tried by a worker that is to end when nothing is left to do.
const TRIES_MAX: u32 = 3;

/// The first rest of a pipeline that cannot work; twice as long each time, up to the last.
const RESTS: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

/// How long running jobs may go on after a worker was told to stop.
pub(super) const GRACE: Duration = Duration::from_secs(20);

/// How long the answer to a request for jobs is waited for by who is told to stop: what is leased by it goes back.
const LAST_ANSWER: Duration = Duration::from_secs(lease::WAIT_SECS + 3);

/// How soon it is looked again whether jobs of a worker that made way have ended.
const OTHERS_END_IN: Duration = Duration::from_millis(200);

/// How long jobs that were leased ahead wait for their turn.
const AHEAD_FOR: Duration = Duration::from_secs(5);

/// The jobs of one pipeline.
pub(super) struct Lane {
    pub(super) shared: Arc<Shared>,
    pub(super) desk: Desk,
    pub(super) pipeline: Pipeline,
    /// The pipelines from which jobs may come to it.
    pub(super) feeders: Vec<PipelineName>,
    ttl: Duration,
    /// Jobs that were leased ahead and have not begun, and when they came.
    local: VecDeque<(Instant, LeasedJob)>,
    /// Whether some of them went back because nothing ended for so long, and nothing has ended since.
    is_stuck: bool,
    running: JoinSet<Ran>,
    /// How long jobs take, once one has ended.
    pace: Option<Pace>,
    /// How often the pipeline could not work, in a row, and until when it rests.
    tries: u32,
    rests_until: Option<Instant>,
    /// When something last came to an end other than for its target's sake.
    pub(super) moved_at: Timestamp,
    /// Where the pipeline stood at the last look, and when the next job may come.
    pub(super) seen: Option<Ledger>,
    pub(super) next_due: Option<Timestamp>,
    /// Whether there were jobs at the last look.
    had_jobs: bool,
}

/// What came of a job, or why the pipeline cannot work.
type Ran = Result<Attempted, (LeasedJob, String)>;

impl Lane {
    pub(super) fn new(shared: Arc<Shared>, pipeline: Pipeline, feeders: Vec<PipelineName>, ttl: Duration) -> Self {
        let desk = Desk::There(shared.server.clone());
        Self {
            shared,
            desk,
            pipeline,
            feeders,
            ttl,
            local: VecDeque::new(),
            is_stuck: false,
            running: JoinSet::new(),
            pace: None,
            tries: 0,
            rests_until: None,
            moved_at: SystemClock.now(),
            seen: None,
            next_due: None,
            had_jobs: true,
        }
    }

    /// Works until nothing is left, or nothing more is to be begun: because another worker takes its place, or because the process
    /// is told to stop.
    pub(super) async fn run(
        mut self,
        until: Until,
        (ending, stop): (CancellationToken, CancellationToken),
    ) -> Result<(), Error> {
        let worked = self.work(&until, &ending).await;
        if worked.is_err() {
            self.shared.given_up().insert(self.pipeline.name().clone());
        }
        let finished = self.finish(&stop).await;
        worked.and(finished)
    }

    async fn work(&mut self, until: &Until, stop: &CancellationToken) -> Result<(), Error> {
        while !stop.is_cancelled() {
            self.fill();
            self.give_back().await?;
            let room = self.room();
            let resting = self.resting();
            if room == 0 || resting.is_some() {
                let rest = resting.unwrap_or(AHEAD_FOR).min(self.look_again());
                tokio::select! {
                    () = stop.cancelled() => {}
                    Some(ran) = self.running.join_next() => self.take(ran, until).await?,
                    () = tokio::time::sleep(rest) => {}
                }
                continue;
            }
            let Some(Offer { jobs, open, next_due }) = self.lease(room, until, stop).await? else { return Ok(()) };
            self.next_due = next_due;
            self.had_jobs = !jobs.is_empty();
            self.keep(jobs);
            if self.is_idle() && !self.had_jobs && self.is_over(until, open).await? {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Asks for jobs, and starts those that are here meanwhile. What is leased is taken in, also by who stops: it goes back then.
    async fn lease(&mut self, room: usize, until: &Until, stop: &CancellationToken) -> Result<Option<Offer>, Error> {
        // Who ends when nothing is left looks at once, and waits only if something is.
        let wait_secs = match (until.may_end(), self.is_idle()) {
            (true, true) if self.had_jobs => 0,
            (true, false) => 1,
            _ => lease::WAIT_SECS,
        };
        let (shared, name, ttl) = (Arc::clone(&self.shared), self.pipeline.name().clone(), self.ttl.as_secs());
        let mut leasing = Box::pin(async move { lease::lease(&shared, &name, room, (ttl, wait_secs)).await });
        loop {
            tokio::select! {
                offer = &mut leasing => return offer.map(Some),
                Some(ran) = self.running.join_next() => {
                    if let Err(error) = self.take(ran, until).await {
                        // What is being leased goes back, too.
                        if let Ok(Ok(offer)) = tokio::time::timeout(LAST_ANSWER, leasing).await {
                            self.keep(offer.jobs);
                        }
                        return Err(error);
                    }
                    if !stop.is_cancelled() {
                        self.fill();
                    }
                }
                // A server that is away may be so for long.
                () = stopped_for(stop, LAST_ANSWER) => return Ok(None),
            }
        }
    }

    /// Keeps jobs that were leased until it is their turn.
    fn keep(&mut self, jobs: Vec<LeasedJob>) {
        for job in jobs {
            self.shared.held().insert(job.lease, CancellationToken::new());
            self.local.push_back((Instant::now(), job));
        }
    }

    /// Gives jobs back whose turn does not come: others may have room, and the time that an attempt may take begins with its lease.
    async fn give_back(&mut self) -> Result<(), Error> {
        let fresh = self.local.iter().position(|(came, _)| came.elapsed() < AHEAD_FOR).unwrap_or(self.local.len());
        let old: Vec<_> = self.local.drain(..fresh).map(|(_, job)| Attempted::returned(job)).collect();
        // Else they would be here again at once, and never with others.
        self.is_stuck |= !old.is_empty();
        settle::settle(&self.shared, &self.pipeline, old).await.map(drop)
    }

    fn is_idle(&self) -> bool {
        self.local.is_empty() && self.running.is_empty()
    }

    fn resting(&self) -> Option<Duration> {
        self.rests_until.and_then(|at| at.checked_duration_since(Instant::now()))
    }

    /// How many jobs more may be leased: none while there are enough ahead.
    fn room(&self) -> usize {
        let at_once = self.pipeline.at_once();
        let ahead = self.pace.map_or(0, |pace| pace.ahead(at_once));
        let free = at_once.saturating_sub(self.busy());
        let wanted = free + ahead;
        match free == 0 && (self.is_stuck || ahead == 0 || self.local.len() * 2 > ahead) {
            true => 0,
            false => wanted.saturating_sub(self.local.len()),
        }
    }

    /// How many jobs run: also those of a worker that made way.
    fn busy(&self) -> usize {
        self.running.len().max(self.shared.slots.taken(self.pipeline.name()))
    }

    /// After how long it is looked again whether there is room: soon while a worker that made way has some of it.
    fn look_again(&self) -> Duration {
        if self.busy() > self.running.len() { OTHERS_END_IN } else { AHEAD_FOR }
    }

    /// Starts as many of the jobs that are here as may run.
    fn fill(&mut self) {
        while self.busy() < self.pipeline.at_once() && self.resting().is_none() {
            let Some((_, job)) = self.local.pop_front() else { return };
            self.begin(job);
        }
    }

    /// Starts a job, unless it was lost while it waited.
    fn begin(&mut self, job: LeasedJob) {
        let Some(lost) = self.shared.held().get(&job.lease).cloned() else { return };
        let (shared, desk, pipeline) = (Arc::clone(&self.shared), self.desk.clone(), self.pipeline.clone());
        let slot = shared.slots.take(pipeline.name());
        self.running.spawn(async move {
            let _slot = slot;
            let again = job.clone();
            tokio::select! {
                biased;
                () = lost.cancelled() => Ok(Attempted::returned(again)),
                () = shared.hurry.cancelled() => Ok(Attempted::returned(again)),
                ran = run(&shared, &desk, &pipeline, job) => ran,
            }
        });
    }

    /// Settles a job that has ended, with all others that have.
    async fn take(&mut self, first: Result<Ran, tokio::task::JoinError>, until: &Until) -> Result<(), Error> {
        self.is_stuck = false;
        let mut ended = Vec::new();
        let mut next = Some(first);
        let mut trouble = None;
        while let Some(ran) = next {
            match ran.map_err(|panic| Error::Internal(format!("running a task ended: {panic}")))? {
                Ok(attempted) => {
                    if attempted.outcome != Outcome::Returned {
                        self.pace.get_or_insert_default().note(attempted.duration);
                    }
                    ended.push(attempted);
                }
                Err((job, why)) => {
                    trouble = Some(why);
                    ended.push(Attempted::returned(job));
                }
            }
            next = self.running.try_join_next();
        }
        let moves = ended.iter().any(|attempted| attempted.moves);
        let settled = settle::settle(&self.shared, &self.pipeline, ended).await?;
        if settled > 0 && trouble.is_none() {
            (self.tries, self.rests_until) = (0, None);
        }
        if moves {
            self.moved_at = SystemClock.now();
        }
        match trouble {
            Some(why) => self.rest(why, until),
            None => Ok(()),
        }
    }

    /// Has the pipeline rest, because it cannot work; an error if it was tried often enough.
    fn rest(&mut self, why: String, until: &Until) -> Result<(), Error> {
        self.tries += 1;
        let pipeline = self.pipeline.name().clone();
        tracing::warn!(%pipeline, why, "a pipeline cannot work for now");
        if self.tries >= TRIES_MAX && !matches!(until, Until::Stopped) {
            return Err(Error::Held { pipeline, why, tries: self.tries });
        }
        let rest = RESTS.0.saturating_mul(1 << (self.tries - 1).min(16)).min(RESTS.1);
        self.rests_until = Some(Instant::now() + rest);
        Ok(())
    }

    /// Lets what runs come to its end, and settles it. A worker that made way has as long for it as the process has.
    async fn finish(&mut self, stop: &CancellationToken) -> Result<(), Error> {
        let unstarted = std::mem::take(&mut self.local).into_iter().map(|(_, job)| Attempted::returned(job)).collect();
        let returned = settle::settle(&self.shared, &self.pipeline, unstarted).await.map(drop);
        let mut ended = returned;
        let mut late = std::pin::pin!(late(self.shared.retired.clone(), stop.clone()));
        loop {
            let ran = tokio::select! {
                ran = self.running.join_next() => ran,
                () = &mut late, if !self.shared.hurry.is_cancelled() => {
                    self.shared.hurry.cancel();
                    self.running.join_next().await
                }
            };
            let Some(ran) = ran else { return ended };
            let taken = self.take(ran, &Until::Stopped).await;
            ended = ended.and(taken);
        }
    }
}

/// Returns when what runs has had the time that it may take to end.
async fn late(retired: CancellationToken, stop: CancellationToken) {
    if retired.is_cancelled() {
        stop.cancelled().await;
    }
    tokio::time::sleep(GRACE).await;
}

/// Returns so long after it was said to stop.
async fn stopped_for(stop: &CancellationToken, long: Duration) {
    stop.cancelled().await;
    tokio::time::sleep(long).await;
}

/// Runs a job, with what it needs.
async fn run(shared: &Arc<Shared>, desk: &Desk, pipeline: &Pipeline, job: LeasedJob) -> Ran {
    let (_folder, saved) = match fetched(desk, &job).await {
        Ok(saved) => saved.unzip(),
        Err(why) => return Err((job, why)),
    };
    let notes: Arc<dyn NotesProgress> = Arc::clone(shared) as Arc<dyn NotesProgress>;
    let leased = Leased { job, saved, worker: shared.id, notes };
    attempt(pipeline, leased, (&shared.running, &shared.good), || SystemClock.now()).await
}

/// The saved payload of a job, in a file of its own, if it is to be worked on from there.
async fn fetched(desk: &Desk, job: &LeasedJob) -> Result<Option<(TempDir, PathBuf)>, String> {
    let Some(payload) = &job.saved else { return Ok(None) };
    let made = tempfile::tempdir().map_err(|error| format!("cannot make a temporary folder: {error}"))?;
    let path = made.path().join("payload");
    let file = std::fs::File::create(&path).map_err(|error| format!("cannot write {}: {error}", path.display()))?;
    let mut file = tokio::fs::File::from_std(file);
    // By the job: who is let near some pipelines only may not name a hash.
    let name = job.lease.job.to_string();
    let copied = desk.copy_payload(None, (&name, payload.hash), &mut file).await;
    copied.map_err(|error| format!("the saved payload cannot be read: {error}"))?;
    Ok(Some((made, path)))
}
