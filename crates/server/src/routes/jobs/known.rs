//! `POST /jobs/known`

use axum::Json;
use axum::extract::State;
use redrive::contract::{FindTasks, KnownTask};
use redrive_core::ids::{PipelineName, RoundName};
use redrive_core::state::JobState;
use redrive_core::time::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::access::Caller;
use crate::app::App;
use crate::asked::Body;
use crate::error::ApiError;
use crate::shapes;

/// The most keys of one request.
const KEYS_MAX: usize = 10_000;

/// Keys of which it is asked who has them. Nothing is changed by asking.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = FindJobs)]
pub struct Asked {
    /// The pipeline.
    #[schema(value_type = shapes::Name)]
    pipeline: PipelineName,
    /// The round, if there are rounds.
    #[schema(value_type = Option<shapes::Name>)]
    round: Option<RoundName>,
    /// The keys: at most 10,000.
    keys: Vec<String>,
}

/// The jobs that have them, in their order; nothing where nobody has one.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = FoundJobs)]
pub struct Answer {
    jobs: Vec<Option<Known>>,
}

/// A job that has a key.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = FoundJob)]
pub struct Known {
    /// Which.
    id: String,
    /// Where it is.
    #[schema(value_type = String)]
    state: JobState,
    /// When it came to its end, if it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    ended_at: Option<Timestamp>,
}

pub async fn run(State(app): State<App>, caller: Caller, Body(asked): Body<Asked>) -> Result<Json<Answer>, ApiError> {
    let Asked { pipeline, round, keys } = asked;
    caller.check(&pipeline)?;
    if keys.len() > KEYS_MAX {
        return Err(ApiError::too_large(format!("{} keys at once: at most {KEYS_MAX}", keys.len())).at("keys"));
    }
    let found = app.redrive().store().known_tasks(FindTasks { pipeline, round, keys }).await?;
    let known = |KnownTask { id, state, ended_at }| Known { id: id.to_string(), state, ended_at };
    Ok(Json(Answer { jobs: found.into_iter().map(|found| found.map(known)).collect() }))
}
