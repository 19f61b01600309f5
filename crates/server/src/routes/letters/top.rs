//! `GET /letters/top`

use axum::Json;
use axum::extract::State;
use redrive::contract::{DeadBy, DeadFilter};
use redrive::dead::TopLine;
use redrive_core::causes::CauseId;
use redrive_core::failures::Reason;
use redrive_core::ids::{PipelineName, RoundName};
use serde::{Deserialize, Serialize};
use utoipa::IntoParams;

use crate::access::Caller;
use crate::app::App;
use crate::asked::{Number, Query, instant};
use crate::error::ApiError;
use crate::page::limit;

/// By what, and which letters.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub struct Asked {
    /// `pipeline`, `reason`, `code`, `status`, `target`, `proxy`, `cause`, `hour`, or a field of the input by JSON pointer, as `/sitekey`.
    by: String,
    /// Only of this pipeline.
    #[param(value_type = Option<String>)]
    pipeline: Option<PipelineName>,
    /// Only of this round.
    #[param(value_type = Option<String>)]
    round: Option<RoundName>,
    /// Only those that died for this reason.
    #[param(value_type = Option<String>)]
    reason: Option<Reason>,
    /// Only of this target.
    target: Option<String>,
    /// Only of this cause.
    #[param(value_type = Option<String>)]
    cause: Option<CauseId>,
    /// Only those that died since: `2h` (ago), a day or a time.
    since: Option<String>,
    /// Only those that died before.
    until: Option<String>,
    /// At most so many values, 1 to 1000.
    #[param(value_type = Option<u32>)]
    limit: Option<Number>,
}

/// What letters have in common.
#[derive(Debug, Serialize)]
pub struct Answer {
    /// The values, those of the most letters first.
    items: Vec<TopLine>,
    /// Letters with other values.
    others: i64,
}

pub async fn run(State(app): State<App>, caller: Caller, Query(asked): Query<Asked>) -> Result<Json<Answer>, ApiError> {
    caller.check_all(asked.pipeline.as_ref())?;
    let now = app.redrive().now();
    let by = by(&asked.by)?;
    let filter = DeadFilter {
        since: instant("since", asked.since.as_deref(), now)?,
        until: instant("until", asked.until.as_deref(), now)?,
        pipeline: asked.pipeline,
        round: asked.round,
        reason: asked.reason,
        target: asked.target,
        cause: asked.cause,
        ..DeadFilter::default()
    };
    let top = app.redrive().top_dead(filter, by, limit(asked.limit)?).await?;
    Ok(Json(Answer { items: top.lines, others: top.others }))
}

fn by(text: &str) -> Result<DeadBy, ApiError> {
    Ok(match text {
        "pipeline" => DeadBy::Pipeline,
        "reason" => DeadBy::Reason,
        "code" => DeadBy::Code,
        "status" => DeadBy::Status,
        "target" => DeadBy::Target,
        "proxy" => DeadBy::Proxy,
        "cause" => DeadBy::Cause,
        "hour" => DeadBy::Hour,
        field if field.starts_with('/') => DeadBy::Input(field.to_owned()),
        other => return Err(ApiError::invalid("by", format!("letters cannot be counted by {other:?}"))),
    })
}
