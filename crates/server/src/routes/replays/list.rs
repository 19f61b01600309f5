//! `GET /replays` and `GET /replays/{id}`

use axum::Json;
use axum::extract::State;
use redrive::contract::{ListReplays, ReplayView};
use redrive::replays::ReplayRef;
use serde::Deserialize;
use utoipa::IntoParams;

use crate::access::Caller;
use crate::app::App;
use crate::asked::{Flag, Named, Number, Query};
use crate::error::ApiError;
use crate::page::{Listed, limit};

/// Which replays.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub struct Asked {
    /// Only those that have not ended.
    #[serde(default)]
    #[param(value_type = Option<bool>)]
    open: Flag,
    /// At most so many, 1 to 1000.
    #[param(value_type = Option<u32>)]
    limit: Option<Number>,
    /// Where to go on: `next` of the page before.
    cursor: Option<String>,
}

pub async fn run(
    State(app): State<App>,
    caller: Caller,
    Query(asked): Query<Asked>,
) -> Result<Json<Listed<ReplayView>>, ApiError> {
    let params = ListReplays { open_only: asked.open.0, limit: limit(asked.limit)?, cursor: asked.cursor };
    let page = app.redrive().store().list_replays(params).await?;
    Ok(Json(Listed::of(page, |replay| caller.check_each(&replay.pipelines).is_ok())))
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
