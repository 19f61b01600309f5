//! From what was typed to which letters, their pipelines, and what to work from.

use std::path::PathBuf;

use anyhow::Result;
use redrive::replays::choose_mode;
use redrive::{Pipeline, Redrive};
use redrive_core::ids::PipelineName;
use redrive_core::jobs::Input;
use redrive_core::replays::ReplayMode;
use redrive_core::time::Timestamp;
use redrive_store::contract::Selection;
use serde_json::Value;

use super::super::filter;
use crate::args::{HandlerArgs, ModeArgs, ReplayWorkArgs, SelectArgs};
use crate::exit::usage;
use crate::output::progress::Counter;
use crate::setting::Setting;

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
    let handler =
        HandlerArgs { concurrency: args.concurrency, command: args.command.clone(), ..HandlerArgs::default() };
    let build = |name: PipelineName| -> Result<Pipeline> {
        let (pipeline, configured) = setting.pipeline(name, &handler)?;
        let pipeline = setting.with_vault(redrive, pipeline)?;
        Ok(match &results {
            Some((counter, out)) => pipeline.sink(counter.sink(out.clone().or(configured))?),
            None => pipeline,
        })
    };
    names.map(build).collect()
}

/// What to work from: as was said, or else as fits the letters.
pub async fn mode(redrive: &Redrive, pipelines: &[Pipeline], chosen: &Chosen, args: &ModeArgs) -> Result<ReplayMode> {
    match (args.saved, args.refetch) {
        (true, _) => {
            able(pipelines)?;
            Ok(ReplayMode::Saved)
        }
        (_, true) => Ok(ReplayMode::Refetch),
        _ => Ok(choose_mode(redrive, pipelines, &chosen.selection, chosen.force_why.is_some()).await?),
    }
}

/// Says which pipeline cannot work from saved payloads.
pub fn able(pipelines: &[Pipeline]) -> Result<()> {
    match pipelines.iter().find(|pipeline| !pipeline.works_from_saved()) {
        Some(pipeline) => Err(usage(format!(
            "pipeline {} cannot work from saved payloads: an http handler can, and a command that declares `pure = true`",
            pipeline.name()
        ))),
        None => Ok(()),
    }
}
