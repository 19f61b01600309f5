//! `redrive payload`: one file per verb.

mod gc;
mod list;
mod open;
mod show;
mod verify;

use anyhow::Result;
use redrive::config::Setting;
use redrive::vault::Vault;
use redrive_core::payloads::Payload;

use crate::args::PayloadCommand;
use crate::exit::{Exit, usage};

pub async fn run(setting: &Setting, command: PayloadCommand) -> Result<Exit> {
    let redrive = setting.redrive_existing().await?;
    let vault = setting.vault(&redrive)?.ok_or_else(|| usage(setting.no_vault()))?;
    match command {
        PayloadCommand::List(args) => list::run(&redrive, args).await,
        PayloadCommand::Show(args) => show::run(&redrive, &vault, args).await,
        PayloadCommand::Open { id } => open::run(&redrive, &vault, &id).await,
        PayloadCommand::Verify { ids } => verify::run(&redrive, &vault, ids).await,
        PayloadCommand::Gc(args) => gc::run(&vault, args).await,
    }
}

/// Writes a payload to a file.
async fn write(vault: &Vault, payload: &Payload, file: std::fs::File) -> Result<u64> {
    let mut out = tokio::fs::File::from_std(file);
    Ok(vault.copy(payload.hash, &mut out).await?)
}
