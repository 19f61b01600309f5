//! `redrive alert`: one file per verb; `lines` has what several of them, and `status`, print.

mod care;
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
        AlertCommand::Ack(args) => care::acknowledge(setting, args).await,
        AlertCommand::Snooze(args) => care::snooze(setting, args).await,
        AlertCommand::Wake(which) => care::wake(setting, which).await,
        AlertCommand::Assign(args) => care::assign(setting, args).await,
    }
}
