//! `redrive payload`: one file per verb.

mod gc;
mod list;
mod open;
mod show;
mod verify;

use anyhow::{Result, bail};
use redrive::Redrive;
use redrive::config::Setting;
use redrive::vault::Vault;
use redrive_core::ids::JobId;
use redrive_core::payloads::Payload;
use redrive_store::contract::ListPayloads;

use crate::args::PayloadCommand;
use crate::exit::{Exit, usage};

pub async fn run(setting: &Setting, command: PayloadCommand) -> Result<Exit> {
    let redrive = setting.redrive_existing().await?;
    let vault =
        setting.vault(&redrive)?.ok_or_else(|| usage("a store in memory has no vault: name one in redrive.toml"))?;
    match command {
        PayloadCommand::List(args) => list::run(&redrive, args).await,
        PayloadCommand::Show(args) => show::run(&redrive, &vault, args).await,
        PayloadCommand::Open { id } => open::run(&redrive, &vault, &id).await,
        PayloadCommand::Verify { ids } => verify::run(&redrive, &vault, ids).await,
        PayloadCommand::Gc(args) => gc::run(&vault, args).await,
    }
}

/// The payload that an id means: of a job, its newest; or a payload's own hash, or the beginning of one.
async fn find(redrive: &Redrive, id: &str) -> Result<Payload> {
    if let Ok(job) = id.parse::<JobId>() {
        if let Some(payload) = redrive.store().payloads_of(job).await?.into_iter().next() {
            return Ok(payload);
        }
        let Some(detail) = redrive.store().get_job(job).await? else { bail!("no job {job}") };
        let mut payloads = detail.failures.iter().rev().filter_map(|failure| failure.payload.as_ref());
        match payloads.find_map(|payload| payload.lost.as_ref()) {
            Some(why) => bail!("the payload of job {job} is lost: {why}"),
            None => bail!("job {job} has no payload: none was kept, or it has expired"),
        }
    }
    if id.len() < 6 || !id.chars().all(|c| c.is_ascii_hexdigit()) {
        return Err(usage(format!(
            "{id:?} is neither a job's id nor the hash of a payload, or at least 6 digits of one"
        )));
    }
    let params = ListPayloads { prefix: Some(id.to_owned()), limit: 2, cursor: None };
    match redrive.store().list_payloads(params).await?.items.as_slice() {
        [one] => Ok(Payload::bare(one.hash, one.size_bytes)),
        [] => bail!("no payload {id}: it has expired, or belongs to another store"),
        _ => Err(usage(format!("{id} is the beginning of several payloads: give more of it"))),
    }
}

/// Writes a payload to a file.
async fn write(vault: &Vault, payload: &Payload, file: std::fs::File) -> Result<u64> {
    let mut out = tokio::fs::File::from_std(file);
    Ok(vault.copy(payload.hash, &mut out).await?)
}
