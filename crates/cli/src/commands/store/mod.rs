//! `redrive store`: one file per verb.

mod copy;
mod migrate;

use anyhow::Result;
use redrive::config::Setting;

use crate::args::StoreCommand;
use crate::exit::Exit;

pub async fn run(setting: &Setting, command: StoreCommand) -> Result<Exit> {
    match command {
        StoreCommand::Copy(args) => copy::run(setting, args).await,
        StoreCommand::Migrate(args) => migrate::run(setting, args).await,
    }
}
