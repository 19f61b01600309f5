//! The rules that are in force: which version, since when, and how many workers run them.

use maud::{Markup, html};
use redrive_core::definitions::DefinitionVersion;
use redrive_core::ids::PipelineName;
use redrive_core::time::Timestamp;

use crate::app::App;
use crate::look::figures::part_of;
use crate::pages::parts::instant;
use crate::pages::problem::Problem;

/// Rules that are in force.
pub struct InForce {
    pipeline: PipelineName,
    version: DefinitionVersion,
    /// When a worker first had them; none if none has had them yet.
    since: Option<Timestamp>,
    /// When this server read them.
    read_at: Timestamp,
    /// Workers that are there and run them, and all that are there.
    workers: (i64, i64),
}

/// The rules of pipelines as the configuration has them; none of those that it does not have.
pub async fn in_force<'a>(app: &App, names: impl Iterator<Item = &'a PipelineName>) -> Result<Vec<InForce>, Problem> {
    let (redrive, setting) = (app.redrive(), app.setting());
    let names: Vec<_> = names.filter(|name| setting.config.pipeline.contains_key(*name)).collect();
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let (now, workers) = (redrive.now(), redrive.store().list_workers().await?);
    let mut all = Vec::new();
    for name in names {
        let Some(version) = app.pipeline(name)?.definition().cloned() else { continue };
        let seen = redrive.store().list_definitions(Some(name.clone())).await?;
        let since = seen.iter().find(|seen| seen.version == version).map(|seen| seen.first_seen);
        let at_work = workers.iter().filter(|worker| worker.is_at_work(now)).flat_map(|worker| &worker.runs);
        let own: Vec<_> = at_work.filter(|runs| runs.pipeline == *name).collect();
        let able = own.iter().filter(|runs| runs.definition.as_ref().is_none_or(|own| *own == version)).count();
        let workers = (i64::try_from(able).unwrap_or(i64::MAX), i64::try_from(own.len()).unwrap_or(i64::MAX));
        let (pipeline, read_at) = (name.clone(), app.setting_since());
        all.push(InForce { pipeline, version, since, read_at, workers });
    }
    Ok(all)
}

impl InForce {
    /// The pipeline that they are of.
    pub fn name(&self) -> &str {
        self.pipeline.as_str()
    }

    /// It in a line.
    pub fn shown(&self, now: Timestamp) -> Markup {
        let (able, all) = self.workers;
        html! {
            p.fact {
                "Rules of " (self.pipeline) ": version " code { (self.version.as_str()) } ", "
                @match self.since {
                    Some(since) => { "in force since " (instant(since, now)) }
                    None => { "read at " (instant(self.read_at, now)) ", and no worker has run them yet" }
                }
                "; "
                @if all == 0 { "no worker is there." }
                @else { (part_of(able, all)) @if all == 1 { " worker runs" } @else { " workers run" } " them." }
            }
        }
    }
}
