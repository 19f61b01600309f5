//! `redrive report`: what fails, where, when, since when.

use std::fs::Permissions;
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use anyhow::{Context, Result};

use redrive::config::units;
use redrive::report::{Rate, Report};

use crate::args::ReportArgs;
use crate::exit::{Exit, usage};
use crate::output::csv;
use crate::output::json;
use crate::output::print::{out, say};
use crate::output::report::{html, terminal};
use crate::output::table;
use crate::setting::Setting;

pub async fn run(setting: &Setting, args: ReportArgs) -> Result<Exit> {
    let redrive = setting.desk().await?;
    let since = units::instant(&args.since, redrive.now()).map_err(usage)?;
    let report = redrive.report(since, args.pipeline.as_ref()).await?;
    if since > redrive.now() {
        return Err(usage("--since names a time to come"));
    }
    if let Some(path) = &args.html {
        write(path, &html::page(&report)).with_context(|| format!("cannot write {}", path.display()))?;
    }
    if args.json {
        json::document(&report)?;
    } else if args.csv {
        print_csv(&report)?;
    } else if args.html.is_none() {
        for line in terminal::lines(&report, table::line_width()) {
            out!("{line}")?;
        }
    }
    Ok(Exit::Ok)
}

/// Writes the page, whole or not at all; `-` is standard output.
fn write(path: &Path, page: &str) -> io::Result<()> {
    if path == Path::new("-") {
        return io::stdout().write_all(page.as_bytes());
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut builder = tempfile::Builder::new();
    let file = builder.permissions(Permissions::from_mode(0o644)).tempfile_in(folder);
    let mut file = file.map_err(|error| io::Error::from(error.kind()))?;
    file.write_all(page.as_bytes())?;
    file.persist(path).map_err(|error| error.error)?;
    say!("written to {}", path.display());
    Ok(())
}

/// A line for each number: what it is about, its name, a detail, the number, and the whole it is part of.
fn print_csv(report: &Report) -> Result<()> {
    let mut lines: Vec<(&str, String, String, i64, i64)> = Vec::new();
    for pipeline in &report.pipelines {
        let name = pipeline.pipeline.to_string();
        lines.push(("buried", name.clone(), String::new(), pipeline.buried, pipeline.settled()));
        lines.push(("recovered", name, String::new(), pipeline.recovered, pipeline.settled()));
    }
    for cause in &report.causes {
        lines.push(("cause", cause.id.clone(), cause.title.clone(), cause.buried, report.buried()));
    }
    let reasons =
        report.reasons.iter().map(|r| ("reason", r.reason.to_string(), String::new(), r.count, report.buried()));
    let codes = report.codes.iter().map(|c| ("code", c.code.clone(), String::new(), c.count, report.dead()));
    lines.extend(reasons.chain(codes));
    for (section, rates) in [("target", &report.targets), ("proxy", &report.proxies)] {
        let line = |rate: &Rate| (section, rate.name.clone(), String::new(), rate.failed, rate.attempts());
        lines.extend(rates.iter().map(line));
    }
    lines.extend(
        report
            .clock
            .iter()
            .map(|cell| ("hour", format!("{:02}", cell.hour), cell.reason.to_string(), cell.count, report.buried())),
    );
    lines.extend(report.fields.iter().map(|field| {
        ("field", field.field.clone(), format!("{} {}", field.pipeline, field.version), field.filled, field.records)
    }));
    out!("section,name,detail,count,of")?;
    for (section, name, detail, count, of) in &lines {
        out!("{}", csv::line(&[section, name, detail, &count.to_string(), &of.to_string()]))?;
    }
    Ok(())
}
