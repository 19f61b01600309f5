//! Letters whose target stayed away are replayed when it is back.

use std::time::Duration;

use redrive_core::actors::{Actor, Via};
use redrive_core::breakers::BreakerState;
use redrive_core::dead::Gate;
use redrive_core::ids::PipelineName;
use redrive_core::jobs::Input;
use redrive_core::replays::{Pacing, ReplayMode, Wish};
use redrive_core::settlements::TARGET_ON_HOLD;
use redrive_store::contract::{ClaimAutoReplay, CountDead, DeadBy, DeadFilter, ListReplays, Selection};

use super::replays::{Driver, OPEN_MAX};
use crate::error::Error;
use crate::pipeline::Pipeline;
use crate::replays::NewReplay;

/// At most so many letters are replayed at once.
const LETTERS_MAX: u32 = 1_000;

/// At most so many targets of a pipeline are looked at.
const TARGETS_MAX: u32 = 10_000;

/// For how long no other worker begins to replay letters of the same pipeline.
const TURN: Duration = Duration::from_secs(5);

/// The letters of a pipeline, and of one target, that died because that stayed away.
fn given_up(pipeline: &PipelineName, target: Option<String>) -> DeadFilter {
    let code = Some(TARGET_ON_HOLD.to_owned());
    DeadFilter { pipeline: Some(pipeline.clone()), target, code, gate: Some(Gate::Auto), ..DeadFilter::default() }
}

impl Driver {
    /// Replays the letters of targets that are back, if any target is since this was last done; says whether some are left.
    pub(super) async fn replay_recovered(&mut self) -> Result<bool, Error> {
        let redrive = &self.context.redrive;
        let (breakers, open) = (redrive.store.list_breakers().await?, self.open().await?);
        let mut left = false;
        for pipeline in self.pipelines.iter().filter(|pipeline| pipeline.policy.breaker.replays_on_recovery) {
            let name = &pipeline.name;
            let count = CountDead { filter: given_up(name, None), by: DeadBy::Target, limit: TARGETS_MAX };
            for target in redrive.store.count_dead(count).await?.into_iter().filter_map(|count| count.value) {
                let is_shut = |row: &redrive_core::breakers::BreakerView| {
                    row.pipeline == *name && row.target == target && row.breaker.state != BreakerState::Closed
                };
                if breakers.iter().any(is_shut) {
                    continue;
                }
                let called = format!("recovered: {target}");
                left |= open.iter().any(|open| open.name == called && open.pipelines.contains(name))
                    || self.replay_target(pipeline, called, target).await?;
            }
        }
        Ok(left)
    }

    async fn open(&self) -> Result<Vec<redrive_store::contract::ReplayView>, Error> {
        let open = ListReplays::open(OPEN_MAX);
        Ok(self.context.redrive.store.list_replays(open).await?.items)
    }

    /// Begins to replay the letters of a target; says whether there are any.
    async fn replay_target(&self, pipeline: &Pipeline, called: String, target: String) -> Result<bool, Error> {
        let redrive = &self.context.redrive;
        let new = NewReplay {
            name: called,
            by: Actor::new("policy", Via::Automatic),
            selection: Selection { filter: given_up(&pipeline.name, Some(target)), ids: Vec::new() },
            wish: Wish { letters_max: Some(LETTERS_MAX), ..Wish::of(ReplayMode::Suited) },
            force_why: None,
            // The breaker holds it back if the target goes away again; nobody is there to resume it.
            pacing: Pacing { refail_max: 1.0, ..Pacing::default() },
            edits: Input::new(),
            pins: crate::replays::pins(std::slice::from_ref(pipeline)),
        };
        if redrive.plan_replay(&new.selection, &new.wish).await?.included == 0 {
            return Ok(false);
        }
        let (name, now) = (pipeline.name.clone(), self.context.now());
        let claim = ClaimAutoReplay { pipeline: name.clone(), turn: TARGET_ON_HOLD.to_owned(), every: TURN, now };
        if redrive.store.claim_auto_replay(claim).await? {
            self.open_replay(&name, new).await?;
        }
        Ok(true)
    }
}
