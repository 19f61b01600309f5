//! `GET /tries`, `GET /tries/{id}` and `GET /tries/{id}/letters`

use axum::Json;
use axum::extract::State;
use redrive::contract::{ListTried, TriedCount, TriedLetter, TryView};
use redrive_core::ids::TryId;
use serde::Serialize;

use crate::access::Caller;
use crate::app::App;
use crate::asked::Named;
use crate::error::ApiError;
use crate::page::{List, Listed, Nothing};

/// A try, and how far it is.
#[derive(Debug, Serialize)]
pub struct Shown {
    #[serde(flatten)]
    kept: TryView,
    /// How many letters of each group are where.
    groups: Vec<TriedCount>,
}

/// Refuses who may not see a try.
pub fn may_see(caller: &Caller, kept: &TryView) -> Result<(), ApiError> {
    caller.check_each(kept.tried_with.keys())
}

pub async fn run(
    State(app): State<App>,
    caller: Caller,
    list: List<Nothing>,
) -> Result<Json<Listed<TryView>>, ApiError> {
    let mut tries = app.redrive().list_tries().await?;
    tries.retain(|kept| may_see(&caller, kept).is_ok());
    Ok(Json(list.cut(tries.into_iter().map(|kept| shown_to(&caller, kept)).collect())?))
}

/// A try as somebody may see it: what would come of a letter is made of what is on its page.
fn shown_to(caller: &Caller, mut kept: TryView) -> TryView {
    if caller.check_payloads().is_err()
        && let Some(outcome) = kept.outcome.as_object_mut()
    {
        outcome.remove("record");
    }
    kept
}

pub async fn show(State(app): State<App>, caller: Caller, Named(id): Named<TryId>) -> Result<Json<Shown>, ApiError> {
    find(&app, &caller, id).await.map(Json)
}

/// A try that who asks may see.
pub async fn find(app: &App, caller: &Caller, id: TryId) -> Result<Shown, ApiError> {
    let (kept, groups) = app.redrive().try_by_id(id).await?;
    may_see(caller, &kept)?;
    Ok(Shown { kept: shown_to(caller, kept), groups })
}

pub async fn letters(
    State(app): State<App>,
    caller: Caller,
    Named(id): Named<TryId>,
    List { limit, cursor, .. }: List<Nothing>,
) -> Result<Json<Listed<TriedLetter>>, ApiError> {
    let (kept, _) = app.redrive().try_by_id(id).await?;
    may_see(&caller, &kept)?;
    let params = ListTried { id, limit, cursor };
    let mut page = app.redrive().store().list_tried(params).await?;
    if caller.check_payloads().is_err() {
        page.items.iter_mut().for_each(|letter| letter.details.record = None);
    }
    Ok(Json(Listed::of(page)))
}
