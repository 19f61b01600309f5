//! `redrive dead`: one file per verb.

mod discard;
mod export;
mod import;
mod list;
mod output;
mod show;
mod top;
mod warc;

use anyhow::Result;
use redrive::dead::Requests;

use crate::args::DeadCommand;
use crate::exit::Exit;
use crate::output::print::say;
use crate::setting::Setting;

pub use output::Output;
pub use show::print_failures;

pub async fn run(setting: &Setting, command: DeadCommand) -> Result<Exit> {
    match command {
        DeadCommand::List(args) => list::run(setting, args).await,
        DeadCommand::Show(args) => show::run(setting, args).await,
        DeadCommand::Top(args) => top::run(setting, args).await,
        DeadCommand::Discard(args) => discard::run(setting, args).await,
        DeadCommand::Export(args) if args.warc => warc::run(setting, args).await,
        DeadCommand::Export(args) => export::run(setting, args).await,
        DeadCommand::Import(args) => import::run(setting, args).await,
    }
}

/// Makes requests for letters, and says where they are guesses.
fn requests(setting: &Setting) -> Requests<'_> {
    Requests::new(setting, |error| {
        say!("the request is a guess, because its pipeline cannot be set up: {error}");
    })
}
