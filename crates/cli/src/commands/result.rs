//! `redrive result`: the results that the store keeps.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

use anyhow::{Result, bail};
use redrive::contract::ListResults;
use redrive_client::Desk;
use redrive_core::ids::PipelineName;
use redrive_core::ledger::Ledger;
use redrive_core::results::ResultForm;

use super::dead::Output;
use super::filter;
use crate::args::{ResultCommand, ResultExportArgs};
use crate::exit::Exit;
use crate::output::print::say;
use crate::setting::Setting;

/// Results that are asked for at once.
const AT_ONCE: u32 = 1_000;

pub async fn run(setting: &Setting, command: ResultCommand) -> Result<Exit> {
    let ResultCommand::Export(args) = command;
    export(setting, args).await
}

async fn export(setting: &Setting, args: ResultExportArgs) -> Result<Exit> {
    let redrive = setting.desk().await?;
    let (since, until) = filter::span(args.since.as_deref(), args.until.as_deref(), redrive.now())?;
    let ledgers = pipelines(&redrive, args.pipeline.as_ref()).await?;
    check_new(&args.file)?;
    let form = if args.bare { ResultForm::Bare } else { ResultForm::Whole };
    let output = Output::to(args.file);
    let (mut lines, mut exported) = (output.open()?, 0_u64);
    for pipeline in ledgers.keys() {
        let mut asked = ListResults {
            pipeline: pipeline.clone(),
            round: args.round.clone(),
            since,
            until,
            limit: AT_ONCE,
            cursor: None,
        };
        loop {
            let page = redrive.list_results(asked.clone()).await?;
            for result in page.items {
                if let Some(line) = result.line(form)? {
                    writeln!(lines, "{line}").map_err(|error| output.unwritten_because(error))?;
                    exported += 1;
                }
            }
            asked.cursor = page.next;
            if asked.cursor.is_none() {
                break;
            }
        }
    }
    lines.flush().map_err(|error| output.unwritten_because(error))?;
    output.sync()?;
    say!("{exported} results exported");
    note_missing(&ledgers);
    Ok(Exit::Ok)
}

/// Returns the ledgers of the pipelines that are meant.
async fn pipelines(redrive: &Desk, named: Option<&PipelineName>) -> Result<BTreeMap<PipelineName, Ledger>> {
    let mut ledgers = redrive.status().await?.pipelines;
    let Some(named) = named else { return Ok(ledgers) };
    match ledgers.remove_entry(named) {
        Some(known) => Ok(BTreeMap::from([known])),
        None => bail!("the store has no task of a pipeline {named}"),
    }
}

/// Refuses to write over a file that has something: it may be the file of results.
fn check_new(file: &Path) -> Result<()> {
    if std::fs::metadata(file).is_ok_and(|found| found.is_file() && found.len() > 0) {
        bail!("{} is there already: name a new file", file.display());
    }
    Ok(())
}

/// Says which results the store does not have.
fn note_missing(ledgers: &BTreeMap<PipelineName, Ledger>) {
    for (pipeline, ledger) in ledgers {
        if ledger.results.dropped > 0 {
            say!(
                "{} older results of {pipeline} were removed: they were more than kept_results_max",
                ledger.results.dropped
            );
        }
        if ledger.results.kept == 0 && ledger.done > 0 {
            say!("none of {pipeline} are kept: those that go to a file are not, unless keep_results says so");
        }
    }
}
