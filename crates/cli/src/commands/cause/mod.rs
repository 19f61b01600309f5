//! `redrive cause`: one file per verb; those that only change something are in `change`.

mod change;
mod explain;
mod list;
mod show;

use anyhow::Result;

use crate::args::{CauseCommand, Global};
use crate::exit::Exit;
use crate::setting;

pub async fn run(global: &Global, command: CauseCommand) -> Result<Exit> {
    if let CauseCommand::Explain(args) = &command
        && args.stdin
    {
        // Nobody needs a store, or a sound configuration, to look at a log.
        return explain::stdin();
    }
    let setting = setting::load(global)?;
    match command {
        CauseCommand::List(args) => list::run(&setting, args).await,
        CauseCommand::Show(args) => show::run(&setting, args).await,
        CauseCommand::Explain(args) => explain::letter(&setting, args).await,
        other => change::run(&setting, other).await,
    }
}
