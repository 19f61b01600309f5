//! `redrive pipeline show`: what a pipeline effectively is, each value with where it came from.

use anyhow::Result;
use redrive::config::{Explained, From};
use redrive::pipelines::PipelineView;
use serde_json::{Value, json};

use super::list::{state, why};
use crate::args::PipelineShowArgs;
use crate::exit::Exit;
use crate::output::foreign::harmless;
use crate::output::json;
use crate::output::paint::{DIM, HEADING, paint};
use crate::output::print::out;
use crate::output::report::figures::count;
use crate::output::table;
use crate::setting::Setting;

pub async fn run(setting: &Setting, args: PipelineShowArgs) -> Result<Exit> {
    let redrive = setting.desk().await?;
    let view = redrive.find_pipeline(setting, &args.name).await?;
    let values = redrive.explain_pipeline(setting, &args.name).await?;
    if args.json {
        let mut document = serde_json::to_value(&view)?;
        document["definition"] = json!(values);
        json::document(&document)?;
    } else {
        print(&view, &values)?;
    }
    Ok(Exit::Ok)
}

fn print(view: &PipelineView, values: &[Explained]) -> Result<()> {
    let why = Some(why(view)).filter(|why| why != "-").unwrap_or_default();
    out!("{} {}  {}", paint(HEADING, "pipeline"), view.name, state(view))?;
    if !why.is_empty() {
        out!("  {}", harmless(&why))?;
    }
    out!("  {}", paint(DIM, numbers(view)))?;
    if values.is_empty() {
        let unknown = "settings not known: no redrive.toml or worker told them";
        return Ok(out!("  {}", paint(DIM, unknown))?);
    }
    let row = |value: &Explained| vec![value.key.clone(), from(&value.from), text(&value.value)];
    Ok(table::print_titled(&["~=key", "~from", "value"], &values.iter().map(row).collect::<Vec<_>>())?)
}

/// Shows where its tasks are. What other programs reported as done was never a task of ours.
fn numbers(view: &PipelineView) -> String {
    let l = &view.ledger;
    let reported = match view.done_elsewhere {
        0 => String::new(),
        done => format!(", {} done elsewhere (reported)", count(done)),
    };
    let ours = format!("{} queued, {} running, {} done", count(l.queued), count(l.leased), count(l.done));
    format!("{ours}{reported}, {} died, {} workers", count(l.dead), view.workers)
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Where a value came from, in words.
fn from(from: &From) -> String {
    match from {
        From::File { file, line } => format!("{}:{line}", file.display()),
        From::Store { version, .. } => format!("what was run, version {version}"),
        From::Default => "default".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use redrive_core::ledger::Ledger;
    use redrive_core::pipelines::Pause;
    use redrive_core::seen::Version;

    use super::*;

    #[test]
    fn tasks_that_others_reported_as_done_are_told_apart() {
        let view = |done_elsewhere| PipelineView {
            name: "spider".parse().expect("a name"),
            ledger: Ledger { done: 1, ..Ledger::default() },
            done_elsewhere,
            paused: None,
            held: None,
            workers: 0,
            configured: false,
            version: Version::of(&None::<Pause>),
        };
        let reported = "0 queued, 0 running, 1 done, 65,789 done elsewhere (reported), 0 died, 0 workers";
        assert_eq!(numbers(&view(65_789)), reported);
        assert_eq!(numbers(&view(0)), "0 queued, 0 running, 1 done, 0 died, 0 workers");
    }
}
