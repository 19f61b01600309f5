//! `redrive job list`.

use std::io;

use anyhow::Result;
use redrive::contract::{JobFilter, ListJobs};
use redrive_core::jobs::JobView;
use redrive_core::time::Timestamp;

use super::super::filter;
use crate::args::JobListArgs;
use crate::exit::Exit;
use crate::output::print::out;
use crate::output::table;
use crate::output::times::from_now;
use crate::output::words;
use crate::setting::Setting;

pub async fn run(setting: &Setting, args: JobListArgs) -> Result<Exit> {
    let redrive = setting.desk().await?;
    let filter = JobFilter { states: args.state, ..filter::of_jobs(args.filter, redrive.now())? };
    let fetch = async |limit, cursor| redrive.list_jobs(ListJobs { filter: filter.clone(), limit, cursor }).await;
    let now = redrive.now();
    filter::print(&args.page, fetch, |jobs| print(jobs, now)).await
}

fn print(jobs: &[JobView], now: Timestamp) -> io::Result<()> {
    if jobs.is_empty() {
        return out!("no tasks");
    }
    let row = |job: &JobView| {
        let state = if job.held { "held" } else { words::state(job.state) };
        let when = job.ended_at.or(job.due_at).unwrap_or(job.accepted_at);
        let input = job.input.as_ref().and_then(|input| serde_json::to_string(input).ok());
        vec![
            words::job(job.number, job.id),
            job.pipeline.to_string(),
            state.to_owned(),
            from_now(when, now),
            job.attempts.to_string(),
            job.reason.map_or("-", |reason| reason.as_str()).to_owned(),
            job.target.clone().unwrap_or_else(|| "-".to_owned()),
            input.or_else(|| job.key.clone()).unwrap_or_else(|| "-".to_owned()),
        ]
    };
    let headings =
        [">no.", "~=pipeline", "state", ">due or ended", ">tries", "~last failure", "~=target", "input or key"];
    table::print_titled(&headings, &jobs.iter().map(row).collect::<Vec<_>>())
}
