//! `redrive replay pause` and `cancel`.

use anyhow::Result;
use redrive::config::{Overrides, Setting};
use redrive::replays::ReplayRef;

use super::super::filter::actor;
use crate::exit::Exit;
use crate::output::print::out;

pub async fn pause(setting: &Setting, which: ReplayRef) -> Result<Exit> {
    let id = setting.redrive_existing().await?.pause_replay(which, &actor()).await?.id;
    out!("replay {id} is paused: go on with `redrive replay resume {id}`")?;
    Ok(Exit::Ok)
}

pub async fn cancel(setting: &Setting, which: ReplayRef) -> Result<Exit> {
    let redrive = setting.redrive_existing().await?;
    let found = redrive.find_cancellable(which).await?;
    // Whoever cancels a replay need not be able to work on it.
    let known = found.pipelines.into_iter().filter_map(|name| setting.pipeline(name, &Overrides::default()).ok());
    let known: Vec<_> = known.map(|(pipeline, _)| pipeline).collect();
    let replay = redrive.cancel_replay(ReplayRef::Id(found.id), &actor(), &known).await?;
    out!("replay {} is cancelled: {} letters stay dead as they were", replay.id, replay.progress.cancelled())?;
    if replay.progress.running > 0 {
        out!("{} that are being worked on come to their end", replay.progress.running)?;
    }
    Ok(Exit::Ok)
}
