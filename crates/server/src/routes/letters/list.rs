//! `GET /letters`

use axum::Json;
use axum::extract::State;
use redrive::contract::{DeadFilter, ListDead};
use redrive_core::causes::CauseId;
use redrive_core::dead::{DeadLetter, Gate};
use redrive_core::failures::Reason;
use redrive_core::ids::{PipelineName, RoundName};
use serde::Deserialize;
use utoipa::IntoParams;

use crate::access::Caller;
use crate::app::App;
use crate::asked::{Number, Query, instant};
use crate::error::ApiError;
use crate::page::{Listed, limit};

/// Which letters.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub struct Asked {
    /// Only of this pipeline.
    #[param(value_type = Option<String>)]
    pipeline: Option<PipelineName>,
    /// Only of this round.
    #[param(value_type = Option<String>)]
    round: Option<RoundName>,
    /// Only those that died for this reason.
    #[param(value_type = Option<String>)]
    reason: Option<Reason>,
    /// Only with this code.
    code: Option<String>,
    /// Only of this target.
    target: Option<String>,
    /// Only of this cause; the beginning of its id is enough.
    #[param(value_type = Option<String>)]
    cause: Option<CauseId>,
    /// Only through this proxy, by its label.
    proxy: Option<String>,
    /// Only with this gate.
    #[param(value_type = Option<String>)]
    gate: Option<Gate>,
    /// Only those that died since: `2h` (ago), a day or a time.
    since: Option<String>,
    /// Only those that died before.
    until: Option<String>,
    /// Only those with this text in their key, message or input.
    text: Option<String>,
    /// At most so many, 1 to 1000.
    #[param(value_type = Option<u32>)]
    limit: Option<Number>,
    /// Where to go on: `next` of the page before.
    cursor: Option<String>,
}

pub async fn run(
    State(app): State<App>,
    caller: Caller,
    Query(asked): Query<Asked>,
) -> Result<Json<Listed<DeadLetter>>, ApiError> {
    asked.pipeline.iter().try_for_each(|name| caller.check(name))?;
    let now = app.redrive().now();
    let filter = DeadFilter {
        since: instant("since", asked.since.as_deref(), now)?,
        until: instant("until", asked.until.as_deref(), now)?,
        pipeline: asked.pipeline,
        round: asked.round,
        reason: asked.reason,
        code: asked.code,
        target: asked.target,
        cause: asked.cause,
        proxy: asked.proxy,
        gate: asked.gate,
        text: asked.text,
    };
    let params = ListDead { filter, limit: limit(asked.limit)?, cursor: asked.cursor, with_failures: false };
    let page = app.redrive().store().list_dead(params).await?;
    Ok(Json(Listed::of(page, |letter| caller.covers(&letter.pipeline))))
}
