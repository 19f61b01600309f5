//! `GET /letters`

use axum::Json;
use axum::extract::State;
use redrive::contract::ListDead;
use redrive_core::dead::DeadLetter;

use super::filter::Filter;
use crate::access::Caller;
use crate::app::App;
use crate::error::ApiError;
use crate::page::{List, Listed};

pub async fn run(
    State(app): State<App>,
    caller: Caller,
    List { asked, limit, cursor }: List<Filter>,
) -> Result<Json<Listed<DeadLetter>>, ApiError> {
    caller.check_each(&asked.pipeline)?;
    let params = ListDead { filter: asked.dead(&app)?, limit, cursor, with_failures: false };
    let page = app.redrive().store().list_dead(params).await?;
    Ok(Json(Listed::of(page, |letter| caller.covers(&letter.pipeline))))
}
