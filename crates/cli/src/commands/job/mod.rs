//! `redrive job`: one file per verb.

mod cancel;
mod list;
mod show;

use anyhow::Result;

use crate::args::JobCommand;
use crate::exit::Exit;
use crate::setting::Setting;

pub async fn run(setting: &Setting, command: JobCommand) -> Result<Exit> {
    match command {
        JobCommand::List(args) => list::run(setting, args).await,
        JobCommand::Show(args) => show::run(setting, args).await,
        JobCommand::Cancel(args) => cancel::run(setting, args).await,
    }
}
