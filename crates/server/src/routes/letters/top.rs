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
use crate::page::{List, Listed};

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
    /// Letters with other values: those of the pages that follow, too.
    others: i64,
    /// Where the next page begins: `cursor` of the next request. Not there on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

pub async fn run(State(app): State<App>, caller: Caller, mut fields: Fields) -> Result<Json<Answer>, ApiError> {
    let by = fields.take("by").ok_or_else(|| ApiError::invalid("by", "say by what to count"))?;
    let by: DeadBy = by.parse().map_err(|why: String| ApiError::invalid("by", why))?;
    let list = fields.list::<Filter>()?;
    caller.check_all(list.asked.pipeline.as_ref())?;
    let reach = list.reach()?;
    let List { asked, limit, cursor } = list;
    let page = List { asked: (), limit, cursor };
    let top = app.redrive().top_dead(asked.dead(&app)?, by.clone(), reach).await?;
    // The hours of a day are never more than a page.
    if by == DeadBy::Hour {
        return Ok(Json(Answer { items: top.lines, others: top.others, next: None }));
    }
    let letters: i64 = top.lines.iter().map(|line| line.dead).sum::<i64>() + top.others;
    let before: i64 = top.lines.iter().take(page.end()?).map(|line| line.dead).sum();
    let Listed { items, next } = page.cut(top.lines)?;
    Ok(Json(Answer { items, others: letters - before, next }))
}
