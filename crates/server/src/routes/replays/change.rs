//! `POST /replays/{id}/pause`, `/resume`, `/cancel` and `/rate`

use axum::Json;
use axum::extract::State;
use redrive::config::units;
use redrive::contract::ReplayView;
use redrive::replays::ReplayRef;
use serde::Deserialize;
use utoipa::ToSchema;

use crate::access::Caller;
use crate::app::App;
use crate::asked::{Body, Named};
use crate::error::ApiError;
use crate::runs::{self, Runs};

/// Who goes on with a replay.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ResumeReplay)]
pub struct Resume {
    /// What the worker runs that is to work on it, where that is another version of a pipeline than the server's: the replay is for that
    /// version from now on.
    #[serde(default)]
    runs: Vec<Runs>,
}

pub async fn pause(
    State(app): State<App>,
    caller: Caller,
    Named(which): Named<ReplayRef>,
) -> Result<Json<ReplayView>, ApiError> {
    let found = app.redrive().find_pausable(which).await?;
    caller.check_each(&found.pipelines)?;
    Ok(Json(app.redrive().pause_replay(ReplayRef::Id(found.id), &caller.actor()).await?))
}

pub async fn resume(
    State(app): State<App>,
    caller: Caller,
    Named(which): Named<ReplayRef>,
    Body(asked): Body<Resume>,
) -> Result<Json<ReplayView>, ApiError> {
    runs::check(&asked.runs)?;
    let found = app.redrive().find_resumable(which).await?;
    caller.check_each(&found.pipelines)?;
    let pipelines: Vec<_> =
        found.pipelines.iter().filter_map(|name| runs::pipeline(&app, &asked.runs, name).ok()).collect();
    let (replay, _) = app.redrive().resume_replay(ReplayRef::Id(found.id), &caller.actor(), &pipelines).await?;
    Ok(Json(replay))
}

/// How fast a replay goes.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = RateReplay)]
pub struct Rate {
    /// Letters in a time, such as `5/s`, `100/m` or `500/h`; `none` for as fast as they are worked on.
    pub rate: String,
    /// The rate as it was seen, written alike: if others changed it since, nothing is done.
    pub was: Option<String>,
}

pub async fn rate(
    State(app): State<App>,
    caller: Caller,
    Named(which): Named<ReplayRef>,
    Body(asked): Body<Rate>,
) -> Result<Json<ReplayView>, ApiError> {
    let rate = units::rate_or_none(&asked.rate).map_err(|why| ApiError::invalid("rate", why))?;
    let seen =
        asked.was.as_deref().map(units::rate_or_none).transpose().map_err(|why| ApiError::invalid("was", why))?;
    let found = app.redrive().find_paceable(which).await?;
    caller.check_each(&found.pipelines)?;
    Ok(Json(app.redrive().rate_replay(ReplayRef::Id(found.id), rate, &caller.actor(), seen).await?))
}

pub async fn cancel(
    State(app): State<App>,
    caller: Caller,
    Named(which): Named<ReplayRef>,
) -> Result<Json<ReplayView>, ApiError> {
    let found = app.redrive().find_cancellable(which).await?;
    caller.check_each(&found.pipelines)?;
    let pipelines = app.pipelines(&found.pipelines);
    Ok(Json(app.redrive().cancel_replay(ReplayRef::Id(found.id), &caller.actor(), &pipelines).await?))
}
