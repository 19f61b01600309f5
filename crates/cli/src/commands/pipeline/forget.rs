//! `redrive pipeline forget`.

use anyhow::Result;
use redrive_core::ids::PipelineName;

use super::super::filter::actor;
use crate::exit::Exit;
use crate::output::print::out;
use crate::setting::Setting;

pub async fn run(setting: &Setting, name: &PipelineName) -> Result<Exit> {
    setting.desk().await?.forget_pipeline(setting, name, &actor()).await?;
    out!("pipeline {name} is forgotten")?;
    Ok(Exit::Ok)
}
