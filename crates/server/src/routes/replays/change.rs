//! `POST /replays/{id}/pause`, `/resume` and `/cancel`

use axum::Json;
use axum::extract::State;
use redrive::contract::ReplayView;
use redrive::replays::ReplayRef;

use crate::access::Caller;
use crate::app::App;
use crate::asked::Named;
use crate::error::ApiError;

pub async fn pause(
    State(app): State<App>,
    caller: Caller,
    Named(which): Named<ReplayRef>,
) -> Result<Json<ReplayView>, ApiError> {
    let found = app.redrive().find_resumable(which).await?;
    caller.check_each(&found.pipelines)?;
    Ok(Json(app.redrive().pause_replay(ReplayRef::Id(found.id), &caller.actor()).await?))
}

pub async fn resume(
    State(app): State<App>,
    caller: Caller,
    Named(which): Named<ReplayRef>,
) -> Result<Json<ReplayView>, ApiError> {
    let found = app.redrive().find_resumable(which).await?;
    caller.check_each(&found.pipelines)?;
    let pipelines = app.pipelines(&found.pipelines);
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
