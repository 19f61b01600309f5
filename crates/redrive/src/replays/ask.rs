//! From what somebody asks for to a replay: what it works from, the versions it is pinned to, how fast it goes, and which of the
//! letters that were named are none.

use redrive_core::actors::Actor;
use redrive_core::ids::ReplayId;
use redrive_core::jobs::Input;
use redrive_core::replays::{Pacing, ReplayMode, ReplayPlan};
use redrive_store::contract::{NewReplay, Selection};

use super::choose::{describe, wish};
use super::pins;
use crate::dead::NotDead;
use crate::engine::Redrive;
use crate::error::Error;
use crate::pipeline::Pipeline;

/// A replay that somebody asks for.
#[derive(Clone, Debug)]
pub struct AskedReplay {
    /// Who asks.
    pub by: Actor,
    /// Which letters.
    pub selection: Selection,
    /// What it is called; by default by what was chosen.
    pub name: Option<String>,
    /// What letters are worked on from, if that was said; else what suits each.
    pub mode: Option<ReplayMode>,
    /// Whether only what the newest try of these letters recovered is meant: from the saved payloads then, as it was tried.
    pub recoverable: bool,
    /// Why letters that failed permanently go too, if they do.
    pub force_why: Option<String>,
    /// How fast; if nothing was said, as a person has letters tried again.
    pub pacing: Option<Pacing>,
    /// Fields of the inputs to change.
    pub edits: Input,
    /// Set if letters that are named are retried one by one, so that their attempts do not count towards the cap over all replays.
    pub by_name: bool,
    /// Whether they ask over the network.
    pub over_network: bool,
}

impl AskedReplay {
    /// A replay of letters in the way that suits each.
    pub fn of(selection: Selection, by: Actor) -> Self {
        let (name, mode, force_why, pacing) = (None, None, None, None);
        Self {
            by,
            selection,
            name,
            mode,
            recoverable: false,
            force_why,
            pacing,
            edits: Input::new(),
            by_name: false,
            over_network: false,
        }
    }
}

/// What came of asking for a replay.
#[derive(Clone, Debug)]
pub struct StartedReplay {
    /// The replay; none if there is no letter to send.
    pub id: Option<ReplayId>,
    /// What it sends, and what not.
    pub plan: ReplayPlan,
    /// What its letters are worked on from.
    pub mode: ReplayMode,
    /// What was named and is not a dead letter.
    pub not_dead: Vec<NotDead>,
    /// Whether all that was meant is taken: who names letters means each of them; of a filter, those that may be replayed are meant.
    pub all_taken: bool,
}

impl Redrive {
    /// Makes a replay of letters of these pipelines, pinned to the versions that they have; see [`Redrive::start_replay`].
    pub async fn ask_replay(&self, asked: AskedReplay, pipelines: &[Pipeline]) -> Result<StartedReplay, Error> {
        let AskedReplay { by, selection, name, mode, recoverable, force_why, pacing, edits, by_name, over_network } =
            asked;
        let mode = if recoverable { Some(ReplayMode::Saved) } else { mode };
        let mut wish = wish(pipelines, mode, force_why.is_some(), &edits)?;
        wish.over_network = over_network;
        wish.by_name = by_name && !selection.ids.is_empty() && selection.filter.is_empty();
        if recoverable {
            wish.tried = Some(self.find_recoverable(&selection, &edits, pipelines).await?.id);
        }
        let (mode, named) = (wish.mode, !selection.ids.is_empty());
        // Before anything is sent: what is sent is not dead any more.
        let mut not_dead = Vec::new();
        for id in &selection.ids {
            not_dead.extend(self.find_not_dead(&[*id]).await?);
        }
        let plan = self.plan_replay(&selection, &wish).await?;
        let new = NewReplay {
            name: name.unwrap_or_else(|| describe(&selection)),
            by,
            selection,
            wish,
            force_why,
            pacing: pacing.unwrap_or_else(|| Pacing::of_retry(plan.included)),
            edits,
            pins: pins(pipelines),
        };
        let (id, plan) = self.start_planned(new, plan).await?;
        let all_taken = not_dead.is_empty() && (!named || plan.excluded.is_empty());
        Ok(StartedReplay { id, plan, mode, not_dead, all_taken })
    }
}
