//! `redrive report`: what fails, where, when, since when.

use std::fs::File;
use std::io::Write;

use anyhow::{Context, Result};

use crate::args::ReportArgs;
use crate::config::units;
use crate::exit::{Exit, usage};
use crate::output::print::out;
use crate::output::report::{html, terminal};
use crate::output::table;
use crate::setting::Setting;

/// The width of lines that go to a file or a pipe.
const WIDTH: usize = 110;

pub async fn run(setting: &Setting, args: ReportArgs) -> Result<Exit> {
    let redrive = setting.redrive_existing()?;
    let since = units::instant(&args.since, redrive.now()).map_err(usage)?;
    let report = redrive.report(since, args.pipeline.as_ref()).await?;
    if let Some(path) = &args.html {
        let place = path.display();
        let write = || File::create(path).and_then(|mut file| file.write_all(html::page(&report).as_bytes()));
        write().with_context(|| format!("cannot write {place}"))?;
        eprintln!("written to {place}");
    }
    if args.json {
        out!("{}", serde_json::to_string_pretty(&report)?)?;
    } else if args.html.is_none() {
        for line in terminal::lines(&report, table::width().unwrap_or(WIDTH)) {
            out!("{line}")?;
        }
    }
    Ok(Exit::Ok)
}
