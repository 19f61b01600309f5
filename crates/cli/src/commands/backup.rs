//! `redrive backup` and `redrive restore`.

use std::future::Future;

use anyhow::Result;
use redrive::backup::BackedUp;
use redrive::config::Setting;
use redrive::{CancellationToken, Error};

use super::filter::actor;
use super::signals;
use crate::args::{BackupArgs, RestoreArgs};
use crate::exit::Exit;
use crate::output::json;
use crate::output::paint::{BAD, GOOD, paint};
use crate::output::print::out;
use crate::output::progress::Counter;

/// Writes a backup.
pub async fn make(setting: &Setting, args: BackupArgs) -> Result<Exit> {
    let BackupArgs { file, force, json } = args;
    let counter = Counter::start("payloads backed up");
    let making = setting.back_up(&file, force, |done, of| counter.show(done, of));
    let Some(made) = until_interrupted(making).await? else { return Ok(Exit::Interrupted) };
    counter.finish();
    tell(&made, json, &format!("{} has", file.display()))
}

/// Makes a store of one.
pub async fn restore(setting: &Setting, args: RestoreArgs) -> Result<Exit> {
    let RestoreArgs { file, json } = args;
    let counter = Counter::start("MiB read");
    let shown = counter.clone();
    let restored = setting.restore(&file, &actor(), move |done, of| shown.show(done, of)).await?;
    counter.finish();
    tell(&restored, json, &format!("{} has", setting.location))
}

/// Gives up when asked to; what was begun is removed.
async fn until_interrupted<T>(running: impl Future<Output = Result<T, Error>>) -> Result<Option<T>> {
    let stop = CancellationToken::new();
    signals::watch(stop.clone(), stop.clone(), |_| {});
    tokio::select! {
        done = running => Ok(Some(done?)),
        () = stop.cancelled() => Ok(None),
    }
}

fn tell(told: &BackedUp, json: bool, what: &str) -> Result<Exit> {
    let exit = if told.problems.is_empty() { Exit::Ok } else { Exit::NotSound };
    if json {
        json::document(told)?;
        return Ok(exit);
    }
    for problem in &told.problems {
        out!("{} {problem}", paint(BAD, "✗"))?;
    }
    let payloads = match &told.vault {
        Some(vault) => format!("payloads stay in {vault}"),
        None => format!("{} payloads", told.payloads),
    };
    let counted = format!("{what} {} tasks, {payloads}", told.tasks);
    match exit {
        Exit::Ok => out!("{} {counted}; every count agrees", paint(GOOD, "✓"))?,
        _ => out!("{counted}; see the problems above")?,
    }
    Ok(exit)
}
