//! `GET /healthz` and `GET /readyz`: for who watches over the server. Neither needs a token, and neither tells anything else.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use redrive_core::failures::with_sources;
use serde_json::{Value, json};

use crate::app::App;

/// The process is there and answers.
pub async fn alive() -> Json<Value> {
    Json(json!({ "status": "ok" }))
}

/// The store can be read and is well.
pub async fn ready(State(app): State<App>) -> (StatusCode, Json<Value>) {
    match app.redrive().store().health().await {
        Ok(health) if health.problems.is_empty() => (StatusCode::OK, Json(json!({ "status": "ok" }))),
        Ok(health) => {
            tracing::warn!(problems = ?health.problems, "the store is not well");
            (StatusCode::SERVICE_UNAVAILABLE, Json(json!({ "status": "store_not_well" })))
        }
        Err(error) => {
            tracing::warn!(error = %with_sources(&error), "the store cannot be read");
            (StatusCode::SERVICE_UNAVAILABLE, Json(json!({ "status": "store_unavailable" })))
        }
    }
}
