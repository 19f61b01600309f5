//! `redrive job list`.

use std::io;

use anyhow::Result;
use redrive::config::Setting;
use redrive::contract::{JobFilter, ListJobs};
use redrive_core::jobs::JobView;

use super::super::filter;
use crate::args::JobListArgs;
use crate::exit::Exit;
use crate::output::foreign::cut;
use crate::output::print::out;
use crate::output::table;

pub async fn run(setting: &Setting, args: JobListArgs) -> Result<Exit> {
    let redrive = setting.redrive_existing().await?;
    let filter = JobFilter { states: args.state, ..filter::of_jobs(args.filter, redrive.now())? };
    let fetch =
        async |limit, cursor| redrive.store().list_jobs(ListJobs { filter: filter.clone(), limit, cursor }).await;
    filter::print(&args.page, fetch, print).await
}

fn print(jobs: &[JobView]) -> io::Result<()> {
    if jobs.is_empty() {
        return out!("no jobs");
    }
    let row = |job: &JobView| {
        let state = if job.held { "held".to_owned() } else { job.state.to_string() };
        let when = job.ended_at.or(job.due_at).unwrap_or(job.accepted_at).to_string();
        let input = job.input.as_ref().and_then(|input| serde_json::to_string(input).ok());
        vec![
            job.id.to_string(),
            job.pipeline.to_string(),
            state,
            when.get(..19).unwrap_or(&when).replace('T', " "),
            job.attempts.to_string(),
            job.reason.map_or("-", |reason| reason.as_str()).to_owned(),
            cut(job.target.as_deref().unwrap_or("-"), 28),
            input.or_else(|| job.key.clone()).unwrap_or_else(|| "-".to_owned()),
        ]
    };
    let headings =
        ["id", "pipeline", "state", "due or ended (UTC)", ">tries", "last failure", "target", "input or key"];
    table::print(&headings, &jobs.iter().map(row).collect::<Vec<_>>())
}
