//! `redrive round`.

mod list;

use anyhow::Result;

use crate::args::RoundCommand;
use crate::exit::Exit;
use crate::setting::Setting;

pub async fn run(setting: &Setting, command: RoundCommand) -> Result<Exit> {
    match command {
        RoundCommand::List(args) => list::run(setting, args).await,
    }
}
