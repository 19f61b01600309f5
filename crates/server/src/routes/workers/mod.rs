//! Workers that live elsewhere, once they have nothing more to do.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use redrive_core::ids::WorkerId;
use redrive_core::tokens::Role;
use serde::Serialize;
use utoipa::ToSchema;

use crate::access::Caller;
use crate::app::App;
use crate::asked::Named;
use crate::error::ApiError;
use crate::route::Route;
use crate::shapes;

/// Its routes.
pub fn routes() -> Vec<Route> {
    let summary = "Take a worker off the list that has nothing more to do: one that has leases settles them first";
    vec![Route::delete("/workers/{id}", leave, summary).needs(Role::Worker).gives::<Left>()]
}

/// A worker that is not on the list any more.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = LeftWorker)]
pub struct Left {
    /// Who.
    #[schema(value_type = shapes::Uuid)]
    left: WorkerId,
}

async fn leave(State(app): State<App>, caller: Caller, Named(id): Named<WorkerId>) -> Result<Json<Left>, ApiError> {
    let known = app.redrive().store().list_workers().await?.into_iter().find(|worker| worker.id == id);
    // Whoever says it twice, or of a worker that is forgotten, is told the same.
    if let Some(known) = known {
        if !known.remote {
            return Err(ApiError::invalid("id", "it has the store itself: that it left is noticed without being said"));
        }
        caller.check_each(known.runs.iter().map(|runs| &runs.pipeline))?;
        if known.leases > 0 {
            let why = format!("it has {} leases: settle or return them first", known.leases);
            return Err(ApiError::new(StatusCode::CONFLICT, "leases_held", why).at("id"));
        }
        // Only if it has none still, and was not heard of meanwhile.
        app.redrive().store().forget_workers(known.remote_beat().into_iter().collect()).await?;
    }
    Ok(Json(Left { left: id }))
}
