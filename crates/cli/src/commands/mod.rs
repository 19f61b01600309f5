//! One file per command.

mod activity;
mod alert;
mod audit;
mod backup;
pub mod breaker;
mod cause;
mod codes;
mod completions;
mod dead;
mod demo;
mod doctor;
mod feed;
pub mod filter;
mod init;
mod isolated_job;
mod job;
mod payload;
mod pipeline;
mod push;
mod replay;
mod report;
mod result;
mod results;
mod retry;
mod round;
mod run;
mod serve;
mod signals;
mod status;
mod store;
mod token;
mod waiting;
mod work;

use anyhow::Result;

use crate::args::{Cli, Command};
use crate::exit::Exit;
use crate::setting;

/// Runs what was typed.
pub async fn run(cli: Cli) -> Result<Exit> {
    match cli.command {
        Command::Demo(args) => {
            setting::only_here(&cli.global)?;
            demo::run(&cli.global, &args).await
        }
        Command::Init(args) => {
            setting::only_here(&cli.global)?;
            init::run(&args)
        }
        Command::Codes(args) => codes::run(&args),
        Command::Completions { shell } => completions::run(shell),
        Command::Complete { known } => completions::known(&cli.global, known).await,
        Command::IsolatedJob => isolated_job::run().await,
        Command::Doctor(args) => doctor::run(&cli.global, args).await,
        Command::Run(args) => run::run(&setting::load(&cli.global)?, args).await,
        Command::Push(args) => push::run(&setting::load(&cli.global)?, args).await,
        Command::Work(args) => work::run(&setting::load(&cli.global)?, args).await,
        Command::Store(command) => store::run(setting::load(&cli.global)?.here()?, command).await,
        Command::Serve(args) => serve::run(setting::load(&cli.global)?.here()?, args).await,
        Command::Token(command) => token::run(&setting::load(&cli.global)?, command).await,
        Command::Status(args) => status::run(&setting::load(&cli.global)?, &args).await,
        Command::Activity(args) => activity::run(&setting::load(&cli.global)?, args).await,
        Command::Audit(args) => audit::run(&setting::load(&cli.global)?, args.json).await,
        Command::Backup(args) => backup::make(setting::load(&cli.global)?.here()?, args).await,
        Command::Restore(args) => backup::restore(setting::load(&cli.global)?.here()?, args).await,
        Command::Report(args) => report::run(&setting::load(&cli.global)?, args).await,
        Command::Dead(command) => dead::run(&setting::load(&cli.global)?, command).await,
        Command::Cause(command) => cause::run(&cli.global, command).await,
        Command::Retry(args) => retry::run(&setting::load(&cli.global)?, args).await,
        Command::Replay(command) => replay::run(&setting::load(&cli.global)?, command).await,
        Command::Payload(command) => payload::run(&setting::load(&cli.global)?, command).await,
        Command::Result(command) => result::run(&setting::load(&cli.global)?, command).await,
        Command::Round(command) => round::run(&setting::load(&cli.global)?, command).await,
        Command::Alert(command) => alert::run(&setting::load(&cli.global)?, command).await,
        Command::Breaker(command) => breaker::run(&setting::load(&cli.global)?, command).await,
        Command::Pipeline(command) => pipeline::run(&setting::load(&cli.global)?, command).await,
        Command::Job(command) => job::run(&setting::load(&cli.global)?, command).await,
    }
}
