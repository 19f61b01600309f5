//! `POST /pipelines/{name}/pause` and `/resume`

use axum::Json;
use axum::extract::State;
use redrive_core::ids::PipelineName;
use redrive_core::pipelines::{Pause, PauseWish};
use redrive_core::seen::Version;
use serde::Deserialize;
use utoipa::ToSchema;

use crate::access::Caller;
use crate::app::App;
use crate::asked::{Body, Named, future, said};
use crate::error::ApiError;

/// Why a pipeline rests, and until when.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = PausePipeline)]
pub struct Asked {
    /// Why, for who wonders.
    #[serde(default, deserialize_with = "said")]
    why: Option<String>,
    /// Until this time, `2h` (from now), a day or a time; until it is resumed if left out.
    until: Option<String>,
    /// `version` of the pipeline as it was seen: if others paused or resumed it since, nothing is done.
    #[schema(value_type = Option<String>)]
    version: Option<Version>,
}

/// A pipeline that is to go on.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ResumePipeline)]
pub struct Resumed {
    /// `version` of the pipeline as it was seen: if others paused or resumed it since, nothing is done.
    #[schema(value_type = Option<String>)]
    version: Option<Version>,
}

pub async fn pause(
    State(app): State<App>,
    caller: Caller,
    Named(name): Named<PipelineName>,
    Body(asked): Body<Asked>,
) -> Result<Json<Pause>, ApiError> {
    caller.check(&name)?;
    caller.find_pipeline(&app, &name).await?;
    let until = future("until", asked.until.as_deref(), app.redrive().asked_at())?;
    let (wish, by) = (PauseWish { why: asked.why, until }, caller.actor());
    Ok(Json(app.redrive().pause_pipeline_with(&name, wish, &by, asked.version.as_ref()).await?))
}

pub async fn resume(
    State(app): State<App>,
    caller: Caller,
    Named(name): Named<PipelineName>,
    Body(asked): Body<Resumed>,
) -> Result<Json<Pause>, ApiError> {
    caller.check(&name)?;
    Ok(Json(app.redrive().resume_pipeline_as_seen(&name, &caller.actor(), asked.version.as_ref()).await?))
}
