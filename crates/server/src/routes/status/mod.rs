//! Where everything stands, and whether the server is well.

pub mod health;
pub(crate) mod show;
mod whoami;

use axum::Json;
use axum::extract::State;
use redrive::contract::Audit;
use redrive_core::tokens::Role;
use serde_json::Value;

use crate::access::Caller;
use crate::app::App;
use crate::error::ApiError;
use crate::openapi;
use crate::route::Route;

/// Its routes.
pub fn routes() -> Vec<Route> {
    vec![
        Route::get("/status", show::run, "Where everything stands: ledgers, alerts, replays, breakers, workers")
            .gives_named("Status"),
        Route::get("/whoami", whoami::run, "Who asks, what they may do, and which version this server is")
            .gives::<whoami::Answer>(),
        Route::get("/audit", audit, "Recount everything: what does not add up, if anything")
            .needs(Role::Operator)
            .gives_named("Audit"),
        Route::get("/openapi.json", document, "This document").gives_schema(openapi::schema()),
    ]
}

async fn document() -> Json<&'static Value> {
    Json(openapi::document())
}

async fn audit(State(app): State<App>, caller: Caller) -> Result<Json<Audit>, ApiError> {
    caller.check_all(None)?;
    Ok(Json(app.redrive().store().audit().await?))
}
