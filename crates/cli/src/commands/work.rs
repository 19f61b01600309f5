//! `redrive work`: works on pipelines without end, or until nothing is left to do.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Result;
use redrive::config::{Followed, KeptFor, Overrides, Setting as Configured, with_vault};
use redrive::sink::JsonLines;
use redrive::vault::Vault;
use redrive::worker::{Until, Worker};
use redrive::{CancellationToken, Pipeline, Redrive};
use redrive_client::Desk;
use redrive_client::worker::AnyWorker;
use redrive_core::definitions::ResultsFile;
use redrive_core::failures::with_sources;
use redrive_core::ids::PipelineName;

use super::{results, signals, waiting};
use crate::args::WorkArgs;
use crate::exit::Exit;
use crate::output::paint::{WAITING, paint};
use crate::output::print::say;
use crate::setting::Setting;

pub async fn run(setting: &Setting, args: WorkArgs) -> Result<Exit> {
    let asked = Asked::new(args.handler.pipeline.clone(), args.handler.overrides(), args.out.clone());
    // What is wrong with a pipeline is said before a store is made.
    setting.pipelines(&asked.named, &asked.said)?;
    let desk = setting.desk_to_work().await?;
    let (worker, names) = match &desk {
        Desk::Here(redrive) => {
            let (worker, names) = worker(setting, redrive, asked).await?;
            (AnyWorker::Here(worker), names)
        }
        Desk::There(_) => remote_worker(setting, &desk, asked).await?,
    };
    let names: Vec<_> = names.iter().map(PipelineName::as_str).collect();
    let (until, worker) = match args.drain {
        true => (Until::Drained, waiting::at_most(worker, args.max_wait)),
        false => (Until::Stopped, worker),
    };
    let stop = CancellationToken::new();
    signals::watch(stop.clone(), worker.hurry(), |line| say!("{line}"));
    say!("working on {} in {}", names.join(", "), setting.place());
    let own = worker.work_done();
    match worker.run(until, stop).await {
        Err(redrive::Error::WaitedInVain(waited)) => {
            waiting::show(&waited, desk.now());
            say!("{} {} of {}; the same command goes on", paint(WAITING, "left:"), waited.queued, waited.pipeline);
            Ok(Exit::Waited)
        }
        Ok(()) if args.drain && own.read().gave_up > 0 => {
            waiting::show_given_up(own.read().gave_up);
            Ok(Exit::Dead)
        }
        ended => Ok(ended.map(|()| Exit::Ok)?),
    }
}

/// What is to be worked on, and where results go.
pub struct Asked {
    named: Vec<PipelineName>,
    said: Overrides,
    out: Option<PathBuf>,
}

impl Asked {
    pub const fn new(named: Vec<PipelineName>, said: Overrides, out: Option<PathBuf>) -> Self {
        Self { named, said, out }
    }
}

/// A worker that follows the configuration, also when it changes; and the pipelines that it works on.
pub async fn worker(setting: &Configured, redrive: &Redrive, asked: Asked) -> Result<(Worker, Vec<PipelineName>)> {
    setting.warn_without_vault();
    let vault = setting.vault(redrive)?;
    let files = files(setting, &Desk::Here(redrive.clone()), &asked).await?;
    let made = Arc::new(Made { asked, vault, files });
    let (again, alike) = (Arc::clone(&made), setting.clone());
    let watched = redrive.alerts().clone();
    let again = move |changed: &Configured| {
        let pipelines = again.of(&alike.with(changed)).map_err(|error| format!("{error:#}"))?;
        watched.replace(changed.watched_by_workers());
        Ok(pipelines)
    };
    // Followed before pipelines are made of it: what changes in between is seen.
    let followed = Followed::new(setting, again);
    let pipelines = made.of(setting)?;
    let names = pipelines.iter().map(|pipeline| pipeline.name().clone()).collect();
    let worker = redrive.worker(pipelines).with_replays();
    let worker = match followed {
        Some(followed) => worker.following(followed),
        None => worker,
    };
    Ok((worker, names))
}

/// The same for a server.
async fn remote_worker(setting: &Configured, desk: &Desk, asked: Asked) -> Result<(AnyWorker, Vec<PipelineName>)> {
    let files = files(setting, desk, &asked).await?;
    let made = Arc::new(Made { asked, vault: None, files });
    let of = |made: &Made, setting: &Configured| -> Result<Vec<Pipeline>> {
        Ok(made.of(setting)?.into_iter().map(Pipeline::saved_elsewhere).collect())
    };
    let (again, alike) = (Arc::clone(&made), setting.clone());
    let again = move |changed: &Configured| of(&again, &alike.with(changed)).map_err(|error| format!("{error:#}"));
    // Followed before pipelines are made of it: what changes in between is seen.
    let followed = Followed::new(setting, again);
    let pipelines = of(&made, setting)?;
    let names = pipelines.iter().map(|pipeline| pipeline.name().clone()).collect();
    let worker = desk.worker(pipelines).with_replays();
    Ok((followed.into_iter().fold(worker, AnyWorker::following), names))
}

/// What pipelines are made of beside the configuration, when they are made and whenever it changed.
struct Made {
    asked: Asked,
    vault: Option<Vault>,
    /// The files that results go to, as far as one was named when the worker began or in an earlier command.
    files: BTreeMap<PipelineName, ResultsFile>,
}

/// The files that results go to, named now or in earlier commands.
async fn files(setting: &Configured, desk: &Desk, asked: &Asked) -> Result<BTreeMap<PipelineName, ResultsFile>> {
    let mut files = BTreeMap::new();
    for (pipeline, configured) in setting.pipelines(&asked.named, &asked.said)? {
        let (said, of) = (asked.out.clone().or(configured), (KeptFor::Version(pipeline.definition()), false));
        if let Some(file) = results::file(setting, desk, pipeline.name(), said, of).await? {
            files.insert(pipeline.name().clone(), file);
        }
    }
    Ok(files)
}

impl Made {
    fn of(&self, setting: &Configured) -> Result<Vec<Pipeline>> {
        let pipelines = setting.pipelines(&self.asked.named, &self.asked.said)?;
        let alone = pipelines.len() == 1;
        let complete = |(pipeline, out): (Pipeline, Option<PathBuf>)| {
            let known = self.files.get(pipeline.name());
            let said = setting.results(self.asked.out.clone().or(out))?;
            let file = match said.map(|path| std::path::absolute(&path).unwrap_or(path)) {
                Some(path) => {
                    Some(ResultsFile { bare: known.is_some_and(|file| file.bare && file.path == path), path })
                }
                None => known.cloned(),
            };
            let sink = sink(file.as_ref(), alone)?;
            Ok(results::written(setting, with_vault(pipeline, self.vault.as_ref()), file.as_ref(), sink))
        };
        pipelines.into_iter().map(complete).collect()
    }
}

/// Where results go: to a file, or to standard output. One of several pipelines whose file cannot be opened is held when it
/// has something to write, and the others go on.
fn sink(file: Option<&ResultsFile>, alone: bool) -> Result<JsonLines> {
    let Some(file) = file else { return Ok(JsonLines::stdout()) };
    let path = results::near(&file.path);
    match JsonLines::append(&path) {
        Err(error) if !alone => {
            tracing::warn!(error = %with_sources(&error), "results cannot be written for now");
            Ok(JsonLines::append_later(&path).form(results::form(file)))
        }
        opened => Ok(opened.map_err(|error| results::unopened(&error))?.form(results::form(file))),
    }
}
