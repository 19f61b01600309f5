//! `GET /tries`, `GET /tries/{id}` and `GET /tries/{id}/letters`

use axum::Json;
use axum::extract::State;
use redrive::contract::{ListTried, TriedCount, TriedLetter, TryView};
use redrive_core::ids::TryId;
use serde::{Deserialize, Serialize};
use utoipa::IntoParams;

use crate::access::Caller;
use crate::app::App;
use crate::asked::{Named, Number, Query};
use crate::error::ApiError;
use crate::page::{Listed, limit};

/// Which letters of a try.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub struct Asked {
    /// At most so many, 1 to 1000.
    #[param(value_type = Option<u32>)]
    limit: Option<Number>,
    /// Where to go on: `next` of the page before.
    cursor: Option<String>,
}

/// A try, and how far it is.
#[derive(Debug, Serialize)]
pub struct Shown {
    #[serde(flatten)]
    kept: TryView,
    /// How many letters of each group are where.
    groups: Vec<TriedCount>,
}

fn may_see(caller: &Caller, kept: &TryView) -> Result<(), ApiError> {
    caller.check_each(kept.tried_with.keys())
}

pub async fn run(State(app): State<App>, caller: Caller) -> Result<Json<Listed<TryView>>, ApiError> {
    let mut kept = app.redrive().list_tries().await?;
    kept.retain(|kept| may_see(&caller, kept).is_ok());
    Ok(Json(Listed::whole(kept)))
}

pub async fn show(State(app): State<App>, caller: Caller, Named(id): Named<TryId>) -> Result<Json<Shown>, ApiError> {
    let (kept, groups) = app.redrive().try_by_id(id).await?;
    may_see(&caller, &kept)?;
    Ok(Json(Shown { kept, groups }))
}

pub async fn letters(
    State(app): State<App>,
    caller: Caller,
    Named(id): Named<TryId>,
    Query(asked): Query<Asked>,
) -> Result<Json<Listed<TriedLetter>>, ApiError> {
    let (kept, _) = app.redrive().try_by_id(id).await?;
    may_see(&caller, &kept)?;
    let params = ListTried { id, limit: limit(asked.limit)?, cursor: asked.cursor };
    Ok(Json(Listed::of(app.redrive().store().list_tried(params).await?, |_| true)))
}
