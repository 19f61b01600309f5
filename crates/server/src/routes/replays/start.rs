//! `POST /replays` and `POST /replays/plan`

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use redrive::Pipeline;
use redrive::config::units;
use redrive::contract::{ReplayGroup, ReplayView};
use redrive::replays::{NewReplay, ReplayRef, describe, pins, wish};
use redrive_core::ids::ReplayId;
use redrive_core::jobs::Input;
use redrive_core::replays::{Pacing, ReplayMode, ReplayPlan, Wish};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::super::letters::filter::{Letters, WrittenLetters};
use crate::access::Caller;
use crate::app::App;
use crate::asked::Body;
use crate::error::ApiError;
use crate::shapes;

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
}

/// A replay that was begun.
#[derive(Debug, Serialize)]
pub struct Started {
    /// The replay; not there if no letter may be sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    replay: Option<ReplayView>,
    /// What is sent, what not and why.
    plan: ReplayPlan,
    /// What its letters belong to in the programs that reported them, of the first 10,000: `group` of a lease.
    groups: Vec<ReplayGroup>,
}

impl Started {
    /// The replay, if there is one.
    pub fn id(&self) -> Option<ReplayId> {
        self.replay.as_ref().map(|replay| replay.id)
    }
}

pub async fn plan(
    State(app): State<App>,
    caller: Caller,
    Body(asked): Body<Asked>,
) -> Result<Json<ReplayPlan>, ApiError> {
    let prepared = asked.prepare(&app, &caller).await?;
    Ok(Json(app.redrive().plan_replay(&prepared.selection, &prepared.wish).await?))
}

pub async fn run(
    State(app): State<App>,
    caller: Caller,
    Body(asked): Body<Asked>,
) -> Result<(StatusCode, Json<Started>), ApiError> {
    let new = asked.prepare(&app, &caller).await?;
    let (id, plan) = app.redrive().start_replay(new).await?;
    match id {
        Some(id) => {
            let replay = Some(app.redrive().find_replay(ReplayRef::Id(id)).await?);
            let groups = app.redrive().store().replay_groups(id, GROUPED_MAX).await?;
            Ok((StatusCode::CREATED, Json(Started { replay, plan, groups })))
        }
        None if plan.matched == 0 => Err(ApiError::missing("no dead letters are like that").at("letters")),
        None => Ok((StatusCode::OK, Json(Started { replay: None, plan, groups: Vec::new() }))),
    }
}

impl Asked {
    async fn prepare(self, app: &App, caller: &Caller) -> Result<NewReplay, ApiError> {
        let pacing = self.pacing()?;
        let force_why = match (self.force, self.why) {
            (true, Some(why)) if !why.trim().is_empty() => Some(why),
            (true, _) => return Err(ApiError::invalid("why", "say why letters that failed permanently are sent")),
            (false, Some(_)) => return Err(ApiError::invalid("why", "only force needs a reason")),
            (false, None) => None,
        };
        let selection = self.letters.selection(app, caller).await?;
        let supplied = self.set.keys().cloned().collect();
        let rough = Wish { force: force_why.is_some(), supplied, ..Wish::of(ReplayMode::Suited) };
        let found = app.redrive().plan_replay(&selection, &rough).await?;
        caller.check_each(found.pipelines.keys())?;
        let pipelines = concerned(app, &found)?;
        let from = if self.recoverable { Some(ReplayMode::Saved) } else { self.from };
        let wish = wish(&pipelines, from, force_why.is_some(), &self.set).map_err(redrive::Error::from)?;
        let mut wish = Wish { over_network: true, ..wish };
        if self.recoverable {
            wish.tried = Some(app.redrive().find_recoverable(&selection, &self.set, &pipelines).await?.id);
        }
        Ok(NewReplay {
            name: self.name.filter(|name| !name.trim().is_empty()).unwrap_or_else(|| describe(&selection)),
            by: caller.actor(),
            selection,
            wish,
            force_why,
            pacing,
            edits: self.set,
            pins: pins(&pipelines),
        })
    }

    /// How fast it goes.
    pub fn pacing(&self) -> Result<Pacing, ApiError> {
        let usual = Pacing::default();
        let share = self.refail_max.as_deref().map(units::share).transpose();
        let rate = self.rate.as_deref().map(units::rate).transpose();
        if self.ramp.iter().flatten().any(|step| *step == 0) {
            return Err(ApiError::invalid("ramp", "a step has at least one letter"));
        }
        Ok(Pacing {
            ramp: self.ramp.clone().unwrap_or(usual.ramp),
            refail_max: share.map_err(|why| ApiError::invalid("refail_max", why))?.unwrap_or(usual.refail_max),
            per_second: rate.map_err(|why| ApiError::invalid("rate", why))?,
        })
    }
}

fn concerned(app: &App, plan: &ReplayPlan) -> Result<Vec<Pipeline>, ApiError> {
    plan.pipelines.keys().map(|name| app.pipeline(name)).collect()
}
