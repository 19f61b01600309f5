//! `redrive codes`: the built-in tables, as they are looked up; one of the user's own, too.

use std::path::Path;

use anyhow::Result;
use redrive::config::{CHALLENGES, read_codes};
use redrive::handler::submit_poll::codes::{Codes, Meaning};
use redrive_core::failures::{Disposition, Reason};
use redrive_core::rules::{Known, known_names, known_statuses, known_types};
use serde_json::json;

use crate::args::CodesArgs;
use crate::exit::{Exit, usage};
use crate::output::paint::{HEADING, paint};
use crate::output::print::out;
use crate::output::{json, table};

/// How wide a line of names may be: the same everywhere, as it is quoted.
const WIDTH: usize = 80;

/// A table of what is known whoever the provider is.
struct General {
    name: &'static str,
    about: &'static str,
    list: fn() -> Vec<Known>,
}

const GENERAL: [General; 4] = [
    General { name: "statuses", about: "HTTP statuses", list: known_statuses },
    General {
        name: "names",
        about: "codes and types of errors, as HTTP clients and systems name them",
        list: known_names,
    },
    General { name: "types", about: "patterns for types of errors that are not known by name", list: known_types },
    General { name: "challenges", about: "patterns for pages that stand in for another", list: known_challenges },
];

fn known_challenges() -> Vec<Known> {
    vec![Known { reason: Reason::Blocked, by: CHALLENGES.iter().map(|sign| (*sign).to_owned()).collect() }]
}

pub fn run(args: &CodesArgs) -> Result<Exit> {
    let general = |name: &str| GENERAL.iter().find(|table| table.name == name).map(|table| (table.list)());
    match args.table.as_deref() {
        None => print_tables(args.json)?,
        Some(name) => match general(name) {
            Some(known) if args.json => json::document(&known)?,
            Some(known) => print_known(&known)?,
            None => print_codes(&codes(name)?, args.json)?,
        },
    }
    Ok(Exit::Ok)
}

/// A table of a provider, or of the user's own.
fn codes(name: &str) -> Result<Codes> {
    let is_file = Path::new(name).exists();
    if Codes::built_in(name).is_none() && !is_file {
        let known: Vec<_> = Codes::built_in_names().chain(GENERAL.map(|table| table.name)).collect();
        return Err(usage(format!("{name:?} is neither a table ({}) nor a file", known.join(", "))));
    }
    read_codes(name).map_err(usage)
}

/// Which tables there are.
fn print_tables(as_json: bool) -> Result<()> {
    let of_provider = |name: &'static str| {
        let codes = Codes::built_in(name).map_or(0, |codes| codes.iter().count());
        (name, codes, format!("codes of {}", Codes::built_in_for(name).unwrap_or("providers")))
    };
    let of_all =
        |General { name, about, list }| (name, list().iter().map(|known| known.by.len()).sum(), about.to_owned());
    let tables: Vec<_> = Codes::built_in_names().map(of_provider).chain(GENERAL.map(of_all)).collect();
    if as_json {
        for (table, entries, about) in tables {
            json::line(&json!({"table": table, "entries": entries, "about": about}))?;
        }
        return Ok(());
    }
    let row = |(name, entries, about): &(&str, usize, String)| vec![(*name).into(), entries.to_string(), about.clone()];
    table::print(&["table", ">entries", "what it is about"], &tables.iter().map(row).collect::<Vec<_>>())?;
    Ok(())
}

/// The codes of a provider, by reason.
fn print_codes(codes: &Codes, as_json: bool) -> Result<()> {
    if as_json {
        return Ok(json::document(codes)?);
    }
    let mut codes: Vec<_> = codes.iter().collect();
    codes.sort_by_key(|(code, meaning)| (meaning.reason, *code));
    let row = |(code, meaning): &(&str, &Meaning)| {
        let task = if meaning.is_spent() { "spent" } else { "kept" };
        vec![
            (*code).to_owned(),
            meaning.reason.to_string(),
            first(meaning),
            meaning.gate().to_string(),
            task.to_owned(),
        ]
    };
    let rows: Vec<_> = codes.iter().map(row).collect();
    Ok(table::print(&["~=code", "reason", "~first", "then", "task id"], &rows)?)
}

/// What happens to a job that gets this code.
fn first(meaning: &Meaning) -> String {
    let disposition = match meaning.disposition() {
        Disposition::Retry => "retry",
        Disposition::Dead => "dead",
        Disposition::Hold => "hold",
        Disposition::Done => "done",
        Disposition::Discard => "discard",
    };
    let wait = meaning.wait_secs.map(|secs| format!("{secs} s"));
    match (meaning.hold, wait) {
        (true, Some(wait)) => format!("{disposition}, others wait {wait}"),
        (true, None) => format!("{disposition}, others wait"),
        (false, Some(wait)) => format!("{disposition} after {wait}"),
        (false, None) => disposition.to_owned(),
    }
}

/// What is known by name, below its reason.
fn print_known(known: &[Known]) -> Result<()> {
    let width = table::terminal_width().unwrap_or(WIDTH);
    for Known { reason, by } in known {
        out!("{}", paint(HEADING, reason))?;
        // What has blanks in it would run together with the next.
        match by.iter().any(|name| name.contains(' ')) {
            true => out!("{}", table::wrapped(&by.join("\n"), "  "))?,
            false => out!("{}", table::folded(&format!("  {}", by.join(" ")), "  ", width).join("\n"))?,
        }
    }
    Ok(())
}
