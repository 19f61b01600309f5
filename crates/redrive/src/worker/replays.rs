//! Drives replays: sends letters when it is their turn, works on what was sent, and begins those that policies ask for.
//!
//! Any number of processes may drive one replay: each step is written only on the replay it was decided on. A worker sends the
//! letters of the pipelines it knows; the rest of a replay is left to who knows the others.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use redrive_core::actors::{Actor, Via};
use redrive_core::dead::Gate;
use redrive_core::failures::Reason;
use redrive_core::ids::{PipelineName, ReplayId};
use redrive_core::jobs::Input;
use redrive_core::replays::{AutoReplay, Automatic, Pacing, ReplayMode, ReplayState, Wish};
use redrive_core::time::Timestamp;
use redrive_store::contract::{ClaimAutoReplay, DeadFilter, Lane, ListReplays, ReplayView, Selection};
use tokio::task::JoinSet;

use super::Until;
use super::context::Context;
use super::fetch::Fetcher;
use super::holds::Patience;
use crate::error::Error;
use crate::events::Happening;
use crate::pipeline::Pipeline;
use crate::replays::NewReplay;
use crate::replays::drive::{self, Known, Stepped};

/// How long to wait at most before looking again, while a replay is open.
const LOOK_ANYWAY: Duration = Duration::from_secs(1);

/// How often to ask for a turn that another process had.
const ASK_AGAIN: Duration = Duration::from_secs(30);

/// How long a replay that is being prepared must have stood still before a worker goes on with it.
const TAKE_OVER_AFTER: Duration = Duration::from_secs(2);

/// Open replays that are looked at.
pub(super) const OPEN_MAX: u32 = 1_000;

/// Drives all replays of its pipelines, or one.
pub(super) struct Driver {
    pub(super) context: Arc<Context>,
    pub(super) pipelines: Vec<Pipeline>,
    only: Option<ReplayId>,
    /// Whether what is sent is worked on elsewhere.
    sends_only: bool,
    patience: Patience,
    lanes: JoinSet<(ReplayId, PipelineName)>,
    busy: Vec<(ReplayId, PipelineName)>,
    /// The versions of replays that are being prepared, and when they were first seen.
    preparing: HashMap<ReplayId, (u64, Instant)>,
    /// Replays that wait for pipelines which this worker does not know.
    waiting: HashSet<ReplayId>,
    /// When each policy is to be looked at again.
    turns: HashMap<(PipelineName, usize), Timestamp>,
    /// Set while there may be letters of a target that is back.
    recovering: bool,
}

/// What a look found.
struct Found {
    /// When to look again, if nothing changes.
    again: Option<Timestamp>,
    /// Whether any replay is to be worked on.
    open: bool,
}

impl Driver {
    pub(super) fn new(
        context: Arc<Context>,
        pipelines: Vec<Pipeline>,
        only: Option<ReplayId>,
        patience: Patience,
    ) -> Self {
        Self {
            context,
            pipelines,
            only,
            sends_only: false,
            patience,
            lanes: JoinSet::new(),
            busy: Vec::new(),
            preparing: HashMap::new(),
            waiting: HashSet::new(),
            turns: HashMap::new(),
            recovering: true,
        }
    }

    /// The same, where what is sent may be worked on elsewhere.
    pub(super) fn sending_only(self, sends_only: bool) -> Self {
        Self { sends_only, ..self }
    }

    pub(super) async fn run(mut self, until: Until) {
        if let Err(error) = self.drive(&until).await {
            self.context.fail(error);
        }
        // Lanes stop with the worker, or have nothing left to do.
        while self.lanes.join_next().await.is_some() {}
    }

    async fn drive(&mut self, until: &Until) -> Result<(), Error> {
        let mut changed = self.context.replays_changed.subscribe();
        let stop = self.context.stop.clone();
        loop {
            let found = self.look().await?;
            let over = !found.open && self.lanes.is_empty();
            if over && (self.only.is_some() || until.may_end()) {
                return Ok(());
            }
            let again = async {
                let clock = &self.context.redrive.clock;
                match found.again {
                    Some(at) => drop(tokio::time::timeout(LOOK_ANYWAY, clock.sleep_until(at)).await),
                    None if found.open => tokio::time::sleep(LOOK_ANYWAY).await,
                    // Who opens one tells of it. That there is nothing left to wait for is seen without asking anybody.
                    None => {
                        let since = Instant::now();
                        tokio::time::sleep(LOOK_ANYWAY).await;
                        while since.elapsed() < self.context.look_every() && !until.may_end() {
                            tokio::time::sleep(LOOK_ANYWAY).await;
                        }
                    }
                }
            };
            tokio::select! {
                () = stop.cancelled() => return Ok(()),
                _ = changed.changed() => {}
                Some(ended) = self.lanes.join_next() => {
                    let ended = ended.map_err(|panic| Error::Internal(format!("work on a replay ended: {panic}")))?;
                    self.busy.retain(|lane| *lane != ended);
                }
                () = again => {}
            }
        }
    }

    async fn look(&mut self) -> Result<Found, Error> {
        if self.only.is_none() {
            self.begin_automatic().await?;
            if self.context.redrive.breakers.take_closed() || self.recovering {
                self.recovering = self.replay_recovered().await?;
            }
        }
        let mut found = Found { again: None, open: false };
        for replay in self.open_replays().await? {
            if self.is_left_to_its_maker(&replay) {
                found.open = true;
                continue;
            }
            let replay = self.pin_to_what_there_is(replay).await?;
            let Some(replay) = self.advance(replay, &mut found).await? else { continue };
            if self.sends_only {
                found.open = true;
            } else if replay.state == ReplayState::Running {
                found.open |= self.work_on(&replay).await?;
            }
        }
        Ok(found)
    }

    /// A replay that policy began is pinned anew when no worker has the version that it was planned with any more: nobody is there to
    /// resume it.
    async fn pin_to_what_there_is(&self, replay: ReplayView) -> Result<ReplayView, Error> {
        let concerns = |pipeline: &&Pipeline| replay.pipelines.contains(&pipeline.name);
        let mine: Vec<_> = self.pipelines.iter().filter(concerns).collect();
        if !replay.automatic || mine.iter().all(|pipeline| pipeline.fits(&replay.pins)) {
            return Ok(replay);
        }
        let awaited = self.context.redrive.awaited_by(&replay).await?;
        let mut pins = replay.pins.clone();
        for pipeline in mine.into_iter().filter(|pipeline| awaited.contains_key(&pipeline.name)) {
            match pipeline.definition() {
                Some(version) => pins.insert(pipeline.name.clone(), version.clone()),
                None => pins.remove(&pipeline.name),
            };
        }
        if pins == replay.pins {
            return Ok(replay);
        }
        tracing::info!(replay = %replay.id, "an automatic replay goes on with the rules that there are now");
        self.context.redrive.pin_replay(replay, &pins, &Actor::new("policy", Via::Automatic)).await
    }

    /// Whether the letters of a replay are being chosen by who made it: only where that has come to a halt does a worker go on.
    fn is_left_to_its_maker(&mut self, replay: &ReplayView) -> bool {
        if replay.state != ReplayState::Preparing || self.only.is_some() {
            self.preparing.remove(&replay.id);
            return false;
        }
        let seen = self.preparing.entry(replay.id).or_insert((replay.version, Instant::now()));
        if seen.0 != replay.version {
            *seen = (replay.version, Instant::now());
        }
        seen.1.elapsed() < TAKE_OVER_AFTER
    }

    /// Whether a pipeline was tried often enough.
    fn is_given_up(&self, pipeline: &PipelineName) -> bool {
        self.context.holds.given_up(pipeline, &self.patience).is_some()
    }

    async fn open_replays(&self) -> Result<Vec<ReplayView>, Error> {
        let store = &self.context.redrive.store;
        if let Some(id) = self.only {
            return Ok(store.get_replay(id).await?.into_iter().collect());
        }
        let open = store.list_replays(ListReplays::open(OPEN_MAX)).await?.items;
        let mine = |name: &PipelineName| self.pipelines.iter().any(|pipeline| pipeline.name == *name);
        let concerns =
            |replay: &ReplayView| replay.state == ReplayState::Preparing || replay.pipelines.iter().any(mine);
        Ok(open.into_iter().filter(concerns).collect())
    }

    /// Takes steps, as long as there are some to take; gives the replay as it is then, if it is still there.
    async fn advance(&self, mut replay: ReplayView, found: &mut Found) -> Result<Option<ReplayView>, Error> {
        let redrive = &self.context.redrive;
        let known = Known { pipelines: &self.pipelines, alone: false };
        while !self.context.stop.is_cancelled() {
            match drive::step(redrive, known, &replay).await? {
                Stepped::Wait(None) => break,
                Stepped::Wait(Some(at)) => {
                    found.again = Some(found.again.map_or(at, |again| again.min(at)));
                    break;
                }
                Stepped::On(told) => {
                    told.into_iter().for_each(|what| self.context.tell(what));
                    let Some(new) = redrive.store.get_replay(replay.id).await? else { return Ok(None) };
                    replay = new;
                }
            }
        }
        Ok(Some(replay))
    }

    /// Has somebody work on the letters of a replay, for each of its pipelines that is ours and has some left; says whether any
    /// has. What is left of others is told once: whoever knows them goes on.
    async fn work_on(&mut self, replay: &ReplayView) -> Result<bool, Error> {
        let left = match replay.pipelines.len() {
            0 | 1 => replay.pipelines.clone(),
            _ => self.context.redrive.store.left_in_replay(replay.id).await?,
        };
        let ours = |pipeline: &&Pipeline| left.contains(&pipeline.name) && pipeline.fits(&replay.pins);
        let able = |pipeline: &&Pipeline| !self.is_given_up(&pipeline.name);
        let ours: Vec<Pipeline> = self.pipelines.iter().filter(ours).filter(able).cloned().collect();
        if ours.is_empty() && !left.is_empty() && self.waiting.insert(replay.id) {
            let names: Vec<_> = left.iter().map(PipelineName::as_str).collect();
            let pipelines = names.join(", ");
            tracing::info!(replay = %replay.id, pipelines, "what is left of a replay waits for workers that know it");
        }
        let any = !ours.is_empty();
        for pipeline in ours {
            let lane = (replay.id, pipeline.name.clone());
            if !self.busy.contains(&lane) {
                self.busy.push(lane.clone());
                let fetcher = Fetcher::new(Arc::clone(&self.context), pipeline, Lane::Replay(replay.id), self.patience);
                self.lanes.spawn(async move {
                    fetcher.run(Until::Drained).await;
                    lane
                });
            }
        }
        Ok(any)
    }

    /// Begins the replays that policies ask for, when it is their time.
    async fn begin_automatic(&mut self) -> Result<(), Error> {
        let now = self.context.now();
        for pipeline in self.pipelines.clone() {
            for (n, policy) in pipeline.policy.auto_replays.iter().enumerate() {
                let turn = (pipeline.name.clone(), n);
                // A turn further ahead than it can be was noted while the clock was ahead.
                if self.turns.get(&turn).is_some_and(|due| now < *due && *due <= now + policy.every) {
                    continue;
                }
                let claim = ClaimAutoReplay {
                    pipeline: pipeline.name.clone(),
                    turn: policy.reason.map_or("", Reason::as_str).to_owned(),
                    every: policy.every,
                    now,
                };
                let store = &self.context.redrive.store;
                let mine = store.claim_auto_replay(claim).await?;
                self.turns.insert(turn, now + if mine { policy.every } else { policy.every.min(ASK_AGAIN) });
                if mine {
                    self.begin(&pipeline, policy, now).await?;
                }
            }
        }
        Ok(())
    }

    async fn begin(&self, pipeline: &Pipeline, policy: &AutoReplay, now: Timestamp) -> Result<(), Error> {
        let filter = DeadFilter {
            pipeline: Some(pipeline.name.clone()),
            reason: policy.reason,
            gate: Some(Gate::Auto),
            until: Some(now - policy.delay),
            ..DeadFilter::default()
        };
        let limits = Automatic { times_max: policy.times_max, letters_max: policy.letters_max };
        let what = policy.reason.map_or_else(|| "all that may be".to_owned(), |reason| reason.to_string());
        let new = NewReplay {
            name: format!("automatic: {what}"),
            by: Actor::new("policy", Via::Automatic),
            selection: Selection { filter, ids: Vec::new() },
            wish: Wish { automatic: Some(limits), ..Wish::of(ReplayMode::Suited) },
            force_why: None,
            // Breakers and the cap on attempts hold it back; nobody is there to resume it.
            pacing: Pacing { ramp: Vec::new(), refail_max: 1.0, per_second: None },
            edits: Input::new(),
            pins: crate::replays::pins(std::slice::from_ref(pipeline)),
        };
        // A turn in which there is nothing to do leaves nothing behind.
        if self.context.redrive.plan_replay(&new.selection, &new.wish).await?.included == 0 {
            return Ok(());
        }
        self.open_replay(&pipeline.name, new).await
    }

    /// Opens a replay of letters of one pipeline that nobody asked for.
    pub(super) async fn open_replay(&self, pipeline: &PipelineName, new: NewReplay) -> Result<(), Error> {
        let redrive = &self.context.redrive;
        let id = ReplayId::new(self.context.now(), redrive.chance.bits());
        let opened = redrive.open_replay(id, new, BTreeSet::from([pipeline.clone()])).await?;
        if let Some(replay) = opened {
            let (pipeline, letters) = (pipeline.clone(), replay.progress.total);
            self.context.tell(Happening::ReplayBegun { pipeline, replay: replay.id, letters });
        }
        Ok(())
    }
}
