//! `redrive replay pause` and `cancel`.

use anyhow::Result;
use redrive::replays::ReplayRef;

use super::super::filter::actor;
use crate::exit::Exit;
use crate::output::print::out;
use crate::setting::Setting;

pub async fn pause(setting: &Setting, which: ReplayRef) -> Result<Exit> {
    let id = setting.desk().await?.pause_replay(which, &actor()).await?.id;
    out!("replay {id} is paused: go on with `redrive replay resume {id}`")?;
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
