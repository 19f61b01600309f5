//! What people and tokens did.

use axum::Json;
use axum::extract::State;
use redrive::contract::{ActivityView, ListActivity};
use redrive_core::ids::PipelineName;
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
    vec![Route::get("/activity", list, "List what people did, newest first").query::<Asked>().lists("ActivityView")]
}

/// Which.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub struct Asked {
    /// Only what this person or token did.
    who: Option<String>,
    /// Only what concerned this pipeline.
    #[param(value_type = Option<shapes::Name>)]
    pipeline: Option<PipelineName>,
    /// Only since: `2h` (ago), a day or a time.
    since: Option<String>,
}

async fn list(
    State(app): State<App>,
    caller: Caller,
    List { asked, limit, cursor }: List<Asked>,
) -> Result<Json<Listed<ActivityView>>, ApiError> {
    caller.check_all(asked.pipeline.as_ref())?;
    let params = ListActivity {
        since: instant("since", asked.since.as_deref(), app.redrive().now())?,
        who: asked.who,
        pipeline: asked.pipeline,
        limit,
        cursor,
    };
    let page = app.redrive().list_activity(params).await?;
    Ok(Json(Listed::of(page, |_| true)))
}
