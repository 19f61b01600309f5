//! `redrive replay pause` and `cancel`.

use anyhow::{Result, bail};
use redrive_core::ids::ReplayId;
use redrive_store::contract::{ChangeReplay, ReplayChange};

use super::super::filter::actor;
use super::drive;
use crate::exit::Exit;
use crate::output::print::out;
use crate::setting::Setting;

pub async fn pause(setting: &Setting, id: ReplayId) -> Result<Exit> {
    change(setting, id, ReplayChange::Pause).await?;
    out!("replay {id} is paused: go on with `redrive replay resume {id}`")?;
    Ok(Exit::Ok)
}

pub async fn cancel(setting: &Setting, id: ReplayId) -> Result<Exit> {
    change(setting, id, ReplayChange::Cancel).await?;
    let replay = drive::find(&setting.redrive_existing()?, id).await?;
    let left = replay.progress.total - replay.progress.recovered - replay.progress.failed - replay.progress.gone;
    out!("replay {id} is cancelled: {} letters stay dead as they were", left - replay.progress.running)?;
    if replay.progress.running > 0 {
        out!("{} that are being worked on come to their end", replay.progress.running)?;
    }
    Ok(Exit::Ok)
}

/// Changes a replay; gives it as it was before.
async fn change(setting: &Setting, id: ReplayId, change: ReplayChange) -> Result<redrive_store::contract::ReplayView> {
    let redrive = setting.redrive_existing()?;
    let replay = drive::find(&redrive, id).await?;
    let params = ChangeReplay { id, change, actor: actor(), now: redrive.now() };
    match redrive.store().change_replay(params).await? {
        true => Ok(replay),
        false => bail!("replay {id} is {}", replay.state),
    }
}
