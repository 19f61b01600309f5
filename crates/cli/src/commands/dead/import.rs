//! `redrive dead import`: takes in what another store exported, and says which lines it did not take and why.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use anyhow::{Context, Result};
use redrive::config::Setting;
use redrive::dead::{ImportNote, Imported};

use crate::args::ImportArgs;
use crate::commands::filter::actor;
use crate::exit::Exit;
use crate::output::foreign::cut;
use crate::output::print::{out, say};

pub async fn run(setting: &Setting, args: ImportArgs) -> Result<Exit> {
    let (place, file): (String, Box<dyn Read + Send>) = match args.file == Path::new("-") {
        true => ("standard input".to_owned(), Box::new(std::io::stdin())),
        false => {
            let place = args.file.display().to_string();
            let file = File::open(&args.file).with_context(|| format!("cannot open {place}"))?;
            (place, Box::new(file))
        }
    };
    let note = |note| match note {
        ImportNote::Broken { number, why } => say!("{place}:{number}: not a dead letter: {why}"),
        ImportNote::KeyTaken { number, key, id, state } => {
            say!("{place}:{number}: skipped: its key {} belongs to job {id}, which is {state}", cut(&key, 80));
        }
    };
    let imported = setting.redrive().await?.import_dead_lines(&place, &actor(), file, note).await?;
    out!("{}", told(&imported))?;
    Ok(if imported.broken > 0 { Exit::LinesRefused } else { Exit::Ok })
}

fn told(imported: &Imported) -> String {
    let also = |count: u64, what: &str| if count > 0 { format!(", {count} {what}") } else { String::new() };
    format!(
        "{} imported, {} known already, {} broken{}{}",
        imported.new,
        imported.known,
        imported.broken,
        also(imported.failed_again, "failed again: added to the letters that are here"),
        also(imported.skipped, "skipped: their keys belong to other jobs"),
    )
}
