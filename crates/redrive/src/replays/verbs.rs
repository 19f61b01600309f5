//! What can be asked of a replay that is there.

use std::str::FromStr;

use redrive_core::actors::Actor;
use redrive_core::ids::{InvalidName, ReplayId};
use redrive_core::replays::ReplayState;
use redrive_store::contract::{ChangeReplay, ListReplays, ReplayChange, ReplayView};

use super::error::ReplayError;
use crate::engine::Redrive;
use crate::error::Error;

/// Which replay is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplayRef {
    /// The one with this id.
    Id(ReplayId),
    /// The newest.
    Last,
}

impl FromStr for ReplayRef {
    type Err = InvalidName;

    fn from_str(text: &str) -> Result<Self, InvalidName> {
        if text == "last" { Ok(Self::Last) } else { text.parse().map(Self::Id) }
    }
}

impl Redrive {
    /// The replay that is meant.
    pub async fn find_replay(&self, which: ReplayRef) -> Result<ReplayView, Error> {
        match which {
            ReplayRef::Id(id) => Ok(self.store.get_replay(id).await?.ok_or(ReplayError::Unknown(id))?),
            ReplayRef::Last => {
                let newest = ListReplays { open_only: false, limit: 1, cursor: None };
                Ok(self.store.list_replays(newest).await?.items.pop().ok_or(ReplayError::None)?)
            }
        }
    }

    /// Sends nothing more of a replay until it is resumed.
    pub async fn pause_replay(&self, which: ReplayRef, by: &Actor) -> Result<ReplayView, Error> {
        self.change_replay(which, ReplayChange::Pause, by).await
    }

    /// Sends nothing more of a replay. What nobody has begun is dead again as it was, the rest comes to its end.
    pub async fn cancel_replay(&self, which: ReplayRef, by: &Actor) -> Result<ReplayView, Error> {
        self.change_replay(which, ReplayChange::Cancel, by).await
    }

    /// Lets a replay go on: one that was paused, or whose process was killed. One that has ended is refused.
    pub async fn resume_replay(&self, which: ReplayRef, by: &Actor) -> Result<ReplayView, Error> {
        let replay = self.find_replay(which).await?;
        let ended = ReplayError::InState { id: replay.id, state: replay.state };
        match replay.state {
            ReplayState::Done => Err(ended.into()),
            ReplayState::Cancelled if !replay.is_open() => Err(ended.into()),
            ReplayState::Paused => {
                let change = ReplayChange::Resume;
                let params = ChangeReplay { id: replay.id, change, actor: by.name.clone(), now: self.now() };
                self.store.change_replay(params).await?;
                self.find_replay(ReplayRef::Id(replay.id)).await
            }
            ReplayState::Running | ReplayState::Cancelled => Ok(replay),
        }
    }

    /// Changes a replay and gives it as it is then.
    async fn change_replay(&self, which: ReplayRef, change: ReplayChange, by: &Actor) -> Result<ReplayView, Error> {
        let replay = self.find_replay(which).await?;
        let params = ChangeReplay { id: replay.id, change, actor: by.name.clone(), now: self.now() };
        match self.store.change_replay(params).await? {
            true => self.find_replay(ReplayRef::Id(replay.id)).await,
            false => Err(ReplayError::InState { id: replay.id, state: replay.state }.into()),
        }
    }
}
