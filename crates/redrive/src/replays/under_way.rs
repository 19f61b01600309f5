//! Trying letters here: a try is begun, so that others see it, and then runs, beside whoever asked for it if they like. It is kept how far
//! it is, and whoever ends it meanwhile stops it.

use std::convert::Infallible;
use std::future::Future;

use redrive_core::ids::TryId;
use redrive_core::replays::{ReplayMode, ReplayPlan, TRY_BEAT, TriedWith, Wish, treat};
use redrive_store::contract::{FindLetters, OpenTry, TriedCount, TryView};
use redrive_store::{StoreError, host};
use tokio_util::sync::CancellationToken;

use super::choose::wish;
use super::draft::{Drafted, GoodCheck};
use super::trial::{NewTry, Trial, Tried};
use super::tries::defined;
use crate::compare::Comparing;
use crate::engine::Redrive;
use crate::error::Error;
use crate::pipeline::Pipeline;

/// Letters that are read at once.
const PAGE: u32 = 500;

/// A try that has begun: others see it, and none of its letters was tried yet.
pub struct BegunTry {
    redrive: Redrive,
    /// None if the store cannot be written.
    id: Option<TryId>,
    pipelines: Vec<Pipeline>,
    new: NewTry,
    wish: Wish,
    plan: ReplayPlan,
    /// What others know of it while it is under way.
    known: Tried,
}

impl Redrive {
    /// Runs the handlers of letters over their saved payloads and settles nothing: what would recover, and what would still
    /// fail, for which causes. That is kept for a day, so that a replay may take what recovered. `told` hears how far it is. With a
    /// configuration, pages that worked are read by its rules, too, if the letters are of one pipeline.
    pub async fn try_replay(
        &self,
        pipelines: &[Pipeline],
        new: NewTry,
        (stop, told): (&CancellationToken, impl Fn(u64, u64)),
        with: Option<Comparing<'_>>,
    ) -> Result<Tried, Error> {
        let good = async {
            match (with, pipelines) {
                (Some(with), [only]) => self.check_good_since(&with, &only.name).await,
                _ => Ok(GoodCheck::default()),
            }
        };
        self.begin_try(pipelines, (new, None)).await?.run(stop, told, good).await
    }

    /// Begins to try letters by the rules of these pipelines, a draft if that is given; see [`BegunTry::run`].
    pub async fn begin_try(
        &self,
        pipelines: &[Pipeline],
        (new, draft): (NewTry, Option<Drafted>),
    ) -> Result<BegunTry, Error> {
        let wish = wish(pipelines, Some(ReplayMode::Saved), new.force, &new.edits)?;
        let plan = self.plan_replay(&new.selection, &wish).await?;
        // Of a draft that is the version that the file has once it is written there: until then no replay takes what recovered.
        let tried_with = defined(pipelines);
        let (of, excluded) = (plan.included, plan.excluded.clone());
        let seen_at = Some(self.now());
        let known = Tried { here: true, seen_at, of, excluded, draft: draft.clone(), ..Tried::default() };
        let id = self.open_try(tried_with, &new, &known).await?;
        Ok(BegunTry { redrive: self.clone(), id, pipelines: pipelines.to_vec(), new, wish, plan, known })
    }

    /// Makes the row of a try, unless the store cannot be written: letters can be tried all the same.
    pub(super) async fn open_try(
        &self,
        tried_with: TriedWith,
        new: &NewTry,
        known: &Tried,
    ) -> Result<Option<TryId>, Error> {
        let (at, bits) = self.new_id();
        let open = OpenTry {
            id: TryId::new(at, bits),
            by: new.by.clone(),
            selection: new.selection.clone(),
            edits: new.edits.clone(),
            tried_with,
            outcome: serde_json::to_value(known).map_err(|error| Error::Internal(error.to_string()))?,
            now: self.now(),
        };
        let id = open.id;
        match self.store.open_try(open).await {
            Err(StoreError::ReadOnly { .. }) => return Ok(None),
            opened => opened?,
        }
        self.forget_tries().await?;
        Ok(Some(id))
    }

    /// What came of a try, or how far it is: with what letters would still fail for, unless there are very many of them. Says too where
    /// its letters are.
    pub async fn progress_of(&self, kept: &TryView) -> Result<(Tried, Vec<TriedCount>), Error> {
        let known = known_of(kept);
        if kept.finished_at.is_some() {
            return Ok((known, Vec::new()));
        }
        let groups = self.store.count_tried(kept.id).await?;
        let sum = |of: fn(&TriedCount) -> u64| groups.iter().map(of).sum::<u64>();
        let (tried, recovered) = (sum(|group| group.tried), sum(|group| group.recovered));
        let counted = Tried { id: Some(kept.id), tried, recovered, ..known };
        if tried > SUMMED_MAX {
            return Ok((counted, groups));
        }
        Ok((self.summary(kept).await?, groups))
    }
}

/// Letters of which it is told for what they would still fail while others are being tried: each time all of them are read.
const SUMMED_MAX: u64 = 5_000;

/// What is known of a try by its row.
pub(super) fn known_of(kept: &TryView) -> Tried {
    serde_json::from_value(kept.outcome.clone()).unwrap_or_default()
}

impl BegunTry {
    /// What it is known by; none if the store cannot be written.
    pub const fn id(&self) -> Option<TryId> {
        self.id
    }

    /// How many letters are to be tried.
    pub const fn letters(&self) -> u64 {
        self.plan.included
    }

    /// Tries the letters, and keeps what came of it. `good` says, beside that, whether pages that worked still give the same by a draft.
    /// Who stops it has what was tried by then.
    pub async fn run(
        mut self,
        stop: &CancellationToken,
        told: impl Fn(u64, u64),
        good: impl Future<Output = Result<GoodCheck, Error>>,
    ) -> Result<Tried, Error> {
        // Somebody who ends the try elsewhere stops it, and nothing else that the caller does.
        let stop = stop.child_token();
        let checked = async {
            tokio::select! {
                () = stop.cancelled() => Ok(GoodCheck::default()),
                good = good => good,
            }
        };
        let both = async { tokio::join!(self.letters_tried(&stop, &told), checked) };
        let (tried, good) = tokio::select! {
            both = both => both,
            never = self.beat(&stop) => match never {},
        };
        let (of, excluded) = (self.plan.included, std::mem::take(&mut self.plan.excluded));
        let mut ended = Tried { of, excluded, stopped: stop.is_cancelled(), ..Tried::default() };
        let went_wrong = match (tried, good) {
            (Ok(tried), good) => {
                let Tried { tried, recovered, remaining, record, .. } = tried;
                ended = Tried { tried, recovered, remaining, record, ..ended };
                match (good, &mut self.known.draft) {
                    (Ok(good), Some(draft)) => {
                        draft.good = good;
                        None
                    }
                    (Ok(good), None) => {
                        ended.good = Some(good).filter(|good| good.of > 0);
                        None
                    }
                    (Err(error), _) => Some(error),
                }
            }
            (Err(error), _) => Some(error),
        };
        ended =
            Tried { id: self.id, draft: self.known.draft, why: went_wrong.as_ref().map(ToString::to_string), ..ended };
        if let Some(id) = self.id {
            let outcome = serde_json::to_value(&ended).map_err(|error| Error::Internal(error.to_string()))?;
            self.redrive.store.end_try(id, outcome, self.redrive.now()).await?;
        }
        went_wrong.map_or(Ok(ended), Err)
    }

    /// Says now and then that it is still run, so that others notice when it is no longer; if somebody ended it, it stops.
    async fn beat(&self, stop: &CancellationToken) -> Infallible {
        loop {
            tokio::time::sleep(TRY_BEAT).await;
            let Some(id) = self.id else { continue };
            let known = Tried { seen_at: Some(self.redrive.now()), ..self.known.clone() };
            let Ok(known) = serde_json::to_value(&known) else { continue };
            match self.redrive.store.note_try(id, known).await {
                Ok(true) => {}
                Ok(false) => stop.cancel(),
                Err(error) => tracing::debug!(%error, "it could not be noted that a try goes on"),
            }
        }
    }

    async fn letters_tried(&self, stop: &CancellationToken, told: &impl Fn(u64, u64)) -> Result<Tried, Error> {
        let of = self.plan.included;
        let with = (self.pipelines.as_slice(), self.new.edits.clone());
        let mut trial = Trial::new(self.redrive.clone(), self.id, with, stop.clone()).await?;
        let mut cursor = None;
        loop {
            let params = FindLetters {
                selection: self.new.selection.clone(),
                opened: None,
                tried: None,
                host: host().to_owned(),
                whole: true,
                limit: PAGE,
                cursor,
            };
            let page = self.redrive.store.find_letters(params).await?;
            for found in page.items {
                if stop.is_cancelled() {
                    break;
                }
                if let (Ok(_), Some(letter)) = (treat(&found.facts, &self.wish), found.letter) {
                    trial.begin(letter).await?;
                    told(trial.tried.tried, of);
                }
            }
            cursor = page.next;
            if cursor.is_none() || stop.is_cancelled() {
                break;
            }
        }
        trial.finish(|tried| told(tried, of)).await
    }
}
