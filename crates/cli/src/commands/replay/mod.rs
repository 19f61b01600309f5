//! `redrive replay`: one file per verb; `select` is which letters, `drive` the work and what is shown of it, `letters` what is
//! said of each letter of a few.

mod change;
mod drive;
mod letters;
mod list;
mod plan;
mod select;
mod show;
mod start;
mod try_out;

use anyhow::Result;
pub use show::versions;
pub use start::{Asked, start};

use crate::args::ReplayCommand;
use crate::exit::Exit;
use crate::setting::Setting;

pub async fn run(setting: &Setting, command: ReplayCommand) -> Result<Exit> {
    match command {
        ReplayCommand::Plan(args) => plan::run(setting, args).await,
        ReplayCommand::Try(args) => try_out::run(setting, args).await,
        ReplayCommand::Start(args) => start::run(setting, args).await,
        ReplayCommand::List(args) => list::run(setting, args).await,
        ReplayCommand::Show(args) => show::run(setting, args).await,
        ReplayCommand::Watch { id } => drive::watch(setting, id).await,
        ReplayCommand::Resume(args) => start::resume(setting, args).await,
        ReplayCommand::Pause { id } => change::pause(setting, id).await,
        ReplayCommand::Rate { id, rate } => change::rate(setting, id, &rate).await,
        ReplayCommand::Cancel { id } => change::cancel(setting, id).await,
    }
}
