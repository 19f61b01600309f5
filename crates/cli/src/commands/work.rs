//! `redrive work`: works on pipelines without end, or until nothing is left to do.

use std::path::PathBuf;

use anyhow::Result;
use redrive::config::{Setting, with_vault};
use redrive::sink::JsonLines;
use redrive::worker::Until;
use redrive::{CancellationToken, Pipeline};
use redrive_core::failures::with_sources;

use super::{signals, waiting};
use crate::args::WorkArgs;
use crate::exit::Exit;
use crate::output::paint::{WAITING, paint};
use crate::output::print::say;

pub async fn run(setting: &Setting, args: WorkArgs) -> Result<Exit> {
    let pipelines = setting.pipelines(&args.handler.pipeline, &args.handler.overrides())?;
    let redrive = setting.redrive().await?;
    let vault = setting.vault(&redrive)?;
    let alone = pipelines.len() == 1;
    let sinks = |(pipeline, out): (Pipeline, Option<PathBuf>)| -> Result<Pipeline> {
        let sink = sink(setting.results(args.out.clone().or(out))?, alone)?;
        Ok(with_vault(pipeline, vault.as_ref()).sink(sink))
    };
    let pipelines = pipelines.into_iter().map(sinks).collect::<Result<Vec<_>>>()?;
    let names: Vec<_> = pipelines.iter().map(|pipeline| pipeline.name().as_str().to_owned()).collect();
    let worker = redrive.worker(pipelines).with_replays();
    let (until, worker) = match args.drain {
        true => (Until::Drained, waiting::at_most(worker, args.max_wait)),
        false => (Until::Stopped, worker),
    };
    let stop = CancellationToken::new();
    signals::watch(stop.clone(), worker.hurry(), |line| say!("{line}"));
    say!("working on {} in {}", names.join(", "), setting.location);
    match worker.run(until, stop).await {
        Err(redrive::Error::WaitedInVain(waited)) => {
            waiting::show(&waited, redrive.now());
            say!("{} {} of {}; the same command goes on", paint(WAITING, "left:"), waited.queued, waited.pipeline);
            Ok(Exit::Waited)
        }
        ended => Ok(ended.map(|()| Exit::Ok)?),
    }
}

/// Where results go: to a file, or to standard output. One of several pipelines whose file cannot be opened is held when it
/// has something to write, and the others go on.
fn sink(out: Option<PathBuf>, alone: bool) -> Result<JsonLines> {
    let Some(path) = out else { return Ok(JsonLines::stdout()) };
    match JsonLines::append(&path) {
        Err(error) if !alone => {
            tracing::warn!(error = %with_sources(&error), "results cannot be written for now");
            Ok(JsonLines::append_later(&path))
        }
        opened => Ok(opened?),
    }
}
