//! `GET /causes`

use axum::Json;
use axum::extract::State;
use redrive::contract::{CauseView, ListCauses};
use redrive_core::causes::CauseState;
use redrive_core::ids::PipelineName;
use serde::Deserialize;
use utoipa::IntoParams;

use crate::access::Caller;
use crate::app::App;
use crate::asked::{Flag, Number, Query, Several};
use crate::error::ApiError;
use crate::page::{Listed, limit};

/// Which causes.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub struct Asked {
    /// Only of this pipeline.
    #[param(value_type = Option<String>)]
    pipeline: Option<PipelineName>,
    /// Only in these states, with commas between them.
    #[serde(default)]
    #[param(value_type = Option<String>)]
    state: Several<CauseState>,
    /// Only of this owner.
    owner: Option<String>,
    /// Also causes that no letter is dead of any more.
    #[serde(default)]
    #[param(value_type = Option<bool>)]
    all: Flag,
    /// At most so many, 1 to 1000.
    #[param(value_type = Option<u32>)]
    limit: Option<Number>,
}

pub async fn run(
    State(app): State<App>,
    caller: Caller,
    Query(asked): Query<Asked>,
) -> Result<Json<Listed<CauseView>>, ApiError> {
    asked.pipeline.iter().try_for_each(|name| caller.check(name))?;
    let params = ListCauses {
        ids: Vec::new(),
        pipeline: asked.pipeline,
        // Causes that were resolved are over, unless they are asked for.
        with_empty: asked.all.0 || asked.state.0.contains(&CauseState::Resolved),
        states: asked.state.0,
        owner: asked.owner,
        limit: limit(asked.limit)?,
        now: app.redrive().now(),
    };
    let mut causes = app.redrive().store().list_causes(params).await?;
    causes.retain(|cause| caller.covers(&cause.pipeline));
    Ok(Json(Listed::whole(causes)))
}
