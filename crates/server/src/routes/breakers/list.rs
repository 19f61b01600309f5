//! `GET /breakers`

use axum::Json;
use axum::extract::State;
use redrive::contract::BreakerView;
use redrive_core::ids::PipelineName;
use serde::Deserialize;
use utoipa::IntoParams;

use crate::access::Caller;
use crate::app::App;
use crate::asked::Query;
use crate::error::ApiError;
use crate::page::Listed;

/// Which breakers.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub struct Asked {
    /// Only of this pipeline.
    #[param(value_type = Option<String>)]
    pipeline: Option<PipelineName>,
}

pub async fn run(
    State(app): State<App>,
    caller: Caller,
    Query(asked): Query<Asked>,
) -> Result<Json<Listed<BreakerView>>, ApiError> {
    asked.pipeline.iter().try_for_each(|name| caller.check(name))?;
    let mut breakers = app.redrive().list_breakers(asked.pipeline.as_ref()).await?;
    breakers.retain(|view| caller.covers(&view.pipeline));
    Ok(Json(Listed::whole(breakers)))
}
