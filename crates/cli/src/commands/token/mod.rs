//! `redrive token`: who may ask a server for what.

mod create;
mod list;

use anyhow::Result;

use super::filter::actor;
use crate::args::TokenCommand;
use crate::exit::Exit;
use crate::output::print::out;
use crate::setting::Setting;

pub async fn run(setting: &Setting, command: TokenCommand) -> Result<Exit> {
    match command {
        TokenCommand::Create(args) => create::run(setting, args).await,
        TokenCommand::List(args) => list::run(setting, args.json).await,
        TokenCommand::Revoke { name } => {
            setting.desk().await?.revoke_token(&name, &actor()).await?;
            out!("token {name} is revoked")?;
            Ok(Exit::Ok)
        }
        TokenCommand::Reset => create::reset(setting).await,
    }
}
