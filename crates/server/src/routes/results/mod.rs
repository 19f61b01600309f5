//! Results that the store keeps.

use axum::Json;
use axum::extract::State;
use redrive::contract::ListResults;
use redrive_core::ids::{PipelineName, RoundName};
use redrive_core::results::JobResult;
use serde::Deserialize;
use utoipa::IntoParams;

use crate::access::Caller;
use crate::app::App;
use crate::asked::instant;
use crate::error::ApiError;
use crate::page::{List, Listed};
use crate::route::Route;
use crate::shapes;

/// Its routes.
pub fn routes() -> Vec<Route> {
    vec![
        Route::get("/results", list, "List results that the store keeps, oldest first")
            .query::<Asked>()
            .lists("JobResult"),
    ]
}

/// Which results.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub struct Asked {
    /// Of this pipeline.
    #[param(value_type = shapes::Name)]
    pipeline: PipelineName,
    /// Only of this round.
    #[param(value_type = Option<shapes::Name>)]
    round: Option<RoundName>,
    /// Only of jobs that were done since: `2h` (ago), a day or a time.
    since: Option<String>,
    /// Only of jobs that were done before: `2h` (ago), a day or a time.
    until: Option<String>,
}

async fn list(
    State(app): State<App>,
    caller: Caller,
    List { asked, limit, cursor }: List<Asked>,
) -> Result<Json<Listed<JobResult>>, ApiError> {
    caller.check(&asked.pipeline)?;
    let now = app.redrive().now();
    let params = ListResults {
        pipeline: asked.pipeline,
        round: asked.round,
        since: instant("since", asked.since.as_deref(), now)?,
        until: instant("until", asked.until.as_deref(), now)?,
        limit,
        cursor,
    };
    Ok(Json(Listed::of(app.redrive().store().list_results(params).await?)))
}
