//! `redrive pipeline`: where pipelines stand, what they are, letting them rest, and forgetting them.

mod forget;
mod list;
mod pause;
mod show;

use anyhow::Result;

use crate::args::PipelineCommand;
use crate::exit::Exit;
use crate::setting::Setting;

pub async fn run(setting: &Setting, command: PipelineCommand) -> Result<Exit> {
    match command {
        PipelineCommand::List(args) => list::run(setting, args.json).await,
        PipelineCommand::Show(args) => show::run(setting, args).await,
        PipelineCommand::Pause(args) => pause::pause(setting, args).await,
        PipelineCommand::Resume { name } => pause::resume(setting, &name).await,
        PipelineCommand::Forget { name } => forget::run(setting, &name).await,
    }
}
