//! `redrive breaker close`, `hold` and `probe`.

use anyhow::Result;
use redrive::config::units;
use redrive::contract::ListJobs;
use redrive_client::Desk;
use redrive_core::breakers::{BreakerTurn, HeldBy};
use redrive_core::ids::PipelineName;
use redrive_core::state::JobState;

use super::super::filter::actor;
use crate::args::{BreakerArgs, HoldArgs};
use crate::exit::{Exit, usage};
use crate::output::foreign::cut;
use crate::output::print::{out, say};
use crate::output::retrying::close;
use crate::output::typed::REDRIVE;
use crate::setting::Setting;

pub async fn run(setting: &Setting, args: BreakerArgs, turn: BreakerTurn) -> Result<Exit> {
    let redrive = setting.desk().await?;
    check(&redrive, setting, args.pipeline.as_ref()).await?;
    let target = redrive.breaker_target(&args.target).await?;
    let breakers = redrive.list_breakers(None).await?;
    let turned = redrive.turn_breakers(&target, args.pipeline.as_ref(), &turn, &actor()).await?;
    let of_them = breakers.iter().filter(|view| view.target == target && turned.contains(&view.pipeline));
    let held: u64 = of_them.map(|view| view.held).sum();
    let (target, pipelines) = (cut(&target, 60), listed(&turned));
    match turn {
        BreakerTurn::Close => out!("{target} is asked again in {pipelines}: {held} tasks go on")?,
        _ => out!("one task of {target} in {pipelines} goes now to see; {held} wait")?,
    }
    let pauses = redrive.pauses().await?;
    for name in turned.iter().filter(|name| pauses.contains_key(*name)) {
        out!("but pipeline {name} is paused: `{REDRIVE} pipeline resume {name}` lets it go on")?;
    }
    Ok(Exit::Ok)
}

pub async fn hold(setting: &Setting, args: HoldArgs) -> Result<Exit> {
    let redrive = setting.desk().await?;
    check(&redrive, setting, args.pipeline.as_ref()).await?;
    let target = redrive.breaker_target(&args.target).await?;
    let until = args.until.map(|text| units::future(&text, redrive.now())).transpose().map_err(usage)?;
    let turn = BreakerTurn::Hold(HeldBy { by: actor(), why: args.why, until });
    let pipelines = redrive.turn_breakers(&target, args.pipeline.as_ref(), &turn, &actor()).await?;
    let (shown, pipelines) = (cut(&target, 60), listed(&pipelines));
    let until = until.map_or_else(|| "until it is closed".to_owned(), |until| format!("until {until}"));
    out!("{shown} is held in {pipelines} {until}; `{}` lets it go on", close(&target, args.pipeline.as_ref()))?;
    if !is_queued(&redrive, &target).await {
        say!("note: no task of {shown} is queued now; `{REDRIVE} job list` shows the targets of those that are");
    }
    Ok(Exit::Ok)
}

/// Refuses a pipeline that nobody knows.
async fn check(redrive: &Desk, setting: &Setting, pipeline: Option<&PipelineName>) -> Result<()> {
    if let Some(name) = pipeline {
        redrive.find_pipeline(setting, name).await?;
    }
    Ok(())
}

/// Whether a task of the target is queued; if that cannot be seen in time it may be.
async fn is_queued(redrive: &Desk, target: &str) -> bool {
    let filter = redrive::contract::JobFilter {
        states: vec![JobState::Queued],
        target: Some(target.to_owned()),
        ..Default::default()
    };
    let found = redrive.list_jobs(ListJobs { filter, limit: 1, cursor: None }).await;
    found.map_or(true, |page| !page.items.is_empty())
}

fn listed(pipelines: &[PipelineName]) -> String {
    let names: Vec<_> = pipelines.iter().map(|name| format!("pipeline {name}")).collect();
    names.join(", ")
}
