//! `POST /replays/{id}/pause`, `/resume` and `/cancel`

use axum::Json;
use axum::extract::State;
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
