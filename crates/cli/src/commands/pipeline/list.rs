//! `redrive pipeline list`.

use anyhow::Result;
use redrive::pipelines::PipelineView;

use crate::exit::Exit;
use crate::output::json;
use crate::output::print::out;
use crate::output::table;
use crate::output::typed::REDRIVE;
use crate::setting::Setting;

pub async fn run(setting: &Setting, json: bool) -> Result<Exit> {
    let pipelines = setting.desk().await?.list_pipelines(setting).await?;
    if json {
        pipelines.iter().try_for_each(json::line)?;
    } else if pipelines.is_empty() {
        out!("no pipelines yet: `{REDRIVE} run` makes one, `redrive init` writes a redrive.toml to define some in")?;
    } else {
        let rows: Vec<_> = pipelines.iter().map(row).collect();
        let headings = ["~=pipeline", "state", ">queued", ">running", ">died", ">workers", "why"];
        table::print_titled(&headings, &rows)?;
    }
    Ok(Exit::Ok)
}

fn row(view: &PipelineView) -> Vec<String> {
    let counts = [view.ledger.queued, view.ledger.leased, view.ledger.dead].map(|count| count.to_string());
    let mut row = vec![view.name.to_string(), state(view).to_owned()];
    row.extend(counts);
    row.extend([view.workers.to_string(), why(view)]);
    row
}

/// Where a pipeline stands, in a word.
pub fn state(view: &PipelineView) -> &'static str {
    match view {
        PipelineView { paused: Some(_), .. } => "paused",
        PipelineView { held: Some(_), .. } => "held",
        PipelineView { workers: 0, .. } if view.ledger.open_by_itself() > 0 => "waits",
        PipelineView { workers: 0, .. } => "rests",
        _ => "works",
    }
}

/// Why it is not worked on, or where it is defined.
pub fn why(view: &PipelineView) -> String {
    match view {
        PipelineView { paused: Some(pause), .. } => pause.to_string(),
        PipelineView { held: Some(hold), .. } => hold.why.clone(),
        PipelineView { workers: 0, configured: true, .. } if view.ledger.open_by_itself() > 0 => {
            format!("nobody works on it: {REDRIVE} work --pipeline {}", view.name)
        }
        PipelineView { configured: false, .. } => "not in redrive.toml".to_owned(),
        _ => "-".to_owned(),
    }
}
