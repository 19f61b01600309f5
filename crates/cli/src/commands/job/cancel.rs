//! `redrive job cancel`: discards jobs that are queued or leased.

use anyhow::Result;
use redrive::Error;

use super::super::filter::actor;
use crate::args::CancelArgs;
use crate::exit::Exit;
use crate::output::print::out;
use crate::output::problem::within;
use crate::setting::Setting;

pub async fn run(setting: &Setting, args: CancelArgs) -> Result<Exit> {
    let redrive = setting.desk().await?;
    let ids = redrive.find_jobs(&args.ids).await.map_err(|error| within(setting, error))?;
    let cancelled = redrive.cancel_jobs(ids, &args.why, &actor()).await?;
    out!("{} cancelled", cancelled.jobs.len())?;
    match cancelled.refused.into_iter().next() {
        Some(refused) => Err(within(setting, Error::from(refused))),
        None => Ok(Exit::Ok),
    }
}
