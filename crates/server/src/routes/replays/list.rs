//! `GET /replays`, `GET /replays/{id}` and `GET /replays/{id}/waits`

use axum::Json;
use axum::extract::State;
use redrive::contract::{ListReplays, ReplayView};
use redrive::replays::{ReplayRef, ReplayWaits};
use serde::Deserialize;
use utoipa::IntoParams;

use crate::access::Caller;
use crate::app::App;
use crate::asked::{Flag, Named};
use crate::error::ApiError;
use crate::page::{List, Listed};

/// Which replays.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub struct Asked {
    /// Only those that have not ended.
    #[serde(default)]
    #[param(value_type = Option<bool>)]
    open: Flag,
}

pub async fn run(
    State(app): State<App>,
    caller: Caller,
    List { asked, limit, cursor }: List<Asked>,
) -> Result<Json<Listed<ReplayView>>, ApiError> {
    let params = ListReplays { open_only: asked.open.0, limit, cursor, within: caller.within() };
    let page = app.redrive().store().list_replays(params).await?;
    Ok(Json(Listed::of(page)))
}

pub async fn show(
    State(app): State<App>,
    caller: Caller,
    Named(which): Named<ReplayRef>,
) -> Result<Json<ReplayView>, ApiError> {
    let replay = app.redrive().find_replay(which).await?;
    caller.check_each(&replay.pipelines)?;
    Ok(Json(replay))
}

pub async fn waits(
    State(app): State<App>,
    caller: Caller,
    Named(which): Named<ReplayRef>,
) -> Result<Json<ReplayWaits>, ApiError> {
    let replay = app.redrive().find_replay(which).await?;
    caller.check_each(&replay.pipelines)?;
    Ok(Json(app.redrive().replay_waits(&replay).await?))
}
