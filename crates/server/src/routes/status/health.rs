//! `GET /healthz` and `GET /readyz`: for who watches over the server. Neither needs a token, and neither tells anything else.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use redrive_core::failures::with_sources;
use serde_json::{Value, json};

use crate::app::App;

/// How long the store may take to answer.
const ANSWERED_WITHIN: Duration = Duration::from_secs(5);

/// The process is there and answers.
pub async fn alive() -> Json<Value> {
    Json(json!({ "status": "ok" }))
}

/// Whether it is worth asking: the store answers, and the server is not about to stop. The file of the store is not looked through for
/// that: whoever asks every few seconds, and needs no token, must not cost more than a moment.
pub async fn ready(State(app): State<App>) -> (StatusCode, Json<Value>) {
    let not_so = |status: &str| (StatusCode::SERVICE_UNAVAILABLE, Json(json!({ "status": status })));
    if app.stopping().is_cancelled() {
        return not_so("stopping");
    }
    match tokio::time::timeout(ANSWERED_WITHIN, app.redrive().store().pauses()).await {
        Ok(Ok(_)) => (StatusCode::OK, Json(json!({ "status": "ok" }))),
        Ok(Err(error)) => {
            tracing::warn!(error = %with_sources(&error), "the store cannot be read");
            not_so("store_unavailable")
        }
        Err(_) => {
            tracing::warn!("the store does not answer");
            not_so("store_unavailable")
        }
    }
}
