//! `redrive breaker list`.

use std::io;

use redrive::Error;
use redrive::api::breakers::{BreakerDetail, ListBreakers};
use redrive_client::Desk;
use redrive_core::breakers::{BreakerState, BreakerView, HeldBy};
use redrive_core::ids::PipelineName;
use redrive_core::time::Timestamp;

use crate::handle::Handle;
use crate::output::json;
use crate::output::print::out;
use crate::output::table;
use crate::output::times::{ago, from_now};

/// Prints breakers, as JSON or as a table.
pub fn run(details: Vec<BreakerDetail>, json: bool, now: Timestamp) -> io::Result<()> {
    let views: Vec<_> = details.into_iter().map(|detail| detail.view).collect();
    if json {
        views.iter().try_for_each(json::line)
    } else if views.is_empty() {
        out!("no target is waited for")
    } else {
        print(&views, now)
    }
}

/// Lists breakers for a command that shows them beside other things.
pub async fn list(desk: &Desk, pipeline: Option<PipelineName>) -> Result<Vec<BreakerView>, Error> {
    let details = Handle::from(desk).ask_all(ListBreakers { pipeline, ..ListBreakers::default() }).await?;
    Ok(details.into_iter().map(|detail| detail.view).collect())
}

/// Prints breakers, those that are not closed and those of which tasks still wait.
pub fn print(breakers: &[BreakerView], now: Timestamp) -> io::Result<()> {
    let row = |view: &BreakerView| {
        let breaker = &view.breaker;
        let since = breaker.opened_at.unwrap_or(breaker.since);
        let closed = breaker.state == BreakerState::Closed;
        vec![
            view.target.clone(),
            state(view).to_owned(),
            view.held.to_string(),
            if closed { "-".to_owned() } else { ago(since, now) },
            next_probe(view, now),
            view.pipeline.to_string(),
            breaker.explained().filter(|_| !closed).unwrap_or_else(|| "-".to_owned()),
        ]
    };
    let headings = ["~=target", "breaker", ">waiting", ">since", ">next try", "~=pipeline", "why"];
    table::print_titled(&headings, &breakers.iter().map(row).collect::<Vec<_>>())
}

fn state(view: &BreakerView) -> &'static str {
    match (view.breaker.state, &view.breaker.held_by) {
        (BreakerState::Closed, _) => "closed",
        (_, Some(_)) => "held",
        (BreakerState::Open, None) => "open",
        (BreakerState::HalfOpen, None) => "half-open",
    }
}

/// When a task goes to see, in words.
fn next_probe(view: &BreakerView, now: Timestamp) -> String {
    let breaker = &view.breaker;
    match (breaker.state, &breaker.held_by) {
        (_, Some(HeldBy { until: None, .. })) => "never".to_owned(),
        (BreakerState::Open, _) if breaker.open_until > now => from_now(breaker.open_until, now),
        _ => "now".to_owned(),
    }
}
