//! `POST /replays` and `POST /replays/plan`

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use redrive::Pipeline;
use redrive::config::units;
use redrive::contract::{ReplayGroup, ReplayView, Selection};
use redrive::dead::NotDead;
use redrive::replays::{AskedReplay, ReplayRef, StartedReplay, wish};
use redrive_core::ids::ReplayId;
use redrive_core::jobs::Input;
use redrive_core::replays::{Pacing, ReplayMode, ReplayPlan, Wish};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::super::letters::filter::{Letters, WrittenLetters};
use crate::access::Caller;
use crate::app::App;
use crate::asked::{Body, called, said};
use crate::error::ApiError;
use crate::runs::{self, Runs};
use crate::shapes;

/// The most steps of a replay, before all the rest.
const STEPS_MAX: usize = 100;

/// Letters that are looked at for the groups that they are of.
const GROUPED_MAX: u32 = 10_000;

/// Which letters, from what, and at what pace.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = StartReplay)]
pub struct Asked {
    /// Which letters.
    #[schema(value_type = WrittenLetters)]
    letters: Letters,
    /// What it is called.
    #[serde(default, deserialize_with = "called")]
    name: Option<String>,
    /// From what letters are worked on: `suited` if left out, `saved` (no network) or `refetch`.
    #[schema(value_type = Option<shapes::ReplayModeName>)]
    from: Option<ReplayMode>,
    /// Only what the newest try of these letters recovered, from the saved payloads as it was tried.
    #[serde(default)]
    recoverable: bool,
    /// Also those that failed permanently; needs `why`.
    #[serde(default)]
    force: bool,
    /// Why those are sent all the same, for the record.
    #[serde(default, deserialize_with = "said")]
    why: Option<String>,
    /// How many letters each step has, before all the rest: 1, 5, 20 and 100 if left out.
    ramp: Option<Vec<u32>>,
    /// The share of letters that may fail again, `25%` for example, before it pauses itself.
    refail_max: Option<String>,
    /// At most so many: `20/s`, `100/m` or `500/h`.
    rate: Option<String>,
    /// Fields that are changed in each input.
    #[serde(default)]
    #[schema(value_type = Object)]
    set: Input,
    /// At the pace at which a person has letters tried again, in place of `ramp`, `refail_max` and `rate`: a few at once, and none is
    /// held back because others fail.
    #[serde(default)]
    retry: bool,
    /// Letters that are named are retried one by one: their attempts do not count towards the cap over all replays.
    #[serde(default)]
    by_name: bool,
    /// What the worker runs that is to work on it, where that is another version of a pipeline than the server's: the replay is for that
    /// version.
    #[serde(default)]
    runs: Vec<Runs>,
}

/// A replay that was begun.
#[derive(Debug, Serialize)]
pub struct Started {
    /// The replay; not there if no letter may be sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    replay: Option<ReplayView>,
    /// What is sent, what not and why.
    plan: ReplayPlan,
    /// From what letters are worked on.
    from: ReplayMode,
    /// What was named and is not a dead letter.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    not_dead: Vec<NotDead>,
    /// Whether all that was meant is taken: who names letters means each of them.
    all_taken: bool,
    /// What its letters belong to in the programs that reported them, of the first 10,000: `group` of a lease.
    groups: Vec<ReplayGroup>,
}

impl Started {
    /// The replay, if there is one.
    pub fn id(&self) -> Option<ReplayId> {
        self.replay.as_ref().map(|replay| replay.id)
    }

    /// What was sent, what not and why.
    pub const fn plan(&self) -> &ReplayPlan {
        &self.plan
    }
}

pub async fn plan(
    State(app): State<App>,
    caller: Caller,
    Body(asked): Body<Asked>,
) -> Result<Json<ReplayPlan>, ApiError> {
    let force = asked.force;
    let Prepared { selection, pipelines } =
        Prepared::of(&app, &caller, (asked.letters, force), &asked.set, &asked.runs).await?;
    let from = if asked.recoverable { Some(ReplayMode::Saved) } else { asked.from };
    let mut wish = wish(&pipelines, from, force, &asked.set).map_err(redrive::Error::from)?;
    if asked.recoverable {
        wish.tried = Some(app.redrive().find_recoverable(&selection, &asked.set, &pipelines).await?.id);
    }
    Ok(Json(app.redrive().plan_replay(&selection, &wish).await?))
}

pub async fn run(
    State(app): State<App>,
    caller: Caller,
    Body(asked): Body<Asked>,
) -> Result<(StatusCode, Json<Started>), ApiError> {
    let pacing = if asked.retry { None } else { Some(asked.pacing()?) };
    let force_why = match (asked.force, asked.why) {
        (true, Some(why)) if !why.trim().is_empty() => Some(why),
        (true, _) => return Err(ApiError::invalid("why", "say why letters that failed permanently are sent")),
        (false, Some(_)) => return Err(ApiError::invalid("why", "only force needs a reason")),
        (false, None) => None,
    };
    let letters = (asked.letters, asked.force);
    let Prepared { selection, pipelines } = Prepared::of(&app, &caller, letters, &asked.set, &asked.runs).await?;
    let name = asked.name.filter(|name| !name.trim().is_empty());
    let (recoverable, mode, edits) = (asked.recoverable, asked.from, asked.set);
    let (by_name, of) = (asked.by_name, AskedReplay::of(selection, caller.actor()));
    let asked = AskedReplay { name, mode, recoverable, force_why, pacing, edits, by_name, over_network: true, ..of };
    let StartedReplay { id, plan, mode, not_dead, all_taken } = app.redrive().ask_replay(asked, &pipelines).await?;
    let mut started = Started { replay: None, plan, from: mode, not_dead, all_taken, groups: Vec::new() };
    match id {
        Some(id) => {
            started.replay = Some(app.redrive().find_replay(ReplayRef::Id(id)).await?);
            started.groups = app.redrive().store().replay_groups(id, GROUPED_MAX).await?;
            Ok((StatusCode::CREATED, Json(started)))
        }
        None if started.plan.matched == 0 => Err(ApiError::missing("no dead letters are like that").at("letters")),
        None => Ok((StatusCode::OK, Json(started))),
    }
}

/// Which letters, and the pipelines that they are of.
pub(in crate::routes) struct Prepared {
    pub selection: Selection,
    pub pipelines: Vec<Pipeline>,
}

impl Prepared {
    /// Finds the letters, as far as who chooses may, also those that failed permanently if they are meant.
    pub async fn of(
        app: &App,
        caller: &Caller,
        (letters, force): (Letters, bool),
        set: &Input,
        runs: &[Runs],
    ) -> Result<Self, ApiError> {
        runs::check(runs)?;
        let selection = letters.selection(app, caller).await?;
        let supplied = set.keys().cloned().collect();
        let rough = Wish { force, supplied, ..Wish::of(ReplayMode::Suited) };
        let found = app.redrive().plan_replay(&selection, &rough).await?;
        caller.check_each(found.pipelines.keys())?;
        let pipelines = runs::pipelines(app, runs, found.pipelines.keys())?;
        Ok(Self { selection, pipelines })
    }
}

impl Asked {
    /// How fast it goes.
    pub fn pacing(&self) -> Result<Pacing, ApiError> {
        let usual = Pacing::default();
        let share = self.refail_max.as_deref().map(units::share).transpose();
        let rate = self.rate.as_deref().map(units::rate).transpose();
        if self.ramp.iter().flatten().any(|step| *step == 0) {
            return Err(ApiError::invalid("ramp", "a step has at least one letter"));
        }
        if self.ramp.as_ref().is_some_and(|ramp| ramp.len() > STEPS_MAX) {
            return Err(ApiError::invalid("ramp", format!("at most {STEPS_MAX} steps, then all that is left")));
        }
        Ok(Pacing {
            ramp: self.ramp.clone().unwrap_or(usual.ramp),
            refail_max: share.map_err(|why| ApiError::invalid("refail_max", why))?.unwrap_or(usual.refail_max),
            per_second: rate.map_err(|why| ApiError::invalid("rate", why))?,
        })
    }
}
