//! `redrive breaker`: the targets that are waited for, and what people do about it.

mod list;
mod turn;

use anyhow::Result;
use redrive_core::breakers::BreakerTurn;

use crate::args::BreakerCommand;
use crate::exit::Exit;
use crate::setting::Setting;

pub use list::print;

pub async fn run(setting: &Setting, command: BreakerCommand) -> Result<Exit> {
    match command {
        BreakerCommand::List(args) => list::run(setting, args).await,
        BreakerCommand::Close(args) => turn::run(setting, args, BreakerTurn::Close).await,
        BreakerCommand::Probe(args) => turn::run(setting, args, BreakerTurn::Probe).await,
        BreakerCommand::Hold(args) => turn::hold(setting, args).await,
    }
}
