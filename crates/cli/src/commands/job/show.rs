//! `redrive job show`: a job in any state, with its history.

use anyhow::Result;
use redrive::contract::JobDetail;

use super::super::dead::print_failures;
use crate::args::ShowArgs;
use crate::exit::Exit;
use crate::output::foreign::harmless;
use crate::output::json;
use crate::output::paint::{DIM, HEADING, of_state, paint};
use crate::output::print::out;
use crate::output::problem::within;
use crate::output::words;
use crate::setting::Setting;

pub async fn run(setting: &Setting, args: ShowArgs) -> Result<Exit> {
    let redrive = setting.desk().await?;
    let found = async { redrive.job(redrive.find_job(&args.id).await?).await };
    let detail = found.await.map_err(|error| within(setting, error))?;
    if args.json {
        json::document(&detail)?;
    } else {
        print(&detail)?;
    }
    Ok(Exit::Ok)
}

fn print(detail: &JobDetail) -> Result<()> {
    let job = &detail.job;
    let name = words::job(job.number, job.id);
    out!("{} {name}  {}", paint(HEADING, "task"), paint(of_state(job.state), words::state(job.state)))?;
    let time = |time: Option<redrive_core::time::Timestamp>| time.map(|time| time.to_string());
    for (name, value) in [
        ("id", Some(job.id.to_string())),
        ("pipeline", Some(job.pipeline.to_string())),
        ("key", job.key.clone()),
        ("target", job.target.clone()),
        ("tried", Some(format!("{} attempts, {} crashes, {} replays", job.attempts, job.crashes, job.replays))),
        ("accepted", time(Some(job.accepted_at))),
        ("due", time(job.due_at)),
        ("held", job.held.then(|| "its target's breaker is open".to_owned())),
        ("ended", time(job.ended_at)),
        ("discarded", detail.discard.as_ref().map(|record| format!("by {}: {}", record.actor, record.why))),
    ] {
        if let Some(value) = value {
            out!("  {} {}", paint(DIM, format!("{name:<9}")), harmless(&value))?;
        }
    }
    if let Some(input) = &job.input {
        out!("{}\n    {}", paint(HEADING, "input"), json::pretty(input)?.replace('\n', "\n    "))?;
    }
    if let Some(result) = &detail.result {
        out!("{}\n    {}", paint(HEADING, "result"), json::pretty(result)?.replace('\n', "\n    "))?;
    }
    if let Some(log) = &detail.log {
        out!("{}\n    {}", paint(HEADING, "printed before it"), harmless(log).trim_end().replace('\n', "\n    "))?;
    }
    print_failures(&detail.failures)?;
    for late in &detail.late {
        out!(
            "{} from worker {}: wanted {}, changed nothing",
            paint(HEADING, format!("late settlement at {}", late.at)),
            late.worker,
            late.destination
        )?;
    }
    Ok(())
}
