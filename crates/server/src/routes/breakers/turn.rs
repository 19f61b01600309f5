//! `POST /breakers/close`, `/breakers/hold` and `/breakers/probe`

use axum::Json;
use axum::extract::State;
use redrive_core::breakers::{BreakerTurn, HeldBy};
use redrive_core::ids::PipelineName;
use redrive_core::seen::Version;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::access::Caller;
use crate::app::App;
use crate::asked::{Body, called, future, said};
use crate::error::ApiError;
use crate::shapes;

/// Which target, and for a hold until when and why.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = TurnBreaker)]
pub struct Asked {
    /// The target: the host of the jobs, or what their `target` says.
    #[serde(deserialize_with = "called")]
    target: String,
    /// Only of this pipeline.
    #[schema(value_type = Option<shapes::Name>)]
    pipeline: Option<PipelineName>,
    /// A hold: until this time, `2h` (from now), a day or a time; until it is closed if left out.
    until: Option<String>,
    /// A hold: why.
    #[serde(default, deserialize_with = "said")]
    why: Option<String>,
    /// `version` of the breaker of this pipeline as it was seen: if others changed it since, nothing is done.
    #[schema(value_type = Option<String>)]
    version: Option<Version>,
}

/// Where it was turned.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = TurnedBreakers)]
pub struct Answer {
    /// The pipelines.
    #[schema(value_type = Vec<shapes::Name>)]
    pipelines: Vec<PipelineName>,
}

pub async fn close(state: State<App>, caller: Caller, asked: Body<Asked>) -> Result<Json<Answer>, ApiError> {
    only_target(&asked.0)?;
    turn(state, caller, asked.0, BreakerTurn::Close).await
}

pub async fn probe(state: State<App>, caller: Caller, asked: Body<Asked>) -> Result<Json<Answer>, ApiError> {
    only_target(&asked.0)?;
    turn(state, caller, asked.0, BreakerTurn::Probe).await
}

pub async fn hold(state: State<App>, caller: Caller, asked: Body<Asked>) -> Result<Json<Answer>, ApiError> {
    let until = future("until", asked.0.until.as_deref(), state.0.redrive().asked_at())?;
    let held = HeldBy { by: caller.actor(), why: asked.0.why.clone(), until };
    turn(state, caller, asked.0, BreakerTurn::Hold(held)).await
}

fn only_target(asked: &Asked) -> Result<(), ApiError> {
    match (&asked.until, &asked.why) {
        (None, None) => Ok(()),
        (Some(_), _) => Err(ApiError::invalid("until", "only a hold has an end")),
        (_, Some(_)) => Err(ApiError::invalid("why", "only a hold has a reason")),
    }
}

async fn turn(
    State(app): State<App>,
    caller: Caller,
    asked: Asked,
    turn: BreakerTurn,
) -> Result<Json<Answer>, ApiError> {
    caller.check_all(asked.pipeline.as_ref())?;
    if asked.version.is_some() && asked.pipeline.is_none() {
        return Err(ApiError::invalid("pipeline", "a version is that of one pipeline's breaker: say of which"));
    }
    if asked.target.is_empty() {
        return Err(ApiError::invalid("target", "target is empty"));
    }
    if let Some(name) = &asked.pipeline {
        caller.find_pipeline(&app, name).await?;
    }
    let by = caller.actor();
    let (pipeline, seen) = (asked.pipeline.as_ref(), asked.version.as_ref());
    let pipelines = app.redrive().turn_breakers_as_seen(&asked.target, pipeline, &turn, &by, seen).await?;
    Ok(Json(Answer { pipelines }))
}
