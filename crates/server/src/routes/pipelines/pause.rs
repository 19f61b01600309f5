//! `POST /pipelines/{name}/pause` and `/resume`

use axum::Json;
use axum::extract::State;
use redrive_core::ids::PipelineName;
use redrive_core::pipelines::Pause;
use serde::Deserialize;
use utoipa::ToSchema;

use crate::access::Caller;
use crate::app::App;
use crate::asked::{Body, Named};
use crate::error::ApiError;

/// Why a pipeline rests.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = PausePipeline)]
pub struct Asked {
    /// Why, for who wonders.
    why: Option<String>,
}

pub async fn pause(
    State(app): State<App>,
    caller: Caller,
    Named(name): Named<PipelineName>,
    Body(asked): Body<Asked>,
) -> Result<Json<Pause>, ApiError> {
    caller.check(&name)?;
    app.redrive().find_pipeline(&app.setting(), &name).await?;
    Ok(Json(app.redrive().pause_pipeline(&name, asked.why.as_deref(), &caller.actor()).await?))
}

pub async fn resume(
    State(app): State<App>,
    caller: Caller,
    Named(name): Named<PipelineName>,
) -> Result<Json<Pause>, ApiError> {
    caller.check(&name)?;
    Ok(Json(app.redrive().resume_pipeline(&name, &caller.actor()).await?))
}
