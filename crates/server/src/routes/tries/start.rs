//! `POST /tries`

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use redrive::replays::{NewTry, OpenedTry};
use redrive_core::jobs::Input;
use redrive_core::replays::ReplayMode;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::super::letters::filter::{Letters, WrittenLetters};
use super::super::replays::start::Prepared;
use crate::access::Caller;
use crate::app::App;
use crate::asked::Body;
use crate::error::ApiError;
use crate::runs::Runs;

/// Which letters.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = StartTry)]
pub struct Asked {
    /// Which letters.
    #[schema(value_type = WrittenLetters)]
    letters: Letters,
    /// Also those that failed permanently.
    #[serde(default)]
    force: bool,
    /// Fields that are changed in each input.
    #[serde(default)]
    #[schema(value_type = Object)]
    set: Input,
    /// Whether those who work on their pipelines are to take part by themselves; else who asks for it leases them.
    #[serde(default)]
    for_workers: bool,
    /// What the worker runs that is to try them, where that is another version of a pipeline than the server's.
    #[serde(default)]
    runs: Vec<Runs>,
}

/// A try that was begun.
#[derive(Debug, Serialize)]
pub struct Started {
    /// The try: `id`, `letters`, `left_out`, `groups`. There is no `id` if no letter can be tried.
    #[serde(flatten)]
    opened: OpenedTry,
    /// What letters are worked on from.
    from: ReplayMode,
}

pub async fn run(
    State(app): State<App>,
    caller: Caller,
    Body(asked): Body<Asked>,
) -> Result<(StatusCode, Json<Started>), ApiError> {
    let letters = (asked.letters, asked.force);
    let Prepared { selection, pipelines } = Prepared::of(&app, &caller, letters, &asked.set, &asked.runs).await?;
    if pipelines.is_empty() {
        return Err(ApiError::missing("no dead letters are like that").at("letters"));
    }
    let new = NewTry { by: caller.actor(), selection, force: asked.force, edits: asked.set };
    let opened = app.redrive().open_try_elsewhere(&pipelines, new, asked.for_workers).await?;
    let status = if opened.id.is_some() { StatusCode::CREATED } else { StatusCode::OK };
    Ok((status, Json(Started { opened, from: ReplayMode::Saved })))
}
