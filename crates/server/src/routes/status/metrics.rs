//! `GET /metrics`: Prometheus text, read from the store at each scrape. Labels are pipelines and states, never what jobs are about.

use std::fmt::{Display, Write};

use axum::extract::State;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use redrive::status::Status;
use redrive_core::breakers::BreakerState;
use redrive_core::time::Timestamp;

use crate::access::Caller;
use crate::app::App;
use crate::error::ApiError;

/// What the text is, as scrapers expect it.
const KIND: HeaderValue = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");

/// The numbers.
pub async fn run(State(app): State<App>, caller: Caller) -> Result<Response, ApiError> {
    let redrive = app.redrive();
    let mut status = redrive.status().await?;
    status.pipelines.retain(|name, _| caller.covers(name));
    status.breakers.retain(|view| caller.covers(&view.pipeline));
    let mut oldest = redrive.store().oldest_dead().await?;
    oldest.retain(|(name, _)| caller.covers(name));
    let ages = oldest.into_iter().map(|(name, at)| (name.to_string(), age_secs(at, redrive.now())));
    let text = page(&status, &ages.collect::<Vec<_>>());
    Ok(([(header::CONTENT_TYPE, KIND)], text).into_response())
}

fn age_secs(at: Timestamp, now: Timestamp) -> f64 {
    now.since(at).as_secs_f64()
}

fn page(status: &Status, ages: &[(String, f64)]) -> String {
    let mut text = Text::default();
    let ledgers: Vec<_> = status.pipelines.iter().map(|(name, ledger)| (name.as_str(), ledger)).collect();
    text.family("redrive_jobs_accepted_total", "counter", "Jobs ever accepted.");
    for (pipeline, ledger) in &ledgers {
        text.sample("redrive_jobs_accepted_total", &[("pipeline", pipeline)], ledger.accepted);
    }
    text.family("redrive_jobs", "gauge", "Jobs by state.");
    for (pipeline, ledger) in &ledgers {
        let states = [
            ("queued", ledger.queued),
            ("leased", ledger.leased),
            ("done", ledger.done),
            ("dead", ledger.dead),
            ("discarded", ledger.discarded),
        ];
        for (state, count) in states {
            text.sample("redrive_jobs", &[("pipeline", pipeline), ("state", state)], count);
        }
    }
    text.family("redrive_oldest_dead_age_seconds", "gauge", "Age of the oldest dead letter.");
    for (pipeline, age) in ages {
        text.sample("redrive_oldest_dead_age_seconds", &[("pipeline", pipeline)], age);
    }
    let open = |view: &&redrive::contract::BreakerView| view.breaker.state != BreakerState::Closed;
    text.family("redrive_breakers_open", "gauge", "Targets that are waited for.");
    text.family_of_one("redrive_breakers_open", status.breakers.iter().filter(open).count());
    text.family("redrive_replays_open", "gauge", "Replays that have not ended, at most 20.");
    text.family_of_one("redrive_replays_open", status.replays.len());
    text.family("redrive_workers", "gauge", "Workers that are there.");
    text.family_of_one("redrive_workers", status.workers.iter().filter(|worker| worker.worker.alive).count());
    text.family("redrive_alerts_firing", "gauge", "Alerts that fire.");
    text.family_of_one("redrive_alerts_firing", status.alerts.len());
    text.0
}

/// Text that is being written.
#[derive(Default)]
struct Text(String);

impl Text {
    fn family(&mut self, name: &str, kind: &str, help: &str) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn family_of_one(&mut self, name: &str, value: impl Display) {
        self.sample(name, &[], value);
    }

    /// Names of pipelines need no escape: they have neither quotes nor backslashes.
    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: impl Display) {
        let labels: Vec<_> = labels.iter().map(|(label, value)| format!("{label}=\"{value}\"")).collect();
        let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        let _ = writeln!(self.0, "{name}{labels} {value}");
    }
}
