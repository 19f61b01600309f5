//! From what was typed to which letters, their pipelines, and what to work from.

use std::path::PathBuf;

use anyhow::Result;
use redrive::config::{Overrides, Setting, with_vault};
use redrive::replays::choose_mode;
use redrive::{Pipeline, Redrive};
use redrive_core::ids::PipelineName;
use redrive_core::jobs::Input;
use redrive_core::replays::{Exclusion, ReplayMode};
use redrive_core::time::Timestamp;
use redrive_store::contract::{ReplayPlan, Selection};
use serde_json::Value;

use super::super::filter;
use crate::args::{ModeArgs, ReplayWorkArgs, SelectArgs};
use crate::exit::usage;
use crate::output::progress::Counter;

/// Which letters are meant, and whether and why those that failed permanently are too.
pub struct Chosen {
    pub selection: Selection,
    pub force_why: Option<String>,
}

/// Which letters are meant. Relative times become absolute here, and to mean nothing in particular is refused.
pub fn selection(args: SelectArgs, now: Timestamp) -> Result<Chosen> {
    let filter = filter::of_dead(args.filter, now)?;
    let selection = Selection { filter, ids: args.ids };
    if selection.is_empty() {
        return Err(usage("say which dead letters: --cause, filters such as --reason or --pipeline, or their ids"));
    }
    if !selection.ids.is_empty() && !selection.filter.is_empty() {
        return Err(usage("give ids or filters, not both"));
    }
    Ok(Chosen { selection, force_why: args.why.filter(|_| args.force) })
}

/// The fields to change in each input.
pub fn edits(edits: Vec<(String, Value)>) -> Input {
    edits.into_iter().collect()
}

/// Pipelines that letters belong to, as the configuration or the given command has them. If there will be results, they
/// go where was said, or where the pipeline says, or to standard output beside a counter.
pub fn pipelines(
    setting: &Setting,
    redrive: &Redrive,
    names: impl Iterator<Item = PipelineName>,
    args: &ReplayWorkArgs,
    results: Option<(&Counter, Option<PathBuf>)>,
) -> Result<Vec<Pipeline>> {
    let said = Overrides {
        concurrency: args.concurrency.map(usize::from),
        command: args.command.clone(),
        pure: args.pure,
        ..Overrides::default()
    };
    let vault = setting.vault(redrive)?;
    let build = |name: PipelineName| -> Result<Pipeline> {
        let (pipeline, configured) = setting.pipeline(name, &said)?;
        let pipeline = with_vault(pipeline, vault.as_ref());
        Ok(match &results {
            Some((counter, out)) => pipeline.sink(counter.sink(setting.results(out.clone().or(configured))?)?),
            None => pipeline,
        })
    };
    names.map(build).collect()
}

/// What to work from: as was said, or else as fits the letters.
pub fn mode(pipelines: &[Pipeline], plan: &ReplayPlan, args: &ModeArgs, edited: bool) -> Result<ReplayMode> {
    match args {
        ModeArgs { saved: true, .. } => able(pipelines, edited).map(|()| ReplayMode::Saved),
        ModeArgs { refetch: true, .. } => Ok(ReplayMode::Refetch),
        ModeArgs { resubmit: true, .. } => Ok(ReplayMode::Resubmit),
        _ => Ok(choose_mode(pipelines, plan, edited)),
    }
}

/// Says which pipeline cannot work from saved payloads.
pub fn able(pipelines: &[Pipeline], edited: bool) -> Result<()> {
    let Some(unable) = pipelines.iter().find(|pipeline| !pipeline.works_from_saved(edited)) else { return Ok(()) };
    let why = match unable.works_from_saved(false) {
        true => "its saved pages are those of the inputs as they were: --set needs --refetch",
        false => "an http handler can, and a command that declares `pure = true` (or --pure)",
    };
    Err(usage(format!("pipeline {} cannot work from saved payloads: {why}", unable.name())))
}

/// Says what an id that was given is, where it is not a dead letter.
pub async fn missing(redrive: &Redrive, selection: &Selection) -> Result<Option<String>> {
    for id in &selection.ids {
        if redrive.store().get_dead(*id).await?.is_some() {
            continue;
        }
        return Ok(Some(match redrive.store().get_job(*id).await? {
            Some(detail) => format!("job {id} is {}, not dead", detail.job.state),
            None => format!("no dead letter {id}"),
        }));
    }
    Ok(None)
}

/// What it means that letters are left out, and the way out.
pub const fn meaning(exclusion: Exclusion) -> &'static str {
    match exclusion {
        Exclusion::BeingReplayed => "another replay has them: `redrive replay list` shows which",
        Exclusion::GateNever => "permanently failed: --force with --why replays them all the same",
        Exclusion::GateReview => "a person decides about them",
        Exclusion::PayloadGone => "no saved payload: --refetch does them anew",
        Exclusion::PayloadLost => {
            "the payload could not be kept, `redrive dead show` says why: --refetch does them anew"
        }
        Exclusion::PayloadOnItsWay => {
            "the payload is on its way to the vault, from another machine: try again there, or later"
        }
        Exclusion::PayloadCut => "only the beginning of the payload was kept: --refetch does them anew",
        Exclusion::ReplayedEnough => "replayed by themselves as often as they may be",
        Exclusion::BreakerOpen => "their target's breaker is not closed",
    }
}
