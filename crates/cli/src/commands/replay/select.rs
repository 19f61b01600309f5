//! From what was typed to which letters, their pipelines, and what to work from.

use std::borrow::Cow;
use std::path::PathBuf;

use anyhow::Result;
use redrive::Pipeline;
use redrive::config::{KeptFor, Overrides, with_vault};
use redrive::contract::Selection;
use redrive_client::Desk;
use redrive_core::ids::PipelineName;
use redrive_core::jobs::Input;
use redrive_core::replays::{Exclusion, ReplayPlan};
use serde_json::Value;

use super::super::{filter, results};
use crate::args::{ReplayWorkArgs, SelectArgs};
use crate::output::progress::Counter;
use crate::output::typed::in_text;
use crate::setting::Setting;

/// Which letters are meant, and whether and why those that failed permanently are too.
pub struct Chosen {
    pub selection: Selection,
    pub force_why: Option<String>,
}

/// Which letters are meant. Relative times become absolute here, and numbers ids.
pub async fn selection(redrive: &Desk, args: SelectArgs) -> Result<Chosen> {
    let filter = filter::of_dead(args.filter, redrive.now())?;
    let ids = redrive.find_jobs(&args.ids).await?;
    Ok(Chosen { selection: Selection { filter, ids }, force_why: args.why.filter(|_| args.force) })
}

/// What would be replayed anew: the pipelines of the letters are known by it, and it is quickly counted.
pub async fn rough_plan(redrive: &Desk, chosen: &Chosen, edits: &Input) -> Result<ReplayPlan> {
    Ok(redrive.plan_roughly(&chosen.selection, chosen.force_why.is_some(), edits).await?)
}

/// The fields to change in each input.
pub fn edits(edits: Vec<(String, Value)>) -> Input {
    edits.into_iter().collect()
}

/// Pipelines that letters belong to, as the configuration or the given command has them, or else the command that is kept for them. If there will be results, they go where was said, or where the pipeline says, or to standard output beside a counter.
pub async fn pipelines(
    setting: &Setting,
    redrive: &Desk,
    (names, of): (impl Iterator<Item = PipelineName>, KeptFor<'_>),
    args: &ReplayWorkArgs,
    results: Option<(&Counter, Option<PathBuf>)>,
) -> Result<Vec<Pipeline>> {
    let said = Overrides {
        concurrency: args.concurrency.map(usize::from),
        command: args.command.clone(),
        pure: args.pure,
        ..Overrides::default()
    };
    let vault = setting.vault_of(redrive)?;
    let mut pipelines = Vec::new();
    for name in names {
        let said = with_kept_command(setting, redrive, &name, &said, (of, args.trust_stored)).await?;
        let (pipeline, configured) = setting.pipeline(name.clone(), &said)?;
        let pipeline = match redrive {
            Desk::Here(_) => with_vault(pipeline, vault.as_ref()),
            Desk::There(_) => pipeline.saved_elsewhere(),
        };
        pipelines.push(match &results {
            Some((counter, out)) => {
                let said = out.clone().or(configured);
                let file = results::file(setting, redrive, &name, said, (of, args.trust_stored)).await?;
                let opened = file.as_ref().map(results::open).transpose()?;
                results::written(setting, pipeline, file.as_ref(), counter.sink(opened))
            }
            None => pipeline,
        });
    }
    Ok(pipelines)
}

/// What was said, with the command that letters of a pipeline died of, if there is no other.
async fn with_kept_command(
    setting: &Setting,
    redrive: &Desk,
    name: &PipelineName,
    said: &Overrides,
    (of, trusted): (KeptFor<'_>, bool),
) -> Result<Overrides> {
    match redrive {
        Desk::Here(redrive) => Ok(setting.with_kept_command(redrive, name, said, (of, trusted)).await?),
        Desk::There(_) if !setting.needs_command(name, said) => Ok(said.clone()),
        Desk::There(_) => {
            let versions = results::versions_there(redrive, name, of).await?;
            Ok(setting.with_command_of(name, said, &versions)?)
        }
    }
}

/// What it means that letters are left out, and the way out.
pub fn meaning(exclusion: Exclusion) -> Cow<'static, str> {
    in_text(match exclusion {
        Exclusion::BeingReplayed => "another replay has them: `redrive replay list` shows which",
        Exclusion::GateNever => {
            "permanently failed: --force with --why replays all that lack nothing, --set supplies what some lack"
        }
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
        Exclusion::NotRecovered => "the try did not recover them, or they were tried in earnest since",
    })
}
