//! Rounds: repetitions of the same tasks.

use axum::Json;
use axum::extract::State;
use redrive::contract::RoundView;
use redrive_core::ids::PipelineName;
use serde::Deserialize;
use utoipa::IntoParams;

use crate::access::Caller;
use crate::app::App;
use crate::error::ApiError;
use crate::page::{List, Listed};
use crate::route::Route;

/// Its routes.
pub fn routes() -> Vec<Route> {
    vec![
        Route::get("/rounds", list, "List rounds with their ledgers, those that began last first")
            .query::<Asked>()
            .lists("RoundView"),
    ]
}

/// Which rounds.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub struct Asked {
    /// Only of this pipeline.
    #[param(value_type = Option<String>)]
    pipeline: Option<PipelineName>,
}

async fn list(State(app): State<App>, caller: Caller, list: List<Asked>) -> Result<Json<Listed<RoundView>>, ApiError> {
    caller.check_each(&list.asked.pipeline)?;
    let rounds = app.redrive().rounds(list.asked.pipeline.as_ref(), list.reach()?).await?;
    Ok(Json(list.cut(rounds, |round| caller.covers(&round.pipeline))?))
}
