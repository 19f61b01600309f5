//! The jobs of one pipeline: leasing as many as may run, running them, and knowing when nothing is left.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use redrive::clock::{Clock, SystemClock};
use redrive::contract::ReplayView;
use redrive::handler::NotesProgress;
use redrive::replays::ReplayRef;
use redrive::worker::Until;
use redrive::worker::elsewhere::{Attempted, Leased, attempt};
use redrive::{CancellationToken, Error, Pipeline, Waited};
use redrive_core::ids::ReplayId;
use redrive_core::jobs::LeasedJob;
use redrive_core::replays::ReplayState;
use tempfile::TempDir;
use tokio::task::JoinSet;

use super::{Operation, Shared, lease, settle};
use crate::desk::Desk;

/// How often a pipeline that cannot work is tried by a worker that is to end when nothing is left to do.
const TRIES_MAX: u32 = 3;

/// The first rest of a pipeline that cannot work; twice as long each time, up to the last.
const RESTS: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

/// How long running jobs may go on after a worker was told to stop.
const GRACE: Duration = Duration::from_secs(20);

/// How long the answer to a request for jobs is waited for by who is told to stop: what is leased by it goes back.
const LAST_ANSWER: Duration = Duration::from_secs(lease::WAIT_SECS + 3);

/// The jobs of one pipeline.
pub(super) struct Lane {
    shared: Arc<Shared>,
    desk: Desk,
    pipeline: Pipeline,
    ttl: Duration,
    running: JoinSet<Ran>,
    /// How often the pipeline could not work, in a row, and until when it rests.
    tries: u32,
    rests_until: Option<Instant>,
    moved_at: Instant,
    /// Whether there were jobs at the last look.
    had_jobs: bool,
}

/// What came of a job, or why the pipeline cannot work.
type Ran = Result<Attempted, (LeasedJob, String)>;

impl Lane {
    pub(super) fn new(shared: Arc<Shared>, pipeline: Pipeline, ttl: Duration) -> Self {
        let (desk, moved_at) = (Desk::There(shared.server.clone()), Instant::now());
        Self {
            shared,
            desk,
            pipeline,
            ttl,
            running: JoinSet::new(),
            tries: 0,
            rests_until: None,
            moved_at,
            had_jobs: true,
        }
    }

    pub(super) async fn run(mut self, until: Until, stop: CancellationToken) -> Result<(), Error> {
        let worked = self.work(&until, &stop).await;
        let finished = self.finish().await;
        worked.and(finished)
    }

    async fn work(&mut self, until: &Until, stop: &CancellationToken) -> Result<(), Error> {
        while !stop.is_cancelled() {
            let free = self.pipeline.at_once().saturating_sub(self.running.len());
            let resting = self.rests_until.and_then(|at| at.checked_duration_since(Instant::now()));
            if free == 0 || resting.is_some() {
                tokio::select! {
                    () = stop.cancelled() => {}
                    Some(ran) = self.running.join_next() => self.take(ran, until).await?,
                    () = tokio::time::sleep(resting.unwrap_or(Duration::from_secs(60))) => {}
                }
                continue;
            }
            let (shared, name, ttl) = (Arc::clone(&self.shared), self.pipeline.name().clone(), self.ttl.as_secs());
            // Who ends when nothing is left looks at once, and waits only if something is.
            let wait_secs = if std::mem::take(&mut self.had_jobs) && until.may_end() { 0 } else { lease::WAIT_SECS };
            // What is leased is taken in, also by who stops: it is returned then.
            let mut leasing = Box::pin(async move { lease::lease(&shared, &name, free, (ttl, wait_secs)).await });
            let (leased, open) = loop {
                tokio::select! {
                    leased = &mut leasing => break leased?,
                    Some(ran) = self.running.join_next() => self.take(ran, until).await?,
                    // A server that is away may be so for long.
                    () = stopped_for(stop, LAST_ANSWER) => return Ok(()),
                }
            };
            drop(leasing);
            if leased.is_empty() && self.running.is_empty() && self.is_over(until, open).await? {
                return Ok(());
            }
            self.had_jobs = !leased.is_empty() || !self.running.is_empty();
            if stop.is_cancelled() {
                let returned = leased.into_iter().map(|job| self.unstarted(job)).collect();
                return settle::settle(&self.shared, &self.pipeline, returned).await.map(drop);
            }
            for job in leased {
                self.begin(job);
            }
        }
        Ok(())
    }

    /// A job that goes back as it was.
    fn unstarted(&self, job: LeasedJob) -> Attempted {
        self.shared.held().insert(job.lease, CancellationToken::new());
        Attempted::returned(job)
    }

    /// Starts a job.
    fn begin(&mut self, job: LeasedJob) {
        self.moved_at = Instant::now();
        let lost = CancellationToken::new();
        self.shared.held().insert(job.lease, lost.clone());
        let (shared, desk, pipeline) = (Arc::clone(&self.shared), self.desk.clone(), self.pipeline.clone());
        self.running.spawn(async move {
            let again = job.clone();
            tokio::select! {
                ran = run(&shared, &desk, &pipeline, job) => ran,
                () = lost.cancelled() => Ok(Attempted::returned(again)),
                () = shared.hurry.cancelled() => Ok(Attempted::returned(again)),
            }
        });
    }

    /// Settles a job that has ended, with all others that have.
    async fn take(&mut self, first: Result<Ran, tokio::task::JoinError>, until: &Until) -> Result<(), Error> {
        let mut ended = Vec::new();
        let mut next = Some(first);
        let mut trouble = None;
        while let Some(ran) = next {
            match ran.map_err(|panic| Error::Internal(format!("running a task ended: {panic}")))? {
                Ok(attempted) => ended.push(attempted),
                Err((job, why)) => {
                    trouble = Some(why);
                    ended.push(Attempted::returned(job));
                }
            }
            next = self.running.try_join_next();
        }
        let works = trouble.is_none();
        if settle::settle(&self.shared, &self.pipeline, ended).await? > 0 && works {
            (self.tries, self.rests_until, self.moved_at) = (0, None, Instant::now());
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

    /// Whether nothing is left to do. It is an error if it was waited for in vain.
    async fn is_over(&self, until: &Until, open: u64) -> Result<bool, Error> {
        match self.shared.only {
            Some(Operation::Try(_)) => return Ok(open == 0),
            Some(Operation::Replay(id)) => return self.is_through(id).await,
            None => {}
        }
        if matches!(until, Until::Stopped) {
            return Ok(false);
        }
        let ledger = self.desk.ledger(self.pipeline.name()).await?;
        if ledger.open_by_itself() <= 0 && until.may_end() {
            return Ok(true);
        }
        let waits = self.shared.max_wait.is_some_and(|max| self.moved_at.elapsed() >= max);
        if waits && !until.is_open() && ledger.leased == 0 {
            return Err(Error::WaitedInVain(Box::new(self.waited(ledger.queued).await?)));
        }
        Ok(false)
    }

    /// Whether nothing of a replay is left to do here: it has ended, it rests, or what is left is of pipelines that others know.
    async fn is_through(&self, id: ReplayId) -> Result<bool, Error> {
        let ReplayView { state, .. } = self.desk.find_replay(ReplayRef::Id(id)).await?;
        if state.is_over() || matches!(state, ReplayState::Paused | ReplayState::Cancelling) {
            return Ok(true);
        }
        let left = self.desk.left_in_replay(id).await?;
        Ok(!left.is_empty() && !left.contains(self.pipeline.name()))
    }

    /// What was waited for.
    async fn waited(&self, queued: i64) -> Result<Waited, Error> {
        let name = self.pipeline.name();
        let mut targets = self.desk.list_breakers(Some(name)).await?;
        targets.retain(|view| view.held > 0);
        Ok(Waited {
            pipeline: name.clone(),
            queued: u64::try_from(queued).unwrap_or(0),
            since: SystemClock.now() - self.moved_at.elapsed(),
            next_due: None,
            targets,
            paused: self.desk.pauses().await?.remove(name),
        })
    }

    /// Lets what runs come to its end, and settles it.
    async fn finish(&mut self) -> Result<(), Error> {
        let (mut ended, until) = (Ok(()), tokio::time::Instant::now() + GRACE);
        loop {
            let ran = match tokio::time::timeout_at(until, self.running.join_next()).await {
                Ok(ran) => ran,
                Err(_) => {
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
    attempt(pipeline, leased, &shared.running, || SystemClock.now()).await
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
