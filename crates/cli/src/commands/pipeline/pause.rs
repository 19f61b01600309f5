//! `redrive pipeline pause` and `resume`.

use anyhow::Result;
use redrive::config::units;
use redrive_core::ids::PipelineName;
use redrive_core::pipelines::PauseWish;

use super::super::filter::actor;
use crate::args::PauseArgs;
use crate::exit::{Exit, usage};
use crate::output::print::out;
use crate::output::typed::REDRIVE;
use crate::setting::Setting;

pub async fn pause(setting: &Setting, args: PauseArgs) -> Result<Exit> {
    let redrive = setting.desk().await?;
    let name = args.name;
    let running = redrive.find_pipeline(setting, &name).await?.ledger.leased;
    let until = args.until.map(|text| units::future(&text, redrive.now())).transpose().map_err(usage)?;
    redrive.pause_pipeline(&name, PauseWish { why: args.why, until }, &actor()).await?;
    let until = until.map(|until| format!(" until {until}")).unwrap_or_default();
    out!("pipeline {name} is paused for every worker{until}: go on with `{REDRIVE} pipeline resume {name}`")?;
    if running > 0 {
        out!("{running} that run come to their end")?;
    }
    Ok(Exit::Ok)
}

pub async fn resume(setting: &Setting, name: &PipelineName) -> Result<Exit> {
    let redrive = setting.desk().await?;
    let queued = redrive.find_pipeline(setting, name).await?.ledger.queued;
    let pause = redrive.resume_pipeline(name, &actor()).await?;
    out!("pipeline {name} goes on, {queued} queued; it was {pause}")?;
    Ok(Exit::Ok)
}
