//! Replays: looking at them, and changing those that are there.

use std::collections::BTreeSet;

use redrive::config::Setting;
use redrive::contract::{ListReplayLetters, ListReplays, Page, ReplayLetter, ReplayView};
use redrive::replays::{ReplayRef, ReplayWaits};
use redrive::{Error, Pipeline};
use redrive_core::actors::Actor;
use redrive_core::definitions::Pins;
use redrive_core::ids::{PipelineName, ReplayId};
use serde_json::json;

use crate::ask::LONG;
use crate::desk::Desk;
use crate::page::{fields, page};

impl Desk {
    /// See [`redrive::Redrive::find_replay`].
    pub async fn find_replay(&self, which: ReplayRef) -> Result<ReplayView, Error> {
        match self {
            Self::Here(redrive) => redrive.find_replay(which).await,
            Self::There(server) => server.get(&["replays", &which.to_string()]).read().await,
        }
    }

    /// A page of replays, newest first.
    pub async fn list_replays(&self, params: ListReplays) -> Result<Page<ReplayView>, Error> {
        let server = match self {
            Self::Here(redrive) => return Ok(redrive.store().list_replays(params).await?),
            Self::There(server) => server,
        };
        let ListReplays { open_only, limit, cursor } = params;
        page(limit, cursor, async |limit, cursor| {
            let asked = fields(json!({ "open": open_only, "limit": limit, "cursor": cursor }));
            server.get(&["replays"]).query(asked).read().await
        })
        .await
    }

    /// A page of the letters of a replay.
    pub async fn list_replay_letters(&self, params: ListReplayLetters) -> Result<Page<ReplayLetter>, Error> {
        let server = match self {
            Self::Here(redrive) => return Ok(redrive.store().list_replay_letters(params).await?),
            Self::There(server) => server,
        };
        let ListReplayLetters { id, state, limit, cursor } = params;
        page(limit, cursor, async |limit, cursor| {
            let asked = fields(json!({ "state": state, "limit": limit, "cursor": cursor }));
            server.get(&["replays", &id.to_string(), "letters"]).query(asked).read().await
        })
        .await
    }

    async fn waits(&self, replay: ReplayId) -> Result<ReplayWaits, Error> {
        match self {
            Self::Here(redrive) => redrive.replay_waits(&redrive.find_replay(ReplayRef::Id(replay)).await?).await,
            Self::There(server) => server.get(&["replays", &replay.to_string(), "waits"]).read().await,
        }
    }

    /// See [`redrive::Redrive::awaited_by`].
    pub async fn awaited_by(&self, replay: &ReplayView) -> Result<Pins, Error> {
        match self {
            Self::Here(redrive) => redrive.awaited_by(replay).await,
            Self::There(_) => Ok(self.waits(replay.id).await?.awaited),
        }
    }

    /// See [`redrive::Redrive::unattended`].
    pub async fn unattended(&self, replay: &ReplayView) -> Result<BTreeSet<PipelineName>, Error> {
        match self {
            Self::Here(redrive) => redrive.unattended(replay).await,
            Self::There(_) => Ok(self.waits(replay.id).await?.unattended),
        }
    }

    /// The pipelines of a replay that have letters which have not come to their end.
    pub async fn left_in_replay(&self, id: ReplayId) -> Result<BTreeSet<PipelineName>, Error> {
        match self {
            Self::Here(redrive) => Ok(redrive.store().left_in_replay(id).await?),
            Self::There(_) => Ok(self.waits(id).await?.left),
        }
    }

    /// Letters that a replay's choice would find now and that died after it was made.
    pub async fn joined_since(&self, id: ReplayId) -> Result<u64, Error> {
        match self {
            Self::Here(redrive) => Ok(redrive.store().joined_since(id).await?),
            Self::There(_) => Ok(self.waits(id).await?.joined),
        }
    }

    /// See [`redrive::Redrive::pause_replay`]. A server knows by itself who it is by.
    pub async fn pause_replay(&self, which: ReplayRef, by: &Actor) -> Result<ReplayView, Error> {
        match self {
            Self::Here(redrive) => redrive.pause_replay(which, by).await,
            Self::There(server) => server.post(&["replays", &which.to_string(), "pause"]).read().await,
        }
    }

    /// Cancels a replay; see [`redrive::Redrive::cancel_replay`]. Who cancels one need not be able to work on it.
    pub async fn cancel_replay(&self, setting: &Setting, which: ReplayRef, by: &Actor) -> Result<ReplayView, Error> {
        let redrive = match self {
            Self::Here(redrive) => redrive,
            Self::There(server) => {
                let ask = server.post(&["replays", &which.to_string(), "cancel"]).within(Some(LONG));
                return ask.read().await;
            }
        };
        let found = redrive.find_cancellable(which).await?;
        let known = found.pipelines.into_iter().filter_map(|name| setting.pipeline(name, &Default::default()).ok());
        let known: Vec<Pipeline> = known.map(|(pipeline, _)| pipeline).collect();
        redrive.cancel_replay(ReplayRef::Id(found.id), by, &known).await
    }
}
