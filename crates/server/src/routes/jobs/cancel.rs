//! `POST /jobs/cancel`

use axum::Json;
use axum::extract::State;
use redrive::contract::IDS_MAX;
use redrive::jobs::JobError;
use redrive_core::ids::JobRef;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::access::Caller;
use crate::app::App;
use crate::asked::{Body, Text, reason};
use crate::error::ApiError;

/// Jobs that are to be discarded.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = CancelJobs)]
pub struct Asked {
    /// Which, by number, id or the end of an id: at most 1,000.
    #[schema(value_type = Vec<String>)]
    ids: Vec<Text<JobRef>>,
    /// Why, for the record.
    #[serde(deserialize_with = "reason")]
    why: String,
}

/// What became of them.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = CancelledJobs)]
pub struct Answer {
    /// Jobs that were discarded.
    cancelled: Vec<String>,
    /// Why the others were not.
    refused: Vec<String>,
    /// The same for programs.
    #[schema(value_type = Vec<Value>)]
    why_not: Vec<JobError>,
}

pub async fn run(State(app): State<App>, caller: Caller, Body(asked): Body<Asked>) -> Result<Json<Answer>, ApiError> {
    if asked.ids.len() > IDS_MAX {
        return Err(ApiError::too_large(format!("{} jobs at once: at most {IDS_MAX}", asked.ids.len())).at("ids"));
    }
    let named: Vec<_> = asked.ids.into_iter().map(|id| id.0).collect();
    let ids = app.redrive().find_jobs(&named).await?;
    caller.check_jobs(&app, &ids).await?;
    let cancelled = app.redrive().cancel_jobs(ids, &asked.why, &caller.actor()).await?;
    Ok(Json(Answer {
        cancelled: cancelled.jobs.iter().map(ToString::to_string).collect(),
        refused: cancelled.refused.iter().map(ToString::to_string).collect(),
        why_not: cancelled.refused,
    }))
}
