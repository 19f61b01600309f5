//! Replays, for who holds a [`Redrive`]: planning, making and changing them, and what would recover.
//!
//! - `ask`: from what somebody asks for to a replay; `choose`: what to work from, and what a replay is called
//! - `prepare`: which letters a replay takes, a bounded number at once
//! - `drive`: the next step of a replay, whoever takes it
//! - `trial`: trying letters without settling anything; `under_way`: from its beginning to its end; `elsewhere`: by workers that live elsewhere; `tries`: those that were kept
//! - `steps`: how far its steps are, and when it will be through
//! - `verbs`: what can be asked of a replay that is there; `error`: why that is refused

mod ask;
mod choose;
mod draft;
pub(crate) mod drive;
mod elsewhere;
mod error;
mod prepare;
mod steps;
mod trial;
mod tries;
mod under_way;
mod verbs;

use std::collections::BTreeSet;

use redrive_core::definitions::Pins;
use redrive_core::failures::Reason;
use redrive_core::ids::{PipelineName, ReplayId};
use redrive_core::replays::{ReplayPlan, ReplayState, Wish};
pub use redrive_store::contract::NewReplay;
use redrive_store::contract::{OpenReplay, ReplayView, Selection, SurveyLetters};

pub use self::ask::{AskedReplay, StartedReplay};
pub use self::choose::{can_use_saved, describe, wish};
pub(crate) use self::draft::rules_of;
pub use self::draft::{CHECKED_MAX, Draft, Drafted, GoodCheck, WrongDraft, draftable, drafted};
pub use self::elsewhere::{EndedTry, LetterInTry, OpenedTry, TryVerdict};
pub use self::error::ReplayError;
pub use self::steps::{StepLine, ready_in};
pub use self::trial::{NewTry, Remaining, Tried, TriedRecord};
pub use self::tries::{outdated_try, tries_of};
pub use self::under_way::BegunTry;
pub use self::verbs::{OPEN_REPLAYS, ReplayRef, ReplayWaits, meant};
use crate::dead::check;
use crate::engine::Redrive;
use crate::error::Error;
use crate::pipeline::Pipeline;
use redrive_store::host;

/// The versions of pipelines, for a replay that is planned with them. What runs elsewhere is whatever its workers have.
pub fn pins(pipelines: &[Pipeline]) -> Pins {
    let known = pipelines.iter().filter(|pipeline| pipeline.handler.is_known_by_definition());
    known.filter_map(|pipeline| Some((pipeline.name.clone(), pipeline.definition()?.clone()))).collect()
}

impl Redrive {
    /// What a replay would send, and what not; nothing happens.
    pub async fn plan_replay(&self, selection: &Selection, wish: &Wish) -> Result<ReplayPlan, Error> {
        Ok(self.plan_replays(selection, std::slice::from_ref(wish)).await?.pop().unwrap_or_default())
    }

    /// What replays of the same letters would send, each by its wish, in their order: the letters are looked at once. At most one try
    /// is named among them.
    pub async fn plan_replays(&self, selection: &Selection, wishes: &[Wish]) -> Result<Vec<ReplayPlan>, Error> {
        check(selection)?;
        let is_close = |reason: &Reason| wishes.iter().any(|wish| wish.looks_closely_at().contains(reason));
        let params = SurveyLetters {
            selection: selection.clone(),
            closely: Reason::ALL.iter().copied().filter(is_close).collect(),
            automatic: wishes.iter().any(|wish| wish.automatic.is_some()),
            tried: wishes.iter().find_map(|wish| wish.tried),
            lacking: wishes.iter().any(Wish::asks_for_lost),
            host: host().to_owned(),
        };
        let surveyed = self.store.survey_letters(params).await?;
        Ok(wishes.iter().map(|wish| ReplayPlan::of(&surveyed, wish)).collect())
    }

    /// Chooses the letters of a replay and claims them, step by step. A worker sends them; see [`Worker::only_replay`] and
    /// [`Worker::with_replays`](crate::worker::Worker::with_replays). Without a letter to send there is no replay. If this
    /// is stopped on the way, whoever drives replays goes on.
    ///
    /// [`Worker::only_replay`]: crate::worker::Worker::only_replay
    pub async fn start_replay(&self, new: NewReplay) -> Result<(Option<ReplayId>, ReplayPlan), Error> {
        let plan = self.plan_replay(&new.selection, &new.wish).await?;
        self.start_planned(new, plan).await
    }

    /// The same, of which it is known what it would send.
    async fn start_planned(&self, new: NewReplay, plan: ReplayPlan) -> Result<(Option<ReplayId>, ReplayPlan), Error> {
        let (at, bits) = self.new_id();
        let id = ReplayId::new(at, bits);
        // If the request runs again, its letters are in its replay already.
        if plan.included == 0 && self.store.get_replay(id).await?.is_none() {
            return Ok((None, plan));
        }
        let pipelines = plan.pipelines.keys().cloned().collect();
        let Some(replay) = self.open_replay(id, new, pipelines).await? else {
            return Ok((None, ReplayPlan { included: 0, saved: 0, anew: 0, ..plan }));
        };
        // What was claimed counts, not what was counted before.
        let excluded = replay.excluded;
        let (included, left_out) = (replay.progress.total, excluded.values().sum::<u64>());
        let (saved, anew) = (replay.saved, included - replay.saved);
        let plan = ReplayPlan { matched: included + left_out, included, saved, anew, excluded, ..plan };
        Ok((Some(replay.id), plan))
    }

    /// Makes a replay and chooses its letters; none if there was nothing to choose. To do it again with the same id goes on where it
    /// was.
    pub(crate) async fn open_replay(
        &self,
        id: ReplayId,
        mut new: NewReplay,
        pipelines: BTreeSet<PipelineName>,
    ) -> Result<Option<ReplayView>, Error> {
        let now = self.now();
        let mut seen = BTreeSet::new();
        new.selection.ids.retain(|id| seen.insert(*id));
        new.pins.retain(|name, _| pipelines.contains(name));
        let mut replay = self.store.open_replay(OpenReplay { id, new, pipelines, now }).await?;
        while replay.state == ReplayState::Preparing {
            prepare::choose(self.store.as_ref(), &replay, now).await?;
            let Some(chosen) = self.store.get_replay(id).await? else { return Ok(None) };
            replay = chosen;
        }
        Ok(Some(replay))
    }
}
