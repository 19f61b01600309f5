//! `redrive run`: enqueues tasks, works until the pipeline is drained, and says how it went.
//!
//! - `work`: feeding and working at the same time; `retry_dead`: replaying what died before
//! - `end`: how a run ended; `summary`: the same in words; `told`: causes as they are told

mod end;
mod retry_dead;
mod summary;
mod told;
mod work;

use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use anyhow::Result;
use redrive::config::{KeptFor, PipelineConfig, with_vault};
use redrive::sink::ResultForm;
use redrive::tasks::{Feed, WhenFull};
use redrive::{CancellationToken, Pipeline};
use redrive_client::Desk;
use redrive_core::definitions::ResultsFile;
use redrive_core::ids::PipelineName;

use self::end::{Before, RunEnd};
use self::work::Run;
use super::{feed, results};
use crate::args::RunArgs;
use crate::exit::{Exit, usage};
use crate::output::json;
use crate::output::paint::{WAITING, paint};
use crate::output::print::say;
use crate::output::progress::Progress;
use crate::setting::Setting;

pub async fn run(setting: &Setting, args: RunArgs) -> Result<Exit> {
    let name = setting.pipeline_name(&args.handler.pipeline, !args.handler.command.is_empty())?;
    if args.tasks.dry_run {
        return feed::dry_run(setting, name, &args.tasks, args.json).await;
    }
    let (pipeline, configured_out) = setting.pipeline(name.clone(), &args.overrides())?;
    let said = setting.results(args.out.clone().or(configured_out))?;
    if args.json && said.is_none() {
        return Err(usage("--json prints one document at the end: say where results go, with --out FILE"));
    }
    let tasks = feed::open(&args.tasks)?;
    let redrive = setting.desk_to_work().await?;
    say_pace(setting, &pipeline, !args.handler.command.is_empty());
    let naming = feed::naming(setting, &redrive, &name, &args.tasks, &tasks).await?;
    feed::check(&args.tasks, &tasks, &redrive, &naming)?;
    let before = Before::now(&redrive, &name).await?;
    let progress = Progress::start(before.ledger);
    if setting.server().is_none() {
        setting.warn_without_vault();
    }
    let pipeline = match &redrive {
        Desk::Here(_) => with_vault(pipeline, setting.vault_of(&redrive)?.as_ref()),
        Desk::There(_) => pipeline.saved_elsewhere(),
    };
    let file = file_of_results(setting, &redrive, &pipeline, (said, args.bare)).await?;
    let opened = file.as_ref().map(results::open).transpose()?;
    let form = if args.bare { ResultForm::Bare } else { ResultForm::Whole };
    let pipeline = results::written(setting, pipeline, file.as_ref(), progress.sink(opened, form));
    let stop = CancellationToken::new();
    let feeder = Feed {
        bounds: pipeline.policy().bounds(),
        when_full: WhenFull::Wait,
        target: setting.fixed_target(&name),
        naming,
        limit: args.tasks.limit,
        keep_dead: args.retry_dead,
        may_be_changed: args.tasks.yes,
        ..Feed::new(redrive.intake(), name.clone(), stop.clone())
    };
    let run = Run { redrive: &redrive, pipeline: &pipeline, progress: &progress, stop: &stop, max_wait: args.max_wait };
    let worked = run.through(&feeder, tasks).await;
    let worked = match worked {
        Ok(worked) => worked,
        Err(error) => {
            progress.finish();
            say_what_is_left(&redrive, &name).await;
            return Err(error);
        }
    };
    let retried = match worked.may_go_on() {
        true => retry_dead::retry(&run, &worked.fed.dead).await?,
        false => None,
    };
    progress.finish();
    let signalled = worked.signalled.is_cancelled();
    let mut end = RunEnd::of(&redrive, &feeder, &before, worked).await?;
    end.finish(progress.elapsed(), progress.without_result(), retried, signalled);
    let exit = end.exit(args.fail_over);
    match args.json {
        true => json::document(&end.document(exit))?,
        false => end.summarise(&redrive, args.fail_over).await?,
    }
    Ok(exit)
}

/// Says how many tasks and requests go at once.
fn say_pace(setting: &Setting, pipeline: &Pipeline, is_command: bool) {
    let config = setting.config.pipeline.get(pipeline.name()).filter(|_| !is_command);
    let requests = config.and_then(PipelineConfig::per_target);
    let requests = requests.map_or_else(String::new, |requests| format!(", requests to one target: {requests}"));
    say!("{}: tasks at once: {}{requests}", pipeline.name(), pipeline.at_once());
}

/// Decides which file results go to. Standard output that leads elsewhere than to a terminal is as good as a file if it is one, or if
/// the store keeps results.
async fn file_of_results(
    setting: &Setting,
    redrive: &Desk,
    pipeline: &Pipeline,
    (said, bare): (Option<PathBuf>, bool),
) -> Result<Option<ResultsFile>> {
    let is_said = said.is_some();
    let is_kept = pipeline.policy().results.is_kept != Some(false) || Path::new("/dev/stdout").is_file();
    if !is_said && is_kept && !std::io::stdout().is_terminal() {
        return Ok(None);
    }
    let of = (KeptFor::Version(pipeline.definition()), false);
    let file = results::file(setting, redrive, pipeline.name(), said, of).await?;
    Ok(file.map(|file| ResultsFile { bare: bare || (file.bare && !is_said), ..file }))
}

/// Says how many jobs are left when a run ends early, if the store can still tell.
async fn say_what_is_left(redrive: &Desk, name: &PipelineName) {
    match redrive.ledger(name).await {
        Ok(ledger) if ledger.open_by_itself() > 0 => {
            say!("{} {} queued; the same command goes on", paint(WAITING, "left:"), ledger.open_by_itself());
        }
        _ => {}
    }
}
