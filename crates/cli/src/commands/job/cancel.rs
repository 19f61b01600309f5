//! `redrive job cancel`: discards jobs that are queued or leased.

use anyhow::{Result, bail};
use redrive::config::Setting;
use redrive_store::contract::CancelJobs;

use super::super::filter;
use crate::args::CancelArgs;
use crate::exit::Exit;
use crate::output::print::out;

pub async fn run(setting: &Setting, args: CancelArgs) -> Result<Exit> {
    let redrive = setting.redrive_existing().await?;
    let params = CancelJobs { ids: args.ids.clone(), by: filter::actor(), why: args.why, now: redrive.now() };
    let cancelled = redrive.store().cancel_jobs(params).await?;
    out!("{} cancelled", cancelled.len())?;
    match args.ids.iter().find(|id| !cancelled.contains(id)) {
        Some(id) => match redrive.store().get_job(*id).await? {
            Some(detail) => bail!("job {id} is {}: only queued and leased jobs can be cancelled", detail.job.state),
            None => bail!("no job {id} in {}", setting.location),
        },
        None => Ok(Exit::Ok),
    }
}
