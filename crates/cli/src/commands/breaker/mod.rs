//! `redrive breaker`: the targets on hold, and what people do about them.

mod list;

use anyhow::Result;
use clap::Subcommand;
use redrive::api::breakers::{CloseBreaker, HeldBreakers, HoldBreaker, ListBreakers, ProbeBreaker, TurnedBreakers};
use redrive_core::ids::PipelineName;

use crate::exit::Exit;
use crate::handle::Handle;
use crate::output::foreign::cut;
use crate::output::print::{out, say};
use crate::output::retrying::close;
use crate::output::typed::REDRIVE;
use crate::setting::Setting;

pub use list::{list, print};

// The summaries come from the operations.
#[derive(Debug, Subcommand)]
pub enum BreakerCommand {
    List {
        #[command(flatten)]
        request: ListBreakers,
        /// Print JSON Lines
        #[arg(long)]
        json: bool,
    },
    #[command(after_help = "Example:\n  redrive breaker close shop.example        topped up: go on")]
    Close(CloseBreaker),
    #[command(
        after_help = "Examples:\n  redrive breaker hold shop.example --until 2h --why 'they asked us to'\n  redrive breaker hold solver.example        until it is closed by hand\n\nWhen the time is over one task goes to see, as always when a breaker was open."
    )]
    Hold(HoldBreaker),
    Probe(ProbeBreaker),
}

pub async fn run(setting: &Setting, command: BreakerCommand) -> Result<Exit> {
    let desk = setting.desk().await?;
    let handle = Handle::from(&desk);
    match command {
        BreakerCommand::List { request, json } => list::run(handle.ask_all(request).await?, json, desk.now())?,
        BreakerCommand::Hold(request) => {
            let pipeline = request.pipeline.clone();
            held(&handle.ask(request).await?, pipeline.as_ref())?;
        }
        BreakerCommand::Close(request) => {
            let turned = handle.ask(request).await?;
            let (target, pipelines, waiting) = (cut(&turned.target, 60), listed(&turned.pipelines), turned.waiting);
            out!("{target} is asked again in {pipelines}: {waiting} tasks go on")?;
            paused(&turned)?;
        }
        BreakerCommand::Probe(request) => {
            let turned = handle.ask(request).await?;
            let (target, pipelines, waiting) = (cut(&turned.target, 60), listed(&turned.pipelines), turned.waiting);
            out!("one task of {target} in {pipelines} goes now to see; {waiting} wait")?;
            paused(&turned)?;
        }
    }
    Ok(Exit::Ok)
}

fn held(held: &HeldBreakers, pipeline: Option<&PipelineName>) -> std::io::Result<()> {
    let (target, pipelines) = (cut(&held.target, 60), listed(&held.pipelines));
    let until = held.until.map_or_else(|| "until it is closed".to_owned(), |until| format!("until {until}"));
    out!("{target} is held in {pipelines} {until}; `{}` lets it go on", close(&held.target, pipeline))?;
    if !held.is_queued {
        say!("note: no task of {target} is queued there now; `{REDRIVE} job list` shows the targets of those that are");
    }
    Ok(())
}

fn paused(turned: &TurnedBreakers) -> std::io::Result<()> {
    let say =
        |name: &PipelineName| out!("but pipeline {name} is paused: `{REDRIVE} pipeline resume {name}` lets it go on");
    turned.paused.iter().try_for_each(say)
}

fn listed(pipelines: &[PipelineName]) -> String {
    let names: Vec<_> = pipelines.iter().map(|name| format!("pipeline {name}")).collect();
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};
    use redrive::api::Operation;
    use redrive::api::wire::fields;

    use super::*;
    use crate::args::{Cli, Command};

    fn parse(line: &str) -> Result<BreakerCommand, String> {
        let words = line.split(' ').map(|word| word.replace('_', " "));
        match Cli::try_parse_from(words).map_err(|error| error.to_string())?.command {
            Command::Breaker(command) => Ok(command),
            _ => Err("another command".to_owned()),
        }
    }

    #[test]
    fn flags_are_the_same_request_as_json() {
        let line = "redrive breaker hold shop.example -p shop --until 2h --why they_asked_us_to";
        let Ok(BreakerCommand::Hold(request)) = parse(line) else { panic!("it holds") };
        let example: HoldBreaker = serde_json::from_str(HoldBreaker::EXAMPLE).expect("a request");
        assert_eq!(fields(&request), fields(&example));
        let Ok(BreakerCommand::Close(request)) = parse("redrive breaker close shop.example --pipeline shop") else {
            panic!("it closes")
        };
        let example: CloseBreaker = serde_json::from_str(CloseBreaker::EXAMPLE).expect("a request");
        assert_eq!(fields(&request), fields(&example));
    }

    #[test]
    fn flag_is_refused_with_the_message_of_the_type() {
        for (line, message) in [
            ("redrive breaker hold x --until soon", "\"soon\" is not a time: expected 2h (from now)"),
            ("redrive breaker hold x --why ", "it has 0 bytes: expected 1 to 4000"),
            ("redrive breaker hold x --limit 5", "unexpected argument '--limit'"),
        ] {
            let error = parse(line).expect_err("refused");
            assert!(error.contains(message), "{error}");
        }
    }

    #[test]
    fn help_is_that_of_the_operations() {
        let mut cli = Cli::command();
        let breaker = cli.find_subcommand_mut("breaker").expect("a command");
        for (command, texts) in [
            ("list", ["List the targets on hold\n", "Only of this pipeline"]),
            ("hold", ["Hold the jobs of a target, whatever the target does\n", "Reason, shown in lists"]),
            (
                "close",
                ["Close the breaker of a target, so that its jobs go on now\n", "as `redrive breaker list` shows it"],
            ),
        ] {
            let help = breaker.find_subcommand_mut(command).expect("a command").render_help().to_string();
            assert!(texts.iter().all(|text| help.contains(text)), "{help}");
            assert!(!help.contains("cursor") && !help.contains("version of"), "{help}");
        }
    }
}
