//! Redrive's benchmarks. Every number stands beside the limit it is measured against, from the same run.
//!
//! ```text
//! cargo build --release && cargo run --release -p redrive-bench            # or one part: -- store, -- scale, …
//! cargo run --release -p redrive-bench -- scale STORE                      # a store that is filled once, and kept
//! cargo run --release -p redrive-bench -- dashboard STORE [LETTERS]        # the same for the pages
//! cargo run --release -p redrive-bench -- grouping FOLDER                  # labelled failures
//! ```
//!
//! - `store`: durable enqueue, and lease → settle, beside plain rusqlite with the same rows
//! - `drain`: a closure that does nothing, two and 64 at once
//! - `command`: `redrive run` with a command that does nothing, beside `xargs -P`
//! - `payloads`: keeping pages beside what the disk takes, extracting from them beside the bare parser
//! - `replay`: replaying saved pages beside the bare handler
//! - `scale`: how long commands take over a million dead letters in a thousand causes
//! - `serve`: the server under load, beside the engine in the same process
//! - `dashboard`: the pages over as many, what a browser loads, and how soon a changed number is seen
//! - `instructions`: fixed work, whose instructions `bench/instructions` counts
//! - `grouping`: how well failures are grouped, and how fast
//! - `dead`: the million dead letters
//! - `postgres`: the PostgreSQL store beside our SQLite, plain INSERTs and graphile-worker; `bench/postgres` runs it

mod command;
mod dashboard;
mod dead;
mod drain;
mod grouping;
mod instructions;
mod payloads;
mod postgres;
mod raw;
mod replay;
mod scale;
mod serve;
mod store;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// Dead letters in the second half of the benchmark.
const DEAD_LETTERS: u64 = 1_000_000;

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let only: Option<String> = args.next();
    if only.as_deref() == Some("instructions") {
        let workload = args.next().context("name a workload")?;
        let rounds = args.next().context("say how many rounds")?.parse()?;
        let folder = tempfile::tempdir()?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        return runtime.block_on(instructions::run(&workload, folder.path(), rounds));
    }
    tokio::runtime::Runtime::new()?.block_on(measure(only, args))
}

async fn measure(only: Option<String>, mut args: impl Iterator<Item = String>) -> Result<()> {
    let folder = tempfile::tempdir_in(".")?;
    if only.as_deref() == Some("grouping") {
        let samples = args.next().context("name the folder with the labelled failures")?;
        return grouping::measure(Path::new(&samples));
    }
    if only.as_deref() == Some("postgres") {
        return postgres::measure(folder.path(), &postgres::Setting::from_environment()?).await;
    }
    if only.as_deref() == Some("serve") {
        return serve::measure(folder.path()).await;
    }
    if only.as_deref() == Some("dashboard") {
        let full = args.next().map_or_else(|| folder.path().join("full.db"), PathBuf::from);
        let letters = args.next().map_or(Ok(DEAD_LETTERS), |text| text.parse())?;
        if !full.exists() {
            dead::fill(&full, letters).await?;
        }
        return dashboard::measure(&full, letters);
    }
    let wanted = |part: &str| only.as_deref().is_none_or(|name| name == part);
    println!("| what | callers | dead letters | per second | limit | share of the limit |");
    println!("|---|--:|--:|--:|--:|--:|");
    round(&folder.path().join("empty.db"), 0, only.as_deref()).await?;
    if wanted("drain") {
        drain::measure(folder.path()).await?;
    }
    if wanted("payloads") {
        payloads::measure(folder.path()).await?;
    }
    if wanted("replay") {
        replay::measure(folder.path()).await?;
    }
    if wanted("scale") {
        let full = args.next().map_or_else(|| folder.path().join("full.db"), PathBuf::from);
        if !full.exists() {
            dead::fill(&full, DEAD_LETTERS).await?;
        }
        if only.is_none() {
            round(&full, DEAD_LETTERS, None).await?;
        }
        scale::measure(&full, DEAD_LETTERS).await?;
    }
    Ok(())
}

/// Everything, or only the part that is named.
async fn round(path: &Path, dead_letters: u64, only: Option<&str>) -> Result<()> {
    if only.is_none_or(|name| name == "store") {
        store::measure(path, dead_letters).await?;
    }
    if only.is_none_or(|name| name == "command") {
        command::measure(path, dead_letters)?;
    }
    Ok(())
}

/// Prints a measurement beside its limit.
fn row(what: &str, callers: usize, dead_letters: u64, rate: f64, limit: f64) {
    println!("| {what} | {callers} | {dead_letters} | {rate:.0} | {limit:.0} | {:.2} |", rate / limit);
}
