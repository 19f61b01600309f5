//! `GET /replays/{id}/letters`

use axum::Json;
use axum::extract::State;
use redrive::contract::{ListReplayLetters, ReplayLetter};
use redrive::replays::ReplayRef;
use redrive_core::replays::LetterState;
use serde::Deserialize;
use utoipa::IntoParams;

use crate::access::Caller;
use crate::app::App;
use crate::asked::{Named, Number, Query};
use crate::error::ApiError;
use crate::page::{Listed, limit};

/// Which letters.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub struct Asked {
    /// Only of which this became: `pending`, `running`, `recovered`, `failed`, `gone` or `cancelled`.
    #[param(value_type = Option<String>)]
    state: Option<LetterState>,
    /// At most so many, 1 to 1000.
    #[param(value_type = Option<u32>)]
    limit: Option<Number>,
    /// Where to go on: `next` of the page before.
    cursor: Option<String>,
}

pub async fn run(
    State(app): State<App>,
    caller: Caller,
    Named(which): Named<ReplayRef>,
    Query(asked): Query<Asked>,
) -> Result<Json<Listed<ReplayLetter>>, ApiError> {
    let replay = app.redrive().find_replay(which).await?;
    caller.check_each(&replay.pipelines)?;
    let (limit, cursor) = (limit(asked.limit)?, asked.cursor);
    let params = ListReplayLetters { id: replay.id, state: asked.state, limit, cursor };
    let page = app.redrive().store().list_replay_letters(params).await?;
    Ok(Json(Listed::of(page, |_| true)))
}
