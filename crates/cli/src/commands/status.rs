//! `redrive status`: the ledger of every pipeline, what is held and why, workers; once, or again whenever something changed.

mod watch;

use std::collections::BTreeMap;

use anyhow::Result;
use redrive::contract::{ReplayView, WorkerView};
use redrive::status::{Status, WorkerStatus};
use redrive_client::Desk;
use redrive_core::holds::Hold;
use redrive_core::ids::PipelineName;
use redrive_core::ledger::Ledger;
use redrive_core::time::Timestamp;
use redrive_core::workers::Runs;

use super::alert;
use super::breaker;
use super::replay::versions;
use crate::args::StatusArgs;
use crate::exit::Exit;
use crate::output::foreign::cut;
use crate::output::json;
use crate::output::paint::{WAITING, paint};
use crate::output::print::out;
use crate::output::retrying;
use crate::output::table;
use crate::output::times::{ago, from_now};
use crate::output::typed::REDRIVE;
use crate::output::words;
use crate::setting::Setting;

/// At most so many pipelines are named whose results were removed.
const DROPPED_SHOWN: usize = 5;

pub async fn run(setting: &Setting, args: &StatusArgs) -> Result<Exit> {
    let redrive = setting.desk().await?;
    if args.watch {
        return watch::run(&redrive, args.json).await;
    }
    let status = redrive.status().await?;
    match args.json {
        true => json::document(&status)?,
        false => print(&redrive, &status).await?,
    }
    Ok(Exit::Ok)
}

/// Prints where everything stands.
async fn print(redrive: &Desk, status: &Status) -> Result<()> {
    let now = redrive.now();
    match status.pipelines.is_empty() {
        true => out!("no tasks yet: `{REDRIVE} run` or `{REDRIVE} push` brings some")?,
        false => show_ledgers(status)?,
    }
    show_results(&status.pipelines)?;
    if let Some(reads) = &status.payload_reads {
        out!("{}", table::wrapped(&format!("saved responses: {reads}"), ""))?;
    }
    if let Some(copying) = &status.copying {
        let (to, since) = (cut(&copying.to, 200), ago(copying.since, now));
        out!("\n{} to {to}, begun {since}: nothing can be written meanwhile", paint(WAITING, "being copied"))?;
        out!("    go on with: redrive store copy FROM TO, or give it up with: redrive store copy FROM --abort")?;
    }
    for (name, pause) in &status.pauses {
        let (who, since) = (cut(&pause.by.name, 30), ago(pause.since, now));
        out!("\n{} {name}, by {who}, {since}", paint(WAITING, "paused:"))?;
        if let Some(why) = &pause.why {
            out!("    {}", cut(why, table::line_width().saturating_sub(4)))?;
        }
        out!("    go on with: {REDRIVE} pipeline resume {name}")?;
    }
    show_holds(&status.workers, now)?;
    alert::lines::show(status.alerts.iter().map(|view| &view.alert), &status.failing_sinks)?;
    if !status.breakers.is_empty() {
        out!("")?;
        breaker::print(&status.breakers, now)?;
    }
    retrying::print(&status.retrying)?;
    show_replays(redrive, &status.replays).await?;
    show_workers(&status.workers, now)
}

fn show_ledgers(status: &Status) -> Result<()> {
    let row = |name: &PipelineName, l: &Ledger| {
        let counts = [l.accepted, l.queued, l.retrying, l.leased].map(|count| count.to_string());
        let ended = [done(l.done, status.done_elsewhere.get(name)), l.dead.to_string(), l.discarded.to_string()];
        std::iter::once(name.to_string()).chain(counts).chain(ended).collect::<Vec<_>>()
    };
    let rows: Vec<_> = status.pipelines.iter().map(|(name, ledger)| row(name, ledger)).collect();
    let headings = ["~=pipeline", ">tasks", ">queued", "?>retrying", ">running", ">done", ">died", ">discarded"];
    table::print(&headings, &rows)?;
    if !status.done_elsewhere.is_empty() {
        out!("{}", table::wrapped("done: what other programs ran and reported as done is added behind the +", ""))?;
    }
    Ok(())
}

/// Tasks that are done; what other programs ran and reported was never a task here, and stands behind a plus.
fn done(own: i64, elsewhere: Option<&i64>) -> String {
    elsewhere.map_or_else(|| own.to_string(), |elsewhere| format!("{own}+{elsewhere}"))
}

/// Says how many results the store keeps, and of which pipelines it had to remove some.
fn show_results(ledgers: &BTreeMap<PipelineName, Ledger>) -> Result<()> {
    let kept: i64 = ledgers.values().map(|ledger| ledger.results.kept).sum();
    if kept > 0 {
        out!("results kept: {kept}, see {REDRIVE} result export")?;
    }
    let dropped = ledgers.iter().filter(|(_, ledger)| ledger.results.dropped > 0);
    for (name, ledger) in dropped.take(DROPPED_SHOWN) {
        let removed = ledger.results.dropped;
        out!("{} {removed} results of {name}, which has more than kept_results_max", paint(WAITING, "removed:"))?;
    }
    Ok(())
}

/// The replays that are open, and what they wait for.
async fn show_replays(redrive: &Desk, replays: &[ReplayView]) -> Result<()> {
    if replays.is_empty() {
        return Ok(());
    }
    let row = |replay: &ReplayView| {
        let progress = &replay.progress;
        let counts = [progress.pending + progress.running, progress.recovered, progress.failed];
        let mut row = vec![words::ending(replay.id), replay.state.to_string()];
        row.extend(counts.map(|count| count.to_string()));
        row.push(replay.name.clone());
        row
    };
    out!("")?;
    let headings = ["replay", "state", ">left", ">recovered", ">died again", "name"];
    table::print_titled(&headings, &replays.iter().map(row).collect::<Vec<_>>())?;
    for replay in replays {
        let awaited = redrive.awaited_by(replay).await?;
        if !awaited.is_empty() {
            let id = words::ending(replay.id);
            out!("replay {id} waits for a worker with version {}", versions(&awaited))?;
        }
    }
    Ok(())
}

fn show_workers(workers: &[WorkerStatus], now: Timestamp) -> Result<()> {
    if workers.is_empty() {
        return Ok(());
    }
    let row = |WorkerStatus { worker: w, process }: &WorkerStatus| {
        let (state, since) = (process.as_str().to_owned(), ago(w.attached_at, now));
        let (worker, pid, tasks) = (words::ending(w.id), w.pid.to_string(), w.leases.to_string());
        vec![worker, w.host.clone(), pid, state, tasks, since, runs(w)]
    };
    out!("")?;
    let headings = ["worker", "~host", ">pid", "process", ">tasks", ">since", "runs"];
    Ok(table::print_titled(&headings, &workers.iter().map(row).collect::<Vec<_>>())?)
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
fn show_holds(workers: &[WorkerStatus], now: Timestamp) -> Result<()> {
    let alive = workers.iter().map(|status| &status.worker).filter(|worker| worker.alive);
    let holds = alive.flat_map(|worker| worker.holds.iter().map(move |hold| (worker, hold)));
    let row = |(worker, hold): (&WorkerView, &Hold)| {
        let (since, next_try) = (ago(hold.since, now), from_now(hold.next_try, now));
        vec![hold.pipeline.to_string(), worker.pid.to_string(), since, next_try, hold.why.clone()]
    };
    let rows: Vec<_> = holds.map(row).collect();
    if rows.is_empty() {
        return Ok(());
    }
    out!("")?;
    Ok(table::print_titled(&["~=held pipeline", ">pid", ">since", ">next try", "why"], &rows)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_reported_as_done_is_shown_apart() {
        assert_eq!((done(3, None), done(0, Some(&1_200))), ("3".to_owned(), "0+1200".to_owned()));
    }
}
