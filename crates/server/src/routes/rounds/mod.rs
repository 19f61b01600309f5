//! Rounds: repetitions of the same tasks.

use axum::Json;
use axum::extract::State;
use redrive::contract::RoundView;
use redrive_core::ids::PipelineName;
use serde::Deserialize;
use utoipa::IntoParams;

use crate::access::Caller;
use crate::app::App;
use crate::asked::{Number, Query};
use crate::error::ApiError;
use crate::page::{Listed, limit};
use crate::route::Route;

/// Its routes.
pub fn routes() -> Vec<Route> {
    vec![
        Route::get("/rounds", list, "List rounds with their ledgers, those that began last first")
            .query::<Asked>()
            .lists(),
    ]
}

/// Which rounds.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub struct Asked {
    /// Only of this pipeline.
    #[param(value_type = Option<String>)]
    pipeline: Option<PipelineName>,
    /// At most so many, 1 to 1000.
    #[param(value_type = Option<u32>)]
    limit: Option<Number>,
}

async fn list(
    State(app): State<App>,
    caller: Caller,
    Query(asked): Query<Asked>,
) -> Result<Json<Listed<RoundView>>, ApiError> {
    asked.pipeline.iter().try_for_each(|name| caller.check(name))?;
    let mut rounds = app.redrive().rounds(asked.pipeline.as_ref(), limit(asked.limit)?).await?;
    rounds.retain(|round| caller.covers(&round.pipeline));
    Ok(Json(Listed::whole(rounds)))
}
