//! `redrive status`: the ledger of every pipeline, what is held and why, workers.

use anyhow::Result;
use redrive::config::Setting;
use redrive::contract::{BreakerView, WorkerView};
use redrive::status::Status;
use redrive_core::holds::Hold;
use redrive_core::ledger::Ledger;
use redrive_core::time::Timestamp;
use redrive_core::workers::{Runs, SILENT_AFTER};

use super::alert;
use super::replay::versions;
use crate::exit::Exit;
use crate::output::json;
use crate::output::print::out;
use crate::output::table;

pub async fn run(setting: &Setting, json: bool) -> Result<Exit> {
    let redrive = setting.redrive_existing().await?;
    let status = redrive.status().await?;
    if json {
        json::document(&status)?;
        return Ok(Exit::Ok);
    }
    let Status { pipelines: ledgers, replays, breakers, workers, alerts, failing_sinks } = status;
    if ledgers.is_empty() {
        out!("no jobs yet: `redrive run` or `redrive push` brings some")?;
        return Ok(Exit::Ok);
    }
    let row = |name: &str, l: &Ledger| {
        let counts = [l.accepted, l.queued, l.retrying, l.leased, l.done, l.dead, l.discarded];
        std::iter::once(name.to_owned()).chain(counts.map(|count| count.to_string())).collect::<Vec<_>>()
    };
    let rows: Vec<_> = ledgers.iter().map(|(name, ledger)| row(name.as_str(), ledger)).collect();
    let headings = ["pipeline", ">accepted", ">queued", ">retrying", ">leased", ">done", ">dead", ">discarded"];
    table::print(&headings, &rows)?;
    show_holds(&workers)?;
    show_breakers(&breakers)?;
    alert::lines::show(alerts.iter().map(|view| &view.alert), &failing_sinks)?;
    if !replays.is_empty() {
        out!("")?;
        let rows: Vec<_> = replays
            .iter()
            .map(|replay| {
                let progress = &replay.progress;
                let counts = [progress.pending + progress.running, progress.recovered, progress.failed];
                let mut row = vec![replay.id.to_string(), replay.state.to_string()];
                row.extend(counts.map(|count| count.to_string()));
                row.push(replay.name.clone());
                row
            })
            .collect();
        table::print(&["replay", "state", ">left", ">recovered", ">failed", "name"], &rows)?;
        for replay in &replays {
            let awaited = redrive.awaited_by(replay).await?;
            if !awaited.is_empty() {
                out!("replay {} waits for a worker with version {}", replay.id, versions(&awaited))?;
            }
        }
    }
    if !workers.is_empty() {
        out!("")?;
        let rows: Vec<_> = workers
            .iter()
            .map(|w| {
                let (state, since) = (process(w, redrive.now()).to_owned(), w.attached_at.to_string());
                vec![w.id.to_string(), w.host.clone(), w.pid.to_string(), state, w.leases.to_string(), since, runs(w)]
            })
            .collect();
        table::print(&["worker", "host", ">pid", "process", ">leases", "since", "runs"], &rows)?;
    }
    Ok(Exit::Ok)
}

/// What is known of a worker's process.
fn process(worker: &WorkerView, now: Timestamp) -> &'static str {
    let silent = worker.unproven_beat().is_some_and(|beat| now.since(beat.seen_at) > SILENT_AFTER);
    match (worker.alive, worker.remote, silent) {
        (false, ..) => "gone",
        (true, true, _) => "elsewhere",
        (true, false, true) => "silent",
        (true, false, false) => "alive",
    }
}

/// The pipelines that a worker works on, with the versions of their definitions.
fn runs(worker: &WorkerView) -> String {
    let written = |runs: &Runs| match &runs.definition {
        Some(version) => format!("{} {version}", runs.pipeline),
        None => runs.pipeline.to_string(),
    };
    worker.runs.iter().map(written).collect::<Vec<_>>().join(", ")
}

/// The pipelines that workers cannot work on, and why.
fn show_holds(workers: &[WorkerView]) -> Result<()> {
    let alive = workers.iter().filter(|worker| worker.alive);
    let holds = alive.flat_map(|worker| worker.holds.iter().map(move |hold| (worker, hold)));
    let row = |(worker, hold): (&WorkerView, &Hold)| {
        let (since, next_try) = (hold.since.to_string(), hold.next_try.to_string());
        vec![hold.pipeline.to_string(), worker.pid.to_string(), since, next_try, hold.why.clone()]
    };
    let rows: Vec<_> = holds.map(row).collect();
    if rows.is_empty() {
        return Ok(());
    }
    out!("")?;
    Ok(table::print_titled(&["held pipeline", ">pid", "since", "next try", "why"], &rows)?)
}

/// The targets that are waited for, and why.
fn show_breakers(breakers: &[BreakerView]) -> Result<()> {
    if breakers.is_empty() {
        return Ok(());
    }
    let row = |b: &BreakerView| {
        let state = format!("{:?}", b.breaker.state).to_lowercase();
        let opener = b.breaker.opened_by.as_ref().map(ToString::to_string);
        let why = opener.or_else(|| b.breaker.why.clone()).unwrap_or_default();
        let since = b.breaker.opened_at.unwrap_or(b.breaker.since).to_string();
        let next_try = b.breaker.open_until.to_string();
        vec![b.pipeline.to_string(), b.target.clone(), state, b.held.to_string(), since, next_try, why]
    };
    out!("")?;
    let rows: Vec<_> = breakers.iter().map(row).collect();
    Ok(table::print_titled(&["pipeline", "target", "breaker", ">held", "since", "next try", "opened by"], &rows)?)
}
