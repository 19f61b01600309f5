//! `redrive payload`: one file per verb.

mod gc;
mod list;
mod open;
mod show;
mod verify;

use anyhow::Result;
use redrive::Redrive;
use redrive::vault::Vault;
use redrive_client::Desk;
use redrive_core::payloads::Payload;

use crate::args::PayloadCommand;
use crate::exit::{Exit, usage};
use crate::setting::Setting;

pub async fn run(setting: &Setting, command: PayloadCommand) -> Result<Exit> {
    match command {
        PayloadCommand::Verify { ids } => verify::run(&Kept::of(setting).await?, ids).await,
        PayloadCommand::Gc(args) => gc::run(&Kept::of(setting).await?, args).await,
        PayloadCommand::List(args) => list::run(&Kept::of(setting).await?.desk, args).await,
        PayloadCommand::Show(args) => show::run(&Kept::of(setting).await?, args).await,
        PayloadCommand::Open { id } => open::run(&Kept::of(setting).await?, &id).await,
    }
}

/// The vault of this machine.
fn vault(setting: &Setting, redrive: &Redrive) -> Result<Vault> {
    setting.vault(redrive)?.ok_or_else(|| usage(setting.no_vault()))
}

/// Where payloads are kept: in the vault of this machine, or behind a server.
struct Kept {
    desk: Desk,
    vault: Option<Vault>,
}

impl Kept {
    async fn of(setting: &Setting) -> Result<Self> {
        let desk = setting.desk().await?;
        let vault = match &desk {
            Desk::Here(redrive) => Some(vault(setting, redrive)?),
            Desk::There(_) => None,
        };
        Ok(Self { desk, vault })
    }

    /// Writes the bytes of a payload that was found by a name to a file. Returns an error if they are not those that were kept; some
    /// may have been written by then.
    async fn write(&self, name: &str, payload: &Payload, file: std::fs::File) -> Result<u64> {
        let mut file = tokio::fs::File::from_std(file);
        Ok(self.desk.copy_payload(self.vault.as_ref(), (name, payload.hash), &mut file).await?)
    }
}
