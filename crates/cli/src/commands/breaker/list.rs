//! `redrive breaker list`.

use std::io;

use anyhow::Result;
use redrive_core::breakers::{BreakerState, BreakerView, HeldBy};
use redrive_core::time::Timestamp;

use crate::args::BreakerListArgs;
use crate::exit::Exit;
use crate::output::json;
use crate::output::print::out;
use crate::output::table;
use crate::output::times::{ago, from_now};
use crate::setting::Setting;

pub async fn run(setting: &Setting, args: BreakerListArgs) -> Result<Exit> {
    let redrive = setting.desk().await?;
    let breakers = redrive.list_breakers(args.pipeline.as_ref()).await?;
    if args.json {
        breakers.iter().try_for_each(json::line)?;
    } else if breakers.is_empty() {
        out!("no target is waited for")?;
    } else {
        print(&breakers, redrive.now())?;
    }
    Ok(Exit::Ok)
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
