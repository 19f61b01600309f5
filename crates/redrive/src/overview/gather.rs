//! What an overview is made of.

use redrive_core::alerts::{AlertKey, Condition};
use redrive_core::causes::CauseState;
use redrive_core::ids::PipelineName;
use redrive_core::replays::paused_itself;
use redrive_store::contract::{CauseView, ListReplays, ReplayView};

use super::{Look, SelfPaused};
use crate::causes::CausesAsked;
use crate::config::Setting;
use crate::engine::Redrive;
use crate::error::Error;
use crate::replays::OPEN_REPLAYS;

/// Open replays that are read.
const REPLAYS_MAX: u32 = 50;

impl Redrive {
    /// Looks at what is to be looked at first, of one pipeline or of all that somebody may see. What belongs to none of them is for who
    /// sees all.
    pub fn look<'a, C>(&'a self, setting: &'a Setting, covers: C, sees_all: bool) -> Look<'a, C>
    where
        C: Fn(&PipelineName) -> bool,
    {
        Look::new(self, setting, covers, sees_all)
    }

    /// The causes that need somebody, those with the most dead letters first: so many of them, and whether there are more.
    pub(super) async fn needy_causes(
        &self,
        covers: &impl Fn(&PipelineName) -> bool,
        states: &[CauseState],
        limit: u32,
    ) -> Result<(Vec<CauseView>, bool), Error> {
        let asked = CausesAsked { states: states.to_vec(), limit, ..CausesAsked::default() };
        self.list_causes_of(covers, asked, true).await
    }

    /// Replays that paused themselves and that nobody has seen to: neither resumed nor cancelled, nor acknowledged by their alert.
    pub async fn self_paused_replays(&self, covers: impl Fn(&PipelineName) -> bool) -> Result<Vec<SelfPaused>, Error> {
        let mut replays = self.store.list_replays(OPEN_REPLAYS).await?.items;
        replays.retain(|replay| replay.pipelines.iter().all(&covers));
        replays.retain(|replay| paused_itself(replay.state, replay.why.as_deref()));
        if replays.is_empty() {
            return Ok(Vec::new());
        }
        let alerts = self.store.list_alerts().await?;
        let found = |replay: ReplayView| {
            let key = AlertKey::new(Condition::Replay, None, Some(&replay.id.to_string()));
            let alert = alerts.iter().find(|view| view.alert.key == key && view.alert.is_firing());
            match alert {
                Some(view) if view.care.acknowledged_of(&view.alert).is_some() => None,
                alert => Some(SelfPaused { alert: alert.map(|view| view.alert.key.clone()), replay }),
            }
        };
        Ok(replays.into_iter().filter_map(found).collect())
    }

    pub(super) async fn open_replays(&self, covers: &impl Fn(&PipelineName) -> bool) -> Result<Vec<ReplayView>, Error> {
        let open = ListReplays::open(REPLAYS_MAX);
        let mut replays = self.store.list_replays(open).await?.items;
        replays.retain(|replay| replay.pipelines.iter().all(covers));
        Ok(replays)
    }
}
