//! `redrive dead import`: takes in what another store exported, or what a script wrote, and says which lines it did not take and
//! why.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use anyhow::{Context, Result};
use redrive::StoreError;
use redrive::clock::{Clock, SystemClock};
use redrive::dead::{Foretold, ForetoldCause, ImportNote, Imported, foretell_import};
use redrive_client::Desk;
use redrive_core::dead::foreign::{Field, Reading};
use redrive_core::ids::PipelineName;

use crate::args::ImportArgs;
use crate::commands::filter::actor;
use crate::exit::Exit;
use crate::output::foreign::cut;
use crate::output::json;
use crate::output::paint::{DIM, paint};
use crate::output::print::{out, say};
use crate::output::table;
use crate::output::words;
use crate::setting::Setting;

/// Lines that were not taken and are shown; the rest is only counted.
const BROKEN_SHOWN: u64 = 20;

/// Causes that are shown of what would come.
const CAUSES_SHOWN: usize = 20;

pub async fn run(setting: &Setting, args: ImportArgs) -> Result<Exit> {
    let (place, file): (String, Box<dyn Read + Send>) = match args.file == Path::new("-") {
        true => ("standard input".to_owned(), Box::new(std::io::stdin())),
        false => {
            let place = args.file.display().to_string();
            let file = File::open(&args.file).with_context(|| format!("cannot open {place}"))?;
            (place, Box::new(file))
        }
    };
    let foreign = args.pipeline.map(|pipeline| reading(setting, pipeline, (args.fields, args.keep_secrets)));
    let own_only = foreign.is_none();
    let reading = (foreign, setting.input_limits());
    let mut said = 0;
    let note = |note: ImportNote| {
        said += 1;
        if said <= BROKEN_SHOWN {
            say!("{place}:{}", told(&note));
        }
    };
    let (imported, foretold) = match args.dry_run {
        true => {
            let foretold = match existing(setting).await? {
                Some(redrive) => redrive.foretell_import((&place, file), reading, note).await?,
                None => foretell_import(None, (&place, file), reading, SystemClock.now(), note).await?,
            };
            (foretold.imported, Some(foretold))
        }
        false => {
            let redrive = setting.desk_or_new().await?;
            (redrive.import_dead_file((&place, file), reading, &actor(), note).await?, None)
        }
    };
    if said > BROKEN_SHOWN {
        say!("and {} more lines that were not taken", said - BROKEN_SHOWN);
    }
    if own_only && imported.broken > 0 {
        say!("if another program wrote it, --pipeline NAME takes it in");
    }
    if imported.masked > 0 {
        say!(
            "in the inputs of {} of them *** stands for what looked secret; to keep it: --keep-secrets",
            imported.masked
        );
    }
    match (&foretold, args.json) {
        (Some(foretold), true) => json::document(foretold)?,
        (None, true) => json::document(&imported)?,
        (Some(foretold), false) => print(foretold)?,
        (None, false) => out!("{}", sum(&imported, "imported"))?,
    }
    Ok(if imported.broken > 0 { Exit::LinesRefused } else { Exit::Ok })
}

/// How objects of another program are read, as the pipeline's configuration has it.
fn reading(setting: &Setting, pipeline: PipelineName, (named, keep_secrets): (Vec<(Field, String)>, bool)) -> Reading {
    Reading { named, keep_secrets, ..setting.reading(pipeline) }
}

/// The store, if it is there: who only asks makes none.
async fn existing(setting: &Setting) -> Result<Option<Desk>> {
    match setting.desk().await {
        Ok(redrive) => Ok(Some(redrive)),
        Err(redrive::Error::Store(StoreError::Missing { .. })) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn told(note: &ImportNote) -> String {
    match note {
        ImportNote::Broken { number, why } => format!("{number}: not a dead letter: {why}"),
        ImportNote::KeyTaken { number, key, id, state } => {
            format!(
                "{number}: skipped: its key {} belongs to task {id}, which is {}",
                cut(key, 80),
                words::state(*state)
            )
        }
    }
}

fn sum(imported: &Imported, what: &str) -> String {
    let also = |count: u64, what: &str| if count > 0 { format!(", {count} {what}") } else { String::new() };
    format!(
        "{} {what}, {} known already, {} broken{}{}",
        imported.new,
        imported.known,
        imported.broken,
        also(imported.failed_again, "failed again: added to the letters that are here"),
        also(imported.skipped, "skipped: their keys belong to other tasks"),
    )
}

/// Prints what would come of a file.
fn print(foretold: &Foretold) -> Result<()> {
    out!("{}", sum(&foretold.imported, "would be imported"))?;
    let row = |cause: &ForetoldCause| {
        vec![cause.letters.to_string(), cause.reason.to_string(), cause.gate.to_string(), cause.template.clone()]
    };
    let shown = &foretold.causes[..foretold.causes.len().min(CAUSES_SHOWN)];
    if !shown.is_empty() {
        table::print_titled(&[">letters", "reason", "gate", "what"], &shown.iter().map(row).collect::<Vec<_>>())?;
    }
    let more = foretold.causes.len() - shown.len();
    if more > 0 {
        out!("and {more} more {}", if more == 1 { "cause" } else { "causes" })?;
    }
    if let Some(sample) = &foretold.sample {
        out!("the input of the first would be {}", cut(&sample["input"].to_string(), 200))?;
    }
    Ok(out!("{}", paint(DIM, "nothing has happened: without --dry-run they are taken in"))?)
}
