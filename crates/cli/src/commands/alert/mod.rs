//! `redrive alert`: one file per verb; `lines` has what several of them, and `status`, print.

mod check;
pub(super) mod lines;
mod list;
mod test;

use anyhow::Result;

use crate::args::AlertCommand;
use crate::exit::Exit;
use crate::setting::Setting;

pub async fn run(setting: &Setting, command: AlertCommand) -> Result<Exit> {
    match command {
        AlertCommand::Check(args) => check::run(setting, args).await,
        AlertCommand::Test(args) => test::run(setting, args).await,
        AlertCommand::List(args) => list::run(setting, args).await,
    }
}
