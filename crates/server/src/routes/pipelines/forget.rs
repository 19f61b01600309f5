//! `POST /pipelines/{name}/forget`

use axum::Json;
use axum::extract::State;
use redrive::pipelines::PipelineView;
use redrive_core::ids::PipelineName;
use serde::Deserialize;
use utoipa::ToSchema;

use crate::access::Caller;
use crate::app::App;
use crate::asked::{Body, Named};
use crate::error::ApiError;

/// A pipeline that is to be forgotten.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ForgetPipeline)]
pub struct Asked {}

pub async fn run(
    State(app): State<App>,
    caller: Caller,
    Named(name): Named<PipelineName>,
    Body(Asked {}): Body<Asked>,
) -> Result<Json<PipelineView>, ApiError> {
    caller.check(&name)?;
    caller.find_pipeline(&app, &name).await?;
    let forgotten = app.redrive().forget_pipeline(&app.setting(), &name, &caller.actor()).await?;
    app.forget_existing(&name);
    Ok(Json(forgotten))
}
