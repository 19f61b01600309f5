//! `redrive replay pause` and `cancel`.

use anyhow::{Result, bail};
use redrive::config::Setting;
use redrive_store::contract::{ChangeReplay, ReplayChange};

use super::super::filter::actor;
use super::drive;
use crate::args::ReplayRef;
use crate::exit::Exit;
use crate::output::print::out;

pub async fn pause(setting: &Setting, which: ReplayRef) -> Result<Exit> {
    let id = change(setting, which, ReplayChange::Pause).await?.id;
    out!("replay {id} is paused: go on with `redrive replay resume {id}`")?;
    Ok(Exit::Ok)
}

pub async fn cancel(setting: &Setting, which: ReplayRef) -> Result<Exit> {
    let id = change(setting, which, ReplayChange::Cancel).await?.id;
    let progress = drive::find(&setting.redrive_existing().await?, ReplayRef::Id(id)).await?.progress;
    out!("replay {id} is cancelled: {} letters stay dead as they were", progress.cancelled())?;
    if progress.running > 0 {
        out!("{} that are being worked on come to their end", progress.running)?;
    }
    Ok(Exit::Ok)
}

/// Changes a replay; gives it as it was before.
async fn change(
    setting: &Setting,
    which: ReplayRef,
    change: ReplayChange,
) -> Result<redrive_store::contract::ReplayView> {
    let redrive = setting.redrive_existing().await?;
    let replay = drive::find(&redrive, which).await?;
    let id = replay.id;
    let params = ChangeReplay { id, change, actor: actor(), now: redrive.now() };
    match redrive.store().change_replay(params).await? {
        true => Ok(replay),
        false => bail!("replay {id} is {}", replay.state),
    }
}
