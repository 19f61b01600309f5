//! `GET /metrics`: Prometheus text. What the store counts is read at each scrape, and only grows where it is a counter, over restarts and
//! whatever is forgotten; what this process measures begins at nothing with it. Labels are pipelines, reasons, states and routes: never
//! what jobs are about.

mod families;
mod page;
mod text;

use axum::extract::State;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use redrive::numbers::Numbers;
use redrive_core::ids::PipelineName;

pub use self::families::FAMILIES;
use crate::access::Caller;
use crate::app::App;
use crate::error::ApiError;
use crate::routes::status::show::keep_theirs;

/// What the text is, as scrapers expect it.
const KIND: HeaderValue = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");

/// The most pipelines that have series of their own: who may report letters may make pipelines.
const PIPELINES_MAX: usize = 200;

/// The numbers.
pub async fn run(State(app): State<App>, caller: Caller) -> Result<Response, ApiError> {
    let has_server = app.setting().location.is_shared();
    let mut numbers = app.redrive().numbers(app.vault(), has_server).await?;
    let left_out = keep_some(&mut numbers, &caller);
    let text = page::page(&numbers, caller.covers_all().then(|| app.measured()), left_out);
    Ok(([(header::CONTENT_TYPE, KIND)], text).into_response())
}

/// Leaves out pipelines that are not for who asks, and those that are too many, of which those with most jobs are kept; says how many.
fn keep_some(numbers: &mut Numbers, caller: &Caller) -> usize {
    keep_theirs(&mut numbers.status, caller);
    let ledgers = &mut numbers.status.pipelines;
    let mut by_jobs: Vec<_> = ledgers.iter().map(|(name, ledger)| (-ledger.accepted, name.clone())).collect();
    by_jobs.sort();
    for (_, name) in by_jobs.iter().skip(PIPELINES_MAX) {
        ledgers.remove(name);
    }
    let kept = |name: &PipelineName| ledgers.contains_key(name);
    numbers.totals.retain(|total| kept(&total.pipeline));
    numbers.oldest_dead.retain(|(name, _)| kept(name));
    numbers.due_since.retain(|name, _| kept(name));
    numbers.status.breakers.retain(|view| kept(&view.pipeline));
    numbers.status.pauses.retain(|name, _| kept(name));
    by_jobs.len().saturating_sub(PIPELINES_MAX)
}
