//! `redrive dead show`: the original input and every attempt.

use std::io;

use anyhow::{Result, bail};
use redrive_core::dead::DeadLetter;
use redrive_core::failures::Failure;

use crate::args::ShowArgs;
use crate::exit::Exit;
use crate::output::paint::{BAD, DIM, HEADING, paint};
use crate::output::print::{harmless, out};
use crate::setting::Setting;

pub async fn run(setting: &Setting, args: ShowArgs) -> Result<Exit> {
    let store = setting.existing_store()?;
    let Some(letter) = store.get_dead(args.id).await? else {
        match store.get_job(args.id).await? {
            Some(detail) => bail!("job {} is {}, not dead: `redrive job show {0}` shows it", args.id, detail.job.state),
            None => bail!("no dead letter {} in {}", args.id, setting.location),
        }
    };
    if args.json {
        out!("{}", serde_json::to_string_pretty(&letter)?)?;
    } else {
        print(&letter)?;
    }
    Ok(Exit::Ok)
}

fn print(letter: &DeadLetter) -> Result<()> {
    out!("{} {}", paint(HEADING, "dead letter"), letter.id)?;
    let optional = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
    for (name, value) in [
        ("pipeline", letter.pipeline.to_string()),
        ("key", optional(&letter.key)),
        ("target", optional(&letter.target)),
        ("reason", letter.reason.to_string()),
        ("gate", letter.gate.to_string()),
        ("tried", format!("{} attempts, {} crashes, {} replays", letter.attempts, letter.crashes, letter.replays)),
        ("accepted", letter.accepted_at.to_string()),
        ("died", letter.died_at.to_string()),
    ] {
        out!("  {} {}", paint(DIM, format!("{name:<9}")), harmless(&value))?;
    }
    out!("{}", paint(HEADING, "input"))?;
    out!("{}", indent(&serde_json::to_string_pretty(&letter.input)?))?;
    Ok(print_failures(letter.failures.as_deref().unwrap_or_default())?)
}

/// Prints every failed attempt; what one says again in the same words is not repeated.
pub fn print_failures(failures: &[Failure]) -> io::Result<()> {
    let mut said = None;
    for failure in failures {
        print_failure(failure)?;
        let text = failure.stack.as_ref().or(failure.stderr.as_ref());
        match text {
            Some(text) if said == Some(text) => out!("    {}", paint(DIM, "(the same output as before)"))?,
            Some(text) => out!("{}", indent(text.trim_end()))?,
            None => {}
        }
        said = text;
    }
    Ok(())
}

fn print_failure(failure: &Failure) -> io::Result<()> {
    let what = if failure.crash { "crash in attempt" } else { "attempt" };
    let took = failure.duration_ms.map(|ms| format!(", took {ms} ms")).unwrap_or_default();
    out!("{} {}", paint(HEADING, format!("{what} {}", failure.attempt)), paint(DIM, format!("{}{took}", failure.at)))?;
    let code = failure.code.as_ref().map(|code| format!(" {code}")).unwrap_or_default();
    out!("  {}{}: {}", paint(BAD, failure.reason), harmless(&code), harmless(&failure.message))?;
    let status = failure.http_status.map(|status| status.to_string());
    let wait = failure.retry_after_secs.map(|secs| format!("{secs} s"));
    for (name, value) in [
        ("error type", &failure.error_type),
        ("stage", &failure.stage),
        ("status", &status),
        ("target", &failure.target),
        ("proxy", &failure.proxy),
        ("retry after", &wait),
    ] {
        if let Some(value) = value {
            out!("  {} {}", paint(DIM, format!("{name:<11}")), harmless(value))?;
        }
    }
    Ok(())
}

/// Text of unknown origin, indented and made safe for a terminal.
fn indent(text: &str) -> String {
    harmless(text).lines().map(|line| format!("    {line}")).collect::<Vec<_>>().join("\n")
}
