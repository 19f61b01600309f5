//! `redrive replay pause`, `rate` and `cancel`.

use anyhow::Result;
use redrive::config::units;
use redrive::replays::ReplayRef;

use super::super::filter::actor;
use crate::exit::{Exit, usage};
use crate::output::print::out;
use crate::output::typed::REDRIVE;
use crate::setting::Setting;

pub async fn pause(setting: &Setting, which: ReplayRef) -> Result<Exit> {
    let id = setting.desk().await?.pause_replay(which, &actor()).await?.id;
    out!("replay {id} is paused: go on with `{REDRIVE} replay resume {id}`")?;
    Ok(Exit::Ok)
}

pub async fn rate(setting: &Setting, which: ReplayRef, rate: &str) -> Result<Exit> {
    let rate = units::rate_or_none(rate).map_err(usage)?;
    let replay = setting.desk().await?.rate_replay(which, rate, &actor()).await?;
    match replay.pacing.per_second {
        Some(rate) => out!("replay {} goes at {rate} letters a second at most", replay.id)?,
        None => out!("replay {} goes as fast as its letters are worked on", replay.id)?,
    }
    Ok(Exit::Ok)
}

pub async fn cancel(setting: &Setting, which: ReplayRef) -> Result<Exit> {
    let replay = setting.desk().await?.cancel_replay(setting, which, &actor()).await?;
    out!("replay {} is cancelled: {} letters stay dead as they were", replay.id, replay.progress.cancelled())?;
    if replay.progress.running > 0 {
        out!("{} that are being worked on come to their end", replay.progress.running)?;
    }
    Ok(Exit::Ok)
}
