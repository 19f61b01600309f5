//! `GET /letters`

use axum::Json;
use axum::extract::State;
use redrive::contract::ListDead;
use redrive_core::dead::DeadLetter;
use utoipa::IntoParams;

use super::filter::Filter;
use crate::access::Caller;
use crate::app::App;
use crate::asked::Fields;
use crate::error::ApiError;
use crate::page::{List, Listed};

/// How letters are listed.
#[derive(IntoParams)]
#[allow(dead_code, reason = "only its description is of use")]
pub struct With {
    /// Each with all its failures.
    failures: Option<bool>,
}

pub async fn run(state: State<App>, caller: Caller, list: List<Filter>) -> Result<Json<Listed<DeadLetter>>, ApiError> {
    read(state, caller, list, false).await
}

/// The same, with all failures of each if that is wanted.
pub async fn run_with(
    state: State<App>,
    caller: Caller,
    mut fields: Fields,
) -> Result<Json<Listed<DeadLetter>>, ApiError> {
    let with_failures = match fields.take("failures").as_deref() {
        None | Some("false") => false,
        Some("true") => true,
        Some(other) => return Err(ApiError::invalid("failures", format!("{other:?} is neither true nor false"))),
    };
    read(state, caller, fields.list()?, with_failures).await
}

async fn read(
    State(app): State<App>,
    caller: Caller,
    List { mut asked, limit, cursor }: List<Filter>,
    with_failures: bool,
) -> Result<Json<Listed<DeadLetter>>, ApiError> {
    caller.check_each(&asked.pipeline)?;
    asked.narrow(&caller);
    let params = ListDead { filter: asked.dead(&app)?, limit, cursor, with_failures };
    let mut page = app.redrive().store().list_dead(params).await?;
    page.items.iter_mut().for_each(|letter| caller.strip(letter.failures.iter_mut().flatten()));
    Ok(Json(Listed::of(page, |letter| caller.covers(&letter.pipeline))))
}
