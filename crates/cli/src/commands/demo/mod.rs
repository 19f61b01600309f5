//! `redrive demo`: the whole story on one machine in a minute, without network or configuration.
//!
//! - `site`: the small shop and solver that the demo works against
//! - `story`: the files the demo leaves behind for its user to look at
//!
//! What it does it does by the commands that its user would type, and shows them.

mod site;
mod story;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::Parser;
use redrive::contract::{DeadFilter, ListDead};
use redrive_core::dead::DeadLetter;

use self::site::Site;
use super::{serve, signals};
use crate::args::{Cli, Command, DemoArgs, Global};
use crate::exit::Exit;
use crate::output::foreign::{cut, harmless};
use crate::output::paint::{BAD, DIM, GOOD, HEADING, paint};
use crate::output::print::out;
use crate::setting;
use crate::setting::Setting;

/// The folder that is left behind.
const FOLDER: &str = "redrive-demo";

/// The name of the page that is left behind.
const REPORT: &str = "report.html";

pub async fn run(global: &Global, args: &DemoArgs) -> Result<Exit> {
    let site = Site::start().context("the demo's site cannot be started")?;
    if args.serve {
        return serve(site).await;
    }
    let folder = fresh_folder()?;
    story::write(&folder, &site).with_context(|| format!("cannot write to {}", folder.display()))?;
    std::env::set_current_dir(&folder).with_context(|| format!("cannot enter {}", folder.display()))?;
    let setting = setting::load(&Global { store: None, config: None, ..global.clone() })?;
    heading(&format!("A shop of {} pages on {}, whose layout changes half-way", site::PRODUCTS, site.address()))?;
    tell(global, &["run", "products.jsonl", "--pipeline", "catalog"]).await?;
    heading("A solver that takes tasks and is asked for their results")?;
    tell(global, &["run", "puzzles.jsonl", "--pipeline", "solver"]).await?;
    out!(
        "{}",
        paint(DIM, format!("submitted {} times, polled {} times", site.count("/in.php"), site.count("/res.php")))
    )?;
    site.stop().await;
    heading("The site is switched off. What died, and why")?;
    tell(global, &["cause", "list"]).await?;
    if args.dashboard {
        return show_dashboard(&setting).await;
    }
    bring_back(global, &setting).await?;
    heading("What fails, where, when, since when")?;
    tell(global, &["report", "--html", REPORT]).await?;
    show_what_to_try(&folder)?;
    Ok(Exit::Ok)
}

/// The rule is corrected, tried on the saved pages, and the letters are replayed from them.
async fn bring_back(global: &Global, setting: &Setting) -> Result<()> {
    let Some(letter) = letters(setting, "SelectorNotFound").await?.pop() else { return Ok(()) };
    let cause = letter.cause.as_ref().context("a letter has a cause")?.to_string();
    heading(&format!("The largest cause: the page that broke {}", letter.id))?;
    show_the_spot(setting, &letter, "class=\"price").await?;
    tell(global, &["cause", "assign", &cause, "you"]).await?;
    heading("The rule is corrected in redrive.toml")?;
    let (old, new) = story::correct().context("cannot correct redrive.toml")?;
    out!("{}", paint(BAD, format!("- {old}")))?;
    out!("{}", paint(GOOD, format!("+ {new}")))?;
    heading("Would it work? Every saved page is read again; nothing is settled")?;
    tell(global, &["replay", "try", "--cause", &cause]).await?;
    heading("Then bring them back: one, five, twenty, all; from the saved pages")?;
    tell(global, &["replay", "start", "--cause", &cause, "--name", "price selector corrected"]).await?;
    heading("What still cannot be done stays dead, with a cause of its own")?;
    tell(global, &["cause", "list"]).await?;
    if let Some(letter) = letters(setting, "SelectorNotFound").await?.pop() {
        show_the_spot(setting, &letter, "class=\"price").await?;
    }
    Ok(())
}

/// The story goes on where people look at it: the rule is theirs to correct, and the letters theirs to bring back.
async fn show_dashboard(setting: &Setting) -> Result<Exit> {
    let cause = letters(setting, "SelectorNotFound").await?.pop().and_then(|letter| letter.cause);
    let (old, new) = story::RULES;
    let folder = std::env::current_dir()?;
    let folder = folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    heading(&format!(
        "The rest is yours: open the page, correct the rule in {folder}/redrive.toml, replay from the saved pages"
    ))?;
    out!("{}", paint(BAD, format!("- {old}")))?;
    out!("{}", paint(GOOD, format!("+ {new}")))?;
    let cli = Cli::try_parse_from(["redrive", "serve", "--work", "--listen", "127.0.0.1:0"])?;
    let Command::Serve(args) = cli.command else { bail!("the demo serves") };
    let open = |address, link: &str| {
        let page = cause.map_or_else(String::new, |cause| format!("causes/{cause}"));
        let path = if link.is_empty() { format!("/{page}") } else { format!("{link}&to=/{page}") };
        out!(
            "open http://{address}{path}\n{}",
            paint(DIM, format!("Ctrl-C ends it; redrive serve in {folder} shows it again"))
        )
    };
    serve::run_telling(setting, args, open).await
}

/// Shows a command and runs it. How it ends is part of the story.
async fn tell(global: &Global, words: &[&str]) -> Result<Exit> {
    let shown: Vec<String> =
        words.iter().map(|word| if word.contains(' ') { format!("'{word}'") } else { (*word).to_owned() }).collect();
    out!("{}", paint(DIM, format!("$ redrive {}", shown.join(" "))))?;
    let mut cli = Cli::try_parse_from(std::iter::once("redrive").chain(words.iter().copied()))?;
    cli.global = Global { store: None, config: None, ..global.clone() };
    match Box::pin(super::run(cli)).await? {
        Exit::Interrupted => std::process::exit(130),
        exit => Ok(exit),
    }
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

/// The newest dead letters with a code.
async fn letters(setting: &Setting, code: &str) -> Result<Vec<DeadLetter>> {
    let filter = DeadFilter { code: Some(code.to_owned()), ..DeadFilter::default() };
    let params = ListDead { with_failures: true, ..ListDead::newest(filter, 1_000) };
    Ok(setting.redrive_existing().await?.store().list_dead(params).await?.items)
}

/// A saved page, at the very spot where something was looked for.
async fn show_the_spot(setting: &Setting, letter: &DeadLetter, sign: &str) -> Result<()> {
    let payload = letter.failures.iter().flatten().rev().find_map(|failure| failure.payload.clone());
    let Some(payload) = payload else { return Ok(()) };
    let redrive = setting.redrive_existing().await?;
    let vault = setting.vault(&redrive)?.context("the demo has a vault")?;
    let mut page = Vec::new();
    vault.copy(payload.hash, &mut page).await?;
    let page = String::from_utf8_lossy(&page);
    out!("{}", paint(BAD, harmless(&letter.message)))?;
    out!("{}", paint(DIM, format!("{} bytes were kept; where the price is now:", payload.size_bytes)))?;
    let lines: Vec<&str> = page.lines().collect();
    let at = lines.iter().position(|line| line.contains(sign)).unwrap_or(0);
    for (n, line) in lines.iter().enumerate().skip(at.saturating_sub(1)).take(3) {
        out!("{} {}", paint(DIM, format!("{:>5}", n + 1)), cut(line.trim_end(), 110))?;
    }
    Ok(())
}

fn show_what_to_try(folder: &Path) -> Result<()> {
    heading("Look around: the site is gone, everything is here")?;
    let name = folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    out!("  cd {name}")?;
    for (command, what) in [
        ("redrive status", "the ledger of both pipelines"),
        ("redrive cause show CAUSE", "why these letters belong together"),
        ("redrive replay list", "what was brought back, by whom, with what result"),
        ("redrive dead show ID", "one of them, with every attempt"),
        ("redrive payload show ID > page.html", "the exact bytes that broke it"),
        ("redrive report", "the report in the terminal; report.html has the charts"),
        ("redrive audit", "recount everything"),
    ] {
        out!("  {command:<48}{}", paint(DIM, what))?;
    }
    Ok(())
}
