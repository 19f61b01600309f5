//! `GET /status`

use axum::Json;
use axum::extract::State;
use redrive::status::Status;

use crate::access::Caller;
use crate::app::App;
use crate::error::ApiError;

pub async fn run(State(app): State<App>, caller: Caller) -> Result<Json<Status>, ApiError> {
    let mut status = app.redrive().status().await?;
    keep_theirs(&mut status, &caller);
    Ok(Json(status))
}

/// Leaves out what is not of pipelines that somebody may see.
pub fn keep_theirs(status: &mut Status, caller: &Caller) {
    if caller.covers_all() {
        return;
    }
    status.pipelines.retain(|name, _| caller.covers(name));
    status.done_elsewhere.retain(|name, _| caller.covers(name));
    status.replays.retain(|replay| caller.covers_each(&replay.pipelines));
    status.breakers.retain(|view| caller.covers(&view.pipeline));
    status.retrying.retain(|view| caller.covers(&view.pipeline));
    for worker in &mut status.workers {
        worker.worker.runs.retain(|runs| caller.covers(&runs.pipeline));
        worker.worker.holds.retain(|hold| caller.covers(&hold.pipeline));
    }
    status.workers.retain(|worker| !worker.worker.runs.is_empty());
    status.alerts.retain(|view| view.alert.pipeline.as_ref().is_some_and(|name| caller.covers(name)));
    status.failing_sinks.clear();
    status.payload_reads = None;
    status.pauses.retain(|name, _| caller.covers(name));
}
