//! What stands in the head of every page, and what an overview is made of.

use redrive_core::alerts::{AlertKey, Condition};
use redrive_core::causes::{CauseSort, CauseState};
use redrive_core::ids::PipelineName;
use redrive_core::replays::paused_itself;
use redrive_store::contract::{CauseView, ListCauses, ListReplays, ReplayView};

use super::{Glance, Look, SelfPaused};
use crate::config::Setting;
use crate::engine::Redrive;
use crate::error::Error;
use crate::replays::OPEN_REPLAYS;

/// Causes that are counted for the head of a page.
pub(super) const CAUSES_MAX: u32 = 100;

/// Open replays that are read.
const REPLAYS_MAX: u32 = 50;

/// The states in which a cause may need somebody.
const NEEDY: [CauseState; 4] = [CauseState::New, CauseState::Ongoing, CauseState::Escalating, CauseState::Regressed];

impl Redrive {
    /// What stands in the head of every page, of the pipelines that somebody may see. What belongs to none of them is for who sees all.
    pub async fn glance(&self, covers: impl Fn(&PipelineName) -> bool, sees_all: bool) -> Result<Glance, Error> {
        let mut ledgers = self.store.ledgers().await?;
        ledgers.retain(|name, _| covers(name));
        let needy = self.needy_causes(None, &covers, (CauseSort::Dead, CAUSES_MAX)).await?;
        let alerts = self.store.list_alerts().await?;
        let is_theirs = |name: Option<&PipelineName>| name.map_or(sees_all, &covers);
        let (pauses, now) = (self.store.pauses().await?, self.now());
        Ok(Glance {
            causes: needy.len(),
            more_causes: needy.len() >= CAUSES_MAX as usize,
            replays: self.open_replays(&covers).await?.len(),
            alerts: alerts.iter().filter(|v| v.needs_somebody(now) && is_theirs(v.alert.pipeline.as_ref())).count(),
            unbalanced: ledgers.iter().filter(|(_, l)| !l.balances()).map(|(name, _)| name.clone()).collect(),
            paused: pauses.into_iter().filter(|(name, _)| covers(name)).collect(),
            pipelines: ledgers.into_keys().collect(),
        })
    }

    /// Looks at what is to be looked at first, of one pipeline or of all that somebody may see. What belongs to none of them is for who
    /// sees all.
    pub fn look<'a, C>(&'a self, setting: &'a Setting, covers: C, sees_all: bool) -> Look<'a, C>
    where
        C: Fn(&PipelineName) -> bool,
    {
        Look::new(self, setting, covers, sees_all)
    }

    /// Causes that need somebody, in their order, of so many that may.
    pub async fn needy_causes(
        &self,
        pipeline: Option<&PipelineName>,
        covers: &impl Fn(&PipelineName) -> bool,
        (sort, limit): (CauseSort, u32),
    ) -> Result<Vec<CauseView>, Error> {
        let params = ListCauses {
            ids: Vec::new(),
            pipeline: pipeline.cloned(),
            states: NEEDY.to_vec(),
            owner: None,
            with_empty: false,
            sort,
            limit,
            now: self.now(),
        };
        let mut causes = self.store.list_causes(params).await?;
        causes.retain(|cause| covers(&cause.pipeline) && cause.state.needs_somebody(cause.owner.is_some()));
        Ok(causes)
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
        let open = ListReplays { open_only: true, limit: REPLAYS_MAX, cursor: None };
        let mut replays = self.store.list_replays(open).await?.items;
        replays.retain(|replay| replay.pipelines.iter().all(covers));
        Ok(replays)
    }
}
