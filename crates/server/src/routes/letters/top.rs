//! `GET /letters/top`

use axum::Json;
use axum::extract::State;
use redrive::contract::DeadBy;
use redrive::dead::TopLine;
use serde::Serialize;
use utoipa::IntoParams;

use super::filter::Filter;
use crate::access::Caller;
use crate::app::App;
use crate::asked::Fields;
use crate::error::ApiError;
use crate::page::limit;

/// By what.
#[derive(IntoParams)]
#[allow(dead_code, reason = "only its description is of use")]
pub struct By {
    /// `pipeline`, `reason`, `code`, `status`, `target`, `proxy`, `cause`, `hour`, or a field of the input, as `input.sitekey` or by JSON pointer as `/sitekey`.
    by: String,
}

/// What letters have in common.
#[derive(Debug, Serialize)]
pub struct Answer {
    /// The values, those of the most letters first.
    items: Vec<TopLine>,
    /// Letters with other values.
    others: i64,
}

pub async fn run(State(app): State<App>, caller: Caller, mut fields: Fields) -> Result<Json<Answer>, ApiError> {
    let by = fields.take("by").ok_or_else(|| ApiError::invalid("by", "say by what to count"))?;
    let (by, limit): (DeadBy, u32) =
        (by.parse().map_err(|why: String| ApiError::invalid("by", why))?, limit(fields.take("limit"))?);
    let filter: Filter = fields.read()?;
    caller.check_all(filter.pipeline.as_ref())?;
    let top = app.redrive().top_dead(filter.dead(&app)?, by, limit).await?;
    Ok(Json(Answer { items: top.lines, others: top.others }))
}
