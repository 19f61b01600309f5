//! `redrive dead import`: takes in what another store exported.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use anyhow::{Context, Result};
use redrive::Redrive;
use redrive_core::dead::DeadLetter;
use redrive_store::contract::ImportDead;

use crate::args::ImportArgs;
use crate::exit::Exit;
use crate::output::print::out;
use crate::setting::Setting;

/// Letters that are taken in in one transaction.
const BATCH: usize = 200;

pub async fn run(setting: &Setting, args: ImportArgs) -> Result<Exit> {
    let place = if args.file == Path::new("-") { "standard input".into() } else { args.file.display().to_string() };
    let reader: Box<dyn Read> = match args.file == Path::new("-") {
        true => Box::new(std::io::stdin()),
        false => Box::new(File::open(&args.file).with_context(|| format!("cannot open {place}"))?),
    };
    let redrive = setting.redrive()?;
    let (mut read, mut new, mut broken) = (0, 0, 0);
    let mut batch = Vec::new();
    for (number, line) in BufReader::new(reader).split(b'\n').enumerate() {
        let line = line.with_context(|| format!("cannot read {place}"))?;
        if line.trim_ascii().is_empty() {
            continue;
        }
        match serde_json::from_slice::<DeadLetter>(&line).map_err(|error| error.to_string()).and_then(whole) {
            Ok(letter) => batch.push(letter),
            Err(why) => {
                broken += 1;
                eprintln!("{place}:{}: not a dead letter: {why}", number + 1);
            }
        }
        if batch.len() >= BATCH {
            read += batch.len() as u64;
            new += import(&redrive, std::mem::take(&mut batch)).await?;
        }
    }
    read += batch.len() as u64;
    new += import(&redrive, batch).await?;
    out!("{new} imported, {} known already, {broken} broken", read - new)?;
    Ok(if broken > 0 { Exit::LinesRefused } else { Exit::Ok })
}

/// A letter of a plain list has lost its failures, and would look as if it never failed.
fn whole(letter: DeadLetter) -> Result<DeadLetter, String> {
    match &letter.failures {
        Some(failures) if !failures.is_empty() => Ok(letter),
        _ => Err("it has no failures: use what `redrive dead export` wrote".to_owned()),
    }
}

async fn import(redrive: &Redrive, letters: Vec<DeadLetter>) -> Result<u64> {
    Ok(redrive.store().import_dead(ImportDead { letters, now: redrive.now() }).await?)
}
