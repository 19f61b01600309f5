//! What can be asked of a replay that is there.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use redrive_core::actors::Actor;
use redrive_core::definitions::{Pins, awaited};
use redrive_core::ids::{IdEnding, InvalidName, PipelineName, ReplayId};
use redrive_core::replays::{NextReplay, Pacing, ReplayChange, ReplayState, changed};
use redrive_core::workers::Runs;
use redrive_store::contract::{ListReplays, ReplayView, SetReplay};
use serde::{Deserialize, Serialize};

use super::drive::{self, Known, Stepped};
use super::error::ReplayError;
use crate::engine::Redrive;
use crate::error::Error;
use crate::pipeline::Pipeline;

/// Replays that are looked at at once, to find the one that is meant.
const OPEN_MAX: u32 = 1_000;

/// Asks for the replays that have not ended.
pub const OPEN_REPLAYS: ListReplays = ListReplays::open(OPEN_MAX);

/// Which replay is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplayRef {
    /// The one with this id.
    Id(ReplayId),
    /// The one whose id ends so.
    Ending(IdEnding),
    /// The newest; where something is to be done to it, the newest to which that can be done.
    Last,
}

impl fmt::Display for ReplayRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Id(id) => id.fmt(f),
            Self::Ending(ending) => ending.fmt(f),
            Self::Last => f.write_str("last"),
        }
    }
}

/// What an open replay waits for, and what has come since.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplayWaits {
    /// Versions that no worker that is there has; see [`Redrive::awaited_by`].
    pub awaited: Pins,
    /// Pipelines that no worker knows; see [`Redrive::unattended`].
    pub unattended: BTreeSet<PipelineName>,
    /// Pipelines with letters that have not come to their end.
    pub left: BTreeSet<PipelineName>,
    /// Letters that its choice would find now and that died after it was made.
    pub joined: u64,
}

impl FromStr for ReplayRef {
    type Err = InvalidName;

    fn from_str(text: &str) -> Result<Self, InvalidName> {
        match (text, IdEnding::new(text)) {
            ("last", _) => Ok(Self::Last),
            (_, Some(ending)) => Ok(Self::Ending(ending)),
            (text, None) => text.parse().map(Self::Id),
        }
    }
}

/// The replay that is meant by who wants to change one: that which was found, or the newest of those that are open, if it is in a state
/// that fits.
pub fn meant(
    which: ReplayRef,
    found: ReplayView,
    open: Vec<ReplayView>,
    (change, fits): (ReplayChange, impl Fn(ReplayState) -> bool),
) -> Result<ReplayView, ReplayError> {
    match which {
        ReplayRef::Last => {
            let none = ReplayError::NoneFor { change, last: found.id, state: found.state };
            open.into_iter().find(|replay| fits(replay.state)).ok_or(none)
        }
        _ if fits(found.state) => Ok(found),
        _ => Err(ReplayError::InState { id: found.id, state: found.state }),
    }
}

impl Redrive {
    /// The replay that is meant.
    pub async fn find_replay(&self, which: ReplayRef) -> Result<ReplayView, Error> {
        match which {
            ReplayRef::Ending(ending) => self.find_replay_by(ending).await,
            ReplayRef::Id(id) => Ok(self.store.get_replay(id).await?.ok_or(ReplayError::Unknown(id))?),
            ReplayRef::Last => {
                let newest = ListReplays::newest(1);
                Ok(self.store.list_replays(newest).await?.items.pop().ok_or(ReplayError::None)?)
            }
        }
    }

    /// The replay whose id ends so, if it is the only one.
    async fn find_replay_by(&self, ending: IdEnding) -> Result<ReplayView, Error> {
        let (mut found, mut cursor) = (None, None);
        loop {
            let page = self.store.list_replays(ListReplays { cursor, ..ListReplays::newest(OPEN_MAX) }).await?;
            for replay in page.items.into_iter().filter(|replay| ending.ends(replay.id.as_bytes())) {
                if found.replace(replay).is_some() {
                    return Err(ReplayError::Ambiguous(ending).into());
                }
            }
            cursor = page.next;
            if cursor.is_none() {
                return Ok(found.ok_or(ReplayError::NoEnding(ending))?);
            }
        }
    }

    /// The replay that is meant, where it must be in one of some states, so that it can be changed so.
    async fn find_replay_that(
        &self,
        which: ReplayRef,
        change: ReplayChange,
        fits: impl Fn(ReplayState) -> bool,
    ) -> Result<ReplayView, Error> {
        let replay = self.find_replay(which).await?;
        let open = match which {
            ReplayRef::Last => self.store.list_replays(OPEN_REPLAYS).await?.items,
            _ => Vec::new(),
        };
        Ok(meant(which, replay, open, (change, fits))?)
    }

    async fn find_replay_for(&self, which: ReplayRef, change: ReplayChange) -> Result<ReplayView, Error> {
        self.find_replay_that(which, change, |state| change.applies_to(state)).await
    }

    /// Sends nothing more of a replay until it is resumed.
    pub async fn pause_replay(&self, which: ReplayRef, by: &Actor) -> Result<ReplayView, Error> {
        self.change_replay(which, ReplayChange::Pause, by).await
    }

    /// Sends nothing more of a replay. What nobody has begun is dead again as it was, the rest comes to its end. Of `pipelines`
    /// it is known how often their letters may be tried.
    pub async fn cancel_replay(
        &self,
        which: ReplayRef,
        by: &Actor,
        pipelines: &[Pipeline],
    ) -> Result<ReplayView, Error> {
        let mut replay = self.change_replay(which, ReplayChange::Cancel, by).await?;
        let known = Known { pipelines, alone: true };
        while replay.state == ReplayState::Cancelling {
            if let Stepped::Wait(_) = drive::step(self, known, &replay).await? {
                break;
            }
            replay = self.find_replay(ReplayRef::Id(replay.id)).await?;
        }
        Ok(replay)
    }

    /// The replay that is meant by who wants to pause one: the newest that can be, unless it is named.
    pub async fn find_pausable(&self, which: ReplayRef) -> Result<ReplayView, Error> {
        self.find_replay_for(which, ReplayChange::Pause).await
    }

    /// The replay that is meant by who wants to cancel one: the newest that can be, unless it is named.
    pub async fn find_cancellable(&self, which: ReplayRef) -> Result<ReplayView, Error> {
        self.find_replay_for(which, ReplayChange::Cancel).await
    }

    /// The replay that is meant by who wants to resume one: the newest that has not ended, unless it is named.
    pub async fn find_resumable(&self, which: ReplayRef) -> Result<ReplayView, Error> {
        self.find_replay_that(which, ReplayChange::Resume, |state| !state.is_over()).await
    }

    /// Lets a replay go on: one that was paused, or whose process was killed. One that has ended is refused. It is pinned anew, to
    /// the versions that `pipelines` have; others keep theirs. Says what it was pinned to before, if that is something else.
    pub async fn resume_replay(
        &self,
        which: ReplayRef,
        by: &Actor,
        pipelines: &[Pipeline],
    ) -> Result<(ReplayView, Pins), Error> {
        let replay = self.find_resumable(which).await?;
        let mut pins = replay.pins.clone();
        let named = super::pins(pipelines).into_iter().filter(|(name, _)| replay.pipelines.contains(name));
        pins.extend(named);
        let before =
            replay.pins.clone().into_iter().filter(|(name, version)| pins.get(name) != Some(version)).collect();
        let id = ReplayRef::Id(replay.id);
        let replay = match replay.state {
            ReplayState::Paused => {
                let others = (pins != replay.pins).then_some(&pins);
                self.change_replay_to(id, ReplayChange::Resume, by, others).await?
            }
            _ if pins != replay.pins => self.pin_replay(replay, &pins, by).await?,
            _ => replay,
        };
        Ok((replay, before))
    }

    /// Pins a replay that goes on to other versions.
    pub(crate) async fn pin_replay(
        &self,
        mut replay: ReplayView,
        pins: &Pins,
        by: &Actor,
    ) -> Result<ReplayView, Error> {
        loop {
            let (id, was, now) = (replay.id, replay.version, self.now());
            let next = NextReplay::of(replay.state, replay.why.clone(), &replay.progress).pinned(pins.clone());
            let heard = self.store.set_replay(SetReplay { id, was, next, excluded: None, by: by.clone(), now }).await?;
            replay = self.find_replay(ReplayRef::Id(id)).await?;
            if heard || replay.state.is_over() {
                return Ok(replay);
            }
        }
    }

    /// The replay that is meant by who wants another rate: the newest that has not ended, unless it is named.
    pub async fn find_paceable(&self, which: ReplayRef) -> Result<ReplayView, Error> {
        self.find_replay_for(which, ReplayChange::Rate).await
    }

    /// Has a replay go at another rate from now on: so many letters a second, or as fast as they are worked on.
    /// If a rate was `seen`, only if that is still the one.
    pub async fn rate_replay(
        &self,
        which: ReplayRef,
        per_second: Option<f64>,
        by: &Actor,
        seen: Option<Option<f64>>,
    ) -> Result<ReplayView, Error> {
        if let Some(rate) = per_second.filter(|rate| !(rate.is_finite() && *rate > 0.0)) {
            return Err(ReplayError::NoRate(rate.to_string()).into());
        }
        let mut replay = self.find_paceable(which).await?;
        loop {
            if seen.is_some_and(|seen| seen != replay.pacing.per_second) {
                return Err(ReplayError::SeenOtherwise(replay.id).into());
            }
            if replay.pacing.per_second == per_second {
                return Ok(replay);
            }
            let (id, was, now) = (replay.id, replay.version, self.now());
            let pacing = Pacing { per_second, ..replay.pacing.clone() };
            let next = NextReplay::of(replay.state, replay.why.clone(), &replay.progress).paced(pacing);
            let heard = self.store.set_replay(SetReplay { id, was, next, excluded: None, by: by.clone(), now }).await?;
            // If it moved meanwhile, it is looked at again; one that ended meanwhile is refused.
            let which = ReplayRef::Id(id);
            replay = if heard { self.find_replay(which).await? } else { self.find_paceable(which).await? };
            if heard {
                return Ok(replay);
            }
        }
    }

    /// The versions that a replay waits for because no worker that is there has them; none of pipelines whose letters are through,
    /// and none at all if it does not go on anyway.
    pub async fn awaited_by(&self, replay: &ReplayView) -> Result<Pins, Error> {
        if replay.state != ReplayState::Running || replay.pins.is_empty() {
            return Ok(Pins::new());
        }
        let left = self.store.left_in_replay(replay.id).await?;
        let pins: Pins = replay.pins.clone().into_iter().filter(|(name, _)| left.contains(name)).collect();
        Ok(awaited(&pins, self.runs_of_replay(replay.id).await?.iter()))
    }

    /// The pipelines with letters left that no worker takes; all of them if there is no worker. None if the replay has ended.
    pub async fn unattended(&self, replay: &ReplayView) -> Result<BTreeSet<PipelineName>, Error> {
        if replay.state.is_over() {
            return Ok(BTreeSet::new());
        }
        let (left, runs) = (self.store.left_in_replay(replay.id).await?, self.runs_of_replay(replay.id).await?);
        Ok(left.into_iter().filter(|name| !runs.iter().any(|runs| runs.pipeline == *name)).collect())
    }

    /// What a replay waits for, and what has come since it was made.
    pub async fn replay_waits(&self, replay: &ReplayView) -> Result<ReplayWaits, Error> {
        Ok(ReplayWaits {
            awaited: self.awaited_by(replay).await?,
            unattended: self.unattended(replay).await?,
            left: self.store.left_in_replay(replay.id).await?,
            joined: self.store.joined_since(replay.id).await?,
        })
    }

    /// Returns what present workers run, as far as they take letters of a replay.
    async fn runs_of_replay(&self, id: ReplayId) -> Result<Vec<Runs>, Error> {
        let (workers, now) = (self.store.list_workers().await?, self.now());
        let runs = workers.into_iter().filter(|worker| worker.is_at_work(now)).flat_map(|worker| worker.runs);
        Ok(runs.filter(|runs| runs.replays.takes(id)).collect())
    }

    async fn change_replay(&self, which: ReplayRef, change: ReplayChange, by: &Actor) -> Result<ReplayView, Error> {
        self.change_replay_to(which, change, by, None).await
    }

    /// Changes a replay and gives it as it is then. If it moved meanwhile, it is looked at again.
    async fn change_replay_to(
        &self,
        which: ReplayRef,
        change: ReplayChange,
        by: &Actor,
        pins: Option<&Pins>,
    ) -> Result<ReplayView, Error> {
        let mut replay = self.find_replay_for(which, change).await?;
        loop {
            let (id, was, now) = (replay.id, replay.version, self.now());
            let next = changed(change, replay.state, &replay.progress, &by.name)
                .ok_or(ReplayError::InState { id, state: replay.state })?;
            let next = NextReplay { pins: pins.cloned(), ..next };
            let set = SetReplay { id, was, next, excluded: None, by: by.clone(), now };
            let heard = self.store.set_replay(set).await?;
            replay = self.find_replay(ReplayRef::Id(id)).await?;
            if heard {
                return Ok(replay);
            }
        }
    }
}
