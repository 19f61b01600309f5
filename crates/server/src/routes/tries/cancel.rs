//! `POST /tries/{id}/cancel`

use axum::Json;
use axum::extract::State;
use redrive_core::ids::TryId;

use super::list::{Shown, find};
use crate::access::Caller;
use crate::app::App;
use crate::asked::Named;
use crate::error::ApiError;

pub async fn run(State(app): State<App>, caller: Caller, Named(id): Named<TryId>) -> Result<Json<Shown>, ApiError> {
    find(&app, &caller, id).await?;
    app.redrive().cancel_try(id).await?;
    Ok(Json(find(&app, &caller, id).await?))
}
