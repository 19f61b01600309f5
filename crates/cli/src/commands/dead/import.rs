//! `redrive dead import`: takes in what another store exported, and says which lines it did not take and why.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

use anyhow::{Context, Result};
use redrive::Redrive;
use redrive::config::Setting;
use redrive_core::dead::DeadLetter;
use redrive_core::dead::import::Arrival;

use crate::args::ImportArgs;
use crate::exit::Exit;
use crate::lines::{Lines, without_place};
use crate::output::foreign::cut;
use crate::output::print::{out, say};

/// Letters that are taken in in one transaction.
const BATCH: usize = 200;

pub async fn run(setting: &Setting, args: ImportArgs) -> Result<Exit> {
    let place = if args.file == Path::new("-") { "standard input".into() } else { args.file.display().to_string() };
    let reader: Box<dyn Read> = match args.file == Path::new("-") {
        true => Box::new(std::io::stdin()),
        false => Box::new(File::open(&args.file).with_context(|| format!("cannot open {place}"))?),
    };
    let mut import = Import {
        redrive: setting.redrive().await?,
        place: place.clone(),
        batch: Vec::new(),
        counts: Counts::default(),
    };
    let mut lines = Lines::of(BufReader::new(reader));
    while let Some((number, line)) = lines.next().with_context(|| format!("cannot read {place}"))? {
        match line.and_then(letter) {
            Ok(Some(letter)) => import.batch.push((number, letter)),
            Ok(None) => {}
            Err(why) => import.refuse(number, &why),
        }
        if import.batch.len() >= BATCH {
            import.take_in().await?;
        }
    }
    import.take_in().await?;
    out!("{}", import.counts.say())?;
    Ok(if import.counts.broken > 0 { Exit::LinesRefused } else { Exit::Ok })
}

/// The letter on a line; nothing for an empty line.
fn letter(line: &[u8]) -> Result<Option<DeadLetter>, String> {
    match line.trim_ascii() {
        [] => Ok(None),
        line => serde_json::from_slice(line).map(Some).map_err(|error| without_place(&error)),
    }
}

/// An import under way.
struct Import {
    redrive: Redrive,
    place: String,
    /// Letters with the numbers of their lines.
    batch: Vec<(u64, DeadLetter)>,
    counts: Counts,
}

/// What became of the lines.
#[derive(Default)]
struct Counts {
    new: u64,
    failed_again: u64,
    known: u64,
    skipped: u64,
    broken: u64,
}

impl Counts {
    fn say(&self) -> String {
        let also = |count: u64, what: &str| if count > 0 { format!(", {count} {what}") } else { String::new() };
        format!(
            "{} imported, {} known already, {} broken{}{}",
            self.new,
            self.known,
            self.broken,
            also(self.failed_again, "failed again: added to the letters that are here"),
            also(self.skipped, "skipped: their keys belong to other jobs"),
        )
    }
}

impl Import {
    fn refuse(&mut self, number: u64, why: &str) {
        self.counts.broken += 1;
        say!("{}:{number}: not a dead letter: {why}", self.place);
    }

    async fn take_in(&mut self) -> Result<()> {
        let (numbers, letters): (Vec<_>, Vec<_>) = std::mem::take(&mut self.batch).into_iter().unzip();
        let keys: Vec<_> = letters.iter().map(|letter| letter.key.clone().unwrap_or_default()).collect();
        let arrivals = self.redrive.import_dead(letters).await?;
        for ((number, key), arrival) in numbers.into_iter().zip(keys).zip(arrivals) {
            match arrival {
                Ok(Arrival::New) => self.counts.new += 1,
                Ok(Arrival::FailedAgain(_)) => self.counts.failed_again += 1,
                Ok(Arrival::Known) => self.counts.known += 1,
                Ok(Arrival::KeyTaken { id, state }) => {
                    self.counts.skipped += 1;
                    let key = cut(&key, 80);
                    say!("{}:{number}: skipped: its key {key} belongs to job {id}, which is {state}", self.place);
                }
                Err(unfit) => self.refuse(number, &unfit.to_string()),
            }
        }
        Ok(())
    }
}
