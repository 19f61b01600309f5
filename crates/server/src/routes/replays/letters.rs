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
use crate::asked::Named;
use crate::error::ApiError;
use crate::page::{List, Listed};

/// Which letters.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub struct Asked {
    /// Only of which this became: `pending`, `running`, `recovered`, `failed`, `gone` or `cancelled`.
    #[param(value_type = Option<String>)]
    state: Option<LetterState>,
}

pub async fn run(
    State(app): State<App>,
    caller: Caller,
    Named(which): Named<ReplayRef>,
    List { asked, limit, cursor }: List<Asked>,
) -> Result<Json<Listed<ReplayLetter>>, ApiError> {
    let replay = app.redrive().find_replay(which).await?;
    caller.check_each(&replay.pipelines)?;
    let params = ListReplayLetters { id: replay.id, state: asked.state, limit, cursor };
    let page = app.redrive().store().list_replay_letters(params).await?;
    Ok(Json(Listed::of(page)))
}
