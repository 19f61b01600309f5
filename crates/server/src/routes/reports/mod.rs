//! Reports: what fails, where, when, since when.

use axum::Json;
use axum::extract::State;
use redrive::report::Report;
use redrive_core::ids::PipelineName;
use serde::Deserialize;
use utoipa::IntoParams;

use crate::access::Caller;
use crate::app::App;
use crate::asked::{Query, instant};
use crate::error::ApiError;
use crate::route::Route;
use crate::shapes;

/// How far back unless something else is asked for.
const SINCE: &str = "24h";

/// Its routes.
pub fn routes() -> Vec<Route> {
    vec![
        Route::get("/reports", show, "What failed, where and when, in one pipeline or all")
            .query::<Asked>()
            .gives_named("Report"),
    ]
}

/// Of what.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub struct Asked {
    /// Only of this pipeline.
    #[param(value_type = Option<shapes::Name>)]
    pipeline: Option<PipelineName>,
    /// Since: `24h` (ago) if left out, a day or a time.
    since: Option<String>,
}

async fn show(State(app): State<App>, caller: Caller, Query(asked): Query<Asked>) -> Result<Json<Report>, ApiError> {
    caller.check_all(asked.pipeline.as_ref())?;
    let now = app.redrive().now();
    let since = instant("since", asked.since.as_deref().or(Some(SINCE)), now)?.unwrap_or(now);
    Ok(Json(app.redrive().report(since, asked.pipeline.as_ref()).await?))
}
