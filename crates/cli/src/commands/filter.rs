//! From filter arguments to the store's filters, and printing lists page by page.

use std::io;

use anyhow::Result;
use redrive::config::units;
use redrive::contract::{DeadFilter, JobFilter, Page};
use redrive_core::actors::{Actor, Via};
use redrive_core::time::Timestamp;
use serde::Serialize;

use crate::args::{DeadFilterArgs, FilterArgs, PageArgs};
use crate::exit::{Exit, usage};
use crate::output::json;
use crate::output::print::say;

/// The times a filter is bounded by.
fn bounds(args: &FilterArgs, now: Timestamp) -> Result<(Option<Timestamp>, Option<Timestamp>)> {
    span(args.since.as_deref(), args.until.as_deref(), now)
}

/// Reads `--since` and `--until`.
pub fn span(
    since: Option<&str>,
    until: Option<&str>,
    now: Timestamp,
) -> Result<(Option<Timestamp>, Option<Timestamp>)> {
    let instant = |text: Option<&str>| text.map(|text| units::instant(text, now)).transpose();
    Ok((instant(since).map_err(usage)?, instant(until).map_err(usage)?))
}

/// The filter for dead letters.
pub fn of_dead(args: DeadFilterArgs, now: Timestamp) -> Result<DeadFilter> {
    let DeadFilterArgs { cause, round, proxy, gate, common } = args;
    let (since, until) = bounds(&common, now)?;
    let FilterArgs { pipeline, reason, code, target, text, .. } = common;
    Ok(DeadFilter { pipeline, round, reason, code, target, cause, proxy, gate, since, until, text, within: Vec::new() })
}

/// The filter for jobs.
pub fn of_jobs(args: FilterArgs, now: Timestamp) -> Result<JobFilter> {
    let (since, until) = bounds(&args, now)?;
    let FilterArgs { pipeline, reason, code, target, text, .. } = args;
    Ok(JobFilter { pipeline, reason, code, target, since, until, text, ..JobFilter::default() })
}

/// Prints a list: one page, or all of them. `fetch` gets a page; `table` prints one for people.
pub async fn print<T: Serialize>(
    args: &PageArgs,
    fetch: impl AsyncFn(u32, Option<String>) -> Result<Page<T>, redrive::Error>,
    table: impl Fn(&[T]) -> io::Result<()>,
) -> Result<Exit> {
    let mut cursor = args.cursor.clone();
    let mut first = true;
    loop {
        let page = fetch(if args.all { 1_000 } else { args.limit }, cursor).await?;
        if args.json {
            for item in &page.items {
                json::line(item)?;
            }
        } else if !page.items.is_empty() || first {
            table(&page.items)?;
        }
        first = false;
        match page.next {
            Some(next) if args.all => cursor = Some(next),
            Some(next) => {
                say!("there are more: --cursor {next}, or --all");
                return Ok(Exit::Ok);
            }
            None => return Ok(Exit::Ok),
        }
    }
}

/// Who acts, for the record.
pub fn actor() -> Actor {
    let name = ["REDRIVE_ACTOR", "USER", "LOGNAME"].iter().find_map(|name| std::env::var(name).ok());
    let unnamed = || format!("uid {}", rustix::process::getuid().as_raw());
    Actor::new(name.filter(|name| !name.is_empty()).unwrap_or_else(unnamed), Via::Cli)
}
