//! `POST /letters/discard`

use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::filter::{Letters, WrittenLetters};
use crate::access::Caller;
use crate::app::App;
use crate::asked::{Body, reason};
use crate::error::ApiError;

/// Letters that are to be given up.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = DiscardLetters)]
pub struct Asked {
    /// Which.
    #[schema(value_type = WrittenLetters)]
    letters: Letters,
    /// Why, for the record.
    #[serde(deserialize_with = "reason")]
    why: String,
}

/// What became of them.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = DiscardedLetters)]
pub struct Answer {
    /// Letters that were given up.
    discarded: u64,
    /// Jobs that were named and are no dead letters.
    missing: Vec<String>,
}

pub async fn run(State(app): State<App>, caller: Caller, Body(asked): Body<Asked>) -> Result<Json<Answer>, ApiError> {
    let selection = asked.letters.selection(&app, &caller).await?;
    let discarded = app.redrive().discard_dead(selection, &asked.why, &caller.actor()).await?;
    let missing = discarded.missing.iter().map(ToString::to_string).collect();
    Ok(Json(Answer { discarded: discarded.letters, missing }))
}
