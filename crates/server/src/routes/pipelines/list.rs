//! `GET /pipelines`, `GET /pipelines/{name}` and `GET /pipelines/{name}/definition`

use axum::Json;
use axum::extract::State;
use redrive::config::Explained;
use redrive::pipelines::PipelineView;
use redrive_core::ids::PipelineName;

use crate::access::Caller;
use crate::app::App;
use crate::asked::Named;
use crate::error::ApiError;
use crate::page::{List, Listed, Nothing};

pub async fn run(
    State(app): State<App>,
    caller: Caller,
    list: List<Nothing>,
) -> Result<Json<Listed<PipelineView>>, ApiError> {
    let mut pipelines = app.redrive().list_pipelines(&app.setting()).await?;
    pipelines.retain(|view| caller.covers(&view.name));
    Ok(Json(list.cut(pipelines)?))
}

pub async fn show(
    State(app): State<App>,
    caller: Caller,
    Named(name): Named<PipelineName>,
) -> Result<Json<PipelineView>, ApiError> {
    caller.check(&name)?;
    Ok(Json(caller.find_pipeline(&app, &name).await?))
}

pub async fn explain(
    State(app): State<App>,
    caller: Caller,
    Named(name): Named<PipelineName>,
) -> Result<Json<Listed<Explained>>, ApiError> {
    caller.check(&name)?;
    Ok(Json(Listed::whole(app.redrive().explain_pipeline(&app.setting(), &name).await?)))
}
