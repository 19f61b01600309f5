//! `redrive demo`: the whole story on one machine in a minute, without network or configuration.
//!
//! - `site`: the small shop and solver that the demo works against
//! - `story`: the files the demo leaves behind for its user to look at

mod site;
mod story;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use redrive_core::dead::DeadLetter;
use redrive_store::contract::{DeadFilter, ListDead};

use self::site::Site;
use super::{run as run_command, signals};
use crate::args::{DemoArgs, Format, Global, HandlerArgs, RunArgs, TaskArgs};
use crate::exit::Exit;
use crate::output::paint::{BAD, DIM, HEADING, paint};
use crate::output::print::{harmless, out};
use crate::output::table;
use crate::setting::Setting;

/// The folder that is left behind.
const FOLDER: &str = "redrive-demo";

pub async fn run(global: &Global, args: &DemoArgs) -> Result<Exit> {
    let site = Site::start().context("the demo's site cannot be started")?;
    if args.serve {
        return serve(site).await;
    }
    let folder = fresh_folder()?;
    story::write(&folder, &site).with_context(|| format!("cannot write to {}", folder.display()))?;
    std::env::set_current_dir(&folder).with_context(|| format!("cannot enter {}", folder.display()))?;
    let global = Global { store: None, config: None, ..global.clone() };
    let setting = Setting::load(&global)?;
    heading(&format!("A shop of {} pages on {}, whose layout changes half-way", site::PRODUCTS, site.address()))?;
    run_pipeline(&setting, "catalog", "products.jsonl").await?;
    heading("A solver that takes tasks and is asked for their results")?;
    run_pipeline(&setting, "solver", "puzzles.jsonl").await?;
    out!(
        "{}",
        paint(DIM, format!("submitted {} times, polled {} times", site.count("/in.php"), site.count("/res.php")))
    )?;
    site.stop().await;
    show_what_died(&setting).await?;
    show_the_spot(&setting).await?;
    show_what_to_try(&folder)?;
    Ok(Exit::Ok)
}

/// Only the site, for trying things out against it.
async fn serve(site: Site) -> Result<Exit> {
    out!("{}", site.url("/"))?;
    let stop = redrive::CancellationToken::new();
    signals::watch(stop.clone(), stop.clone(), |_| {});
    stop.cancelled().await;
    site.stop().await;
    Ok(Exit::Ok)
}

fn fresh_folder() -> Result<PathBuf> {
    let names = std::iter::once(FOLDER.to_owned()).chain((2..).map(|n| format!("{FOLDER}-{n}")));
    for name in names {
        match std::fs::create_dir(&name) {
            Ok(()) => return Ok(Path::new(&name).canonicalize()?),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error).with_context(|| format!("cannot make the folder {name}")),
        }
    }
    unreachable!("there is always another number")
}

fn heading(text: &str) -> Result<()> {
    Ok(out!("\n{}", paint(HEADING, text))?)
}

async fn run_pipeline(setting: &Setting, name: &str, file: &str) -> Result<Exit> {
    let args = RunArgs {
        tasks: TaskArgs { file: file.into(), format: Format::Auto, strict: true },
        out: None,
        handler: HandlerArgs { pipeline: vec![name.parse()?], ..HandlerArgs::default() },
    };
    run_command::run(setting, args).await
}

async fn letters(setting: &Setting, filter: DeadFilter) -> Result<Vec<DeadLetter>> {
    let params = ListDead { filter, limit: 1_000, cursor: None, with_failures: true };
    Ok(setting.existing_store()?.list_dead(params).await?.items)
}

/// The dead letters, by pipeline, reason and code.
async fn show_what_died(setting: &Setting) -> Result<()> {
    heading("What died, and why")?;
    let mut groups: Vec<(DeadLetter, usize)> = Vec::new();
    for letter in letters(setting, DeadFilter::default()).await? {
        let alike = |other: &DeadLetter| {
            (&other.pipeline, other.reason, &other.code) == (&letter.pipeline, letter.reason, &letter.code)
        };
        match groups.iter_mut().find(|(other, _)| alike(other)) {
            Some((_, count)) => *count += 1,
            None => groups.push((letter, 1)),
        }
    }
    groups.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let row = |(letter, count): &(DeadLetter, usize)| {
        vec![
            count.to_string(),
            letter.pipeline.to_string(),
            letter.reason.to_string(),
            letter.code.clone().unwrap_or_else(|| "-".into()),
            letter.gate.to_string(),
            letter.message.clone(),
        ]
    };
    let headings = [">letters", "pipeline", "reason", "code", "gate", "for example"];
    Ok(table::print(&headings, &groups.iter().map(row).collect::<Vec<_>>())?)
}

/// One saved page, at the very spot where the price was looked for.
async fn show_the_spot(setting: &Setting) -> Result<()> {
    let filter = DeadFilter { code: Some("SelectorNotFound".into()), ..DeadFilter::default() };
    let Some(letter) = letters(setting, filter).await?.pop() else { return Ok(()) };
    let Some(payload) = letter.failures.iter().flatten().find_map(|failure| failure.payload.clone()) else {
        return Ok(());
    };
    let redrive = setting.redrive_existing()?;
    let vault = setting.vault(&redrive)?.context("the demo has a vault")?;
    let mut page = Vec::new();
    vault.copy(payload.hash, &mut page).await?;
    let page = String::from_utf8_lossy(&page);
    heading(&format!("The page that broke {}", letter.id))?;
    out!("{}", paint(BAD, harmless(&letter.message)))?;
    out!("{}", paint(DIM, format!("{} bytes were kept; where the price is now:", payload.size_bytes)))?;
    let lines: Vec<&str> = page.lines().collect();
    let at = lines.iter().position(|line| line.contains("class=\"price\"")).unwrap_or(0);
    for (n, line) in lines.iter().enumerate().skip(at.saturating_sub(1)).take(4) {
        out!("{} {}", paint(DIM, format!("{:>5}", n + 1)), table::cut(harmless(line).trim_end(), Some(110)))?;
    }
    Ok(())
}

fn show_what_to_try(folder: &Path) -> Result<()> {
    heading("Look around: the site is gone, everything is here")?;
    let name = folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    out!("  cd {name}")?;
    for (command, what) in [
        ("redrive status", "the ledger of both pipelines"),
        ("redrive dead list --reason schema_validation", "the pages whose price is not where it was"),
        ("redrive dead show ID", "one of them, with every attempt"),
        ("redrive payload show ID > page.html", "the exact bytes that broke it"),
        ("redrive audit", "recount everything"),
    ] {
        out!("  {command:<48}{}", paint(DIM, what))?;
    }
    Ok(())
}
