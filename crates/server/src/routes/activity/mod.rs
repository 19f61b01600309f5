//! What people and tokens did.

use axum::Json;
use axum::extract::State;
use redrive::contract::{ActivityView, ListActivity};
use redrive_core::ids::PipelineName;
use serde::Deserialize;
use serde_json::Value;
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
    /// Only what was done so: `discard`, `resolve`, `hold`, and so on.
    verb: Option<String>,
    /// Only what was done to things with this in their name, such as `cause 240f8c6b`.
    object: Option<String>,
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
        verb: asked.verb,
        object: asked.object,
        limit,
        cursor,
    };
    let mut page = app.redrive().list_activity(params).await?;
    page.items.iter_mut().for_each(|done| hide_foreign(&caller, done));
    Ok(Json(Listed::of(page)))
}

/// Takes out the names of pipelines that somebody may not see: what was done may have concerned others too.
pub fn hide_foreign(caller: &Caller, done: &mut ActivityView) {
    let covers = |name: &str| name.parse::<PipelineName>().is_ok_and(|name| caller.covers(&name));
    if let Some(names) = done.detail.get_mut("pipelines").and_then(Value::as_array_mut) {
        names.retain(|name| name.as_str().is_some_and(covers));
    }
    if let Some(pins) = done.detail.get_mut("pins").and_then(Value::as_object_mut) {
        pins.retain(|name, _| covers(name));
    }
}
