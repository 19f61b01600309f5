//! Taking in dead letters of another store: each is checked at the door, and those that are fit are handed to the store.

use std::io::{BufRead, BufReader, Read};

use redrive_core::actors::Actor;
use redrive_core::dead::DeadLetter;
use redrive_core::dead::import::{Arrival, Unfit, check, received};
use redrive_core::ids::JobId;
use redrive_core::state::JobState;
use redrive_store::contract::{BroughtLetter, ImportDead};
use tokio::sync::mpsc;

use super::DeadError;
use crate::engine::Redrive;
use crate::error::Error;
use crate::lines::{Lines, without_place};

/// Letters that are taken in in one transaction.
const BATCH: usize = 200;

/// What became of a file of dead letters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Imported {
    /// Letters that are new.
    pub new: u64,
    /// Letters that were here and have failed again since: what is new in them was added.
    pub failed_again: u64,
    /// Letters that were here already.
    pub known: u64,
    /// Letters whose keys belong to other jobs.
    pub skipped: u64,
    /// Lines that are no dead letters.
    pub broken: u64,
}

/// A line that was not taken in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ImportNote {
    /// It is no dead letter.
    Broken {
        /// The line, from 1.
        number: u64,
        /// What is wrong with it.
        why: String,
    },
    /// Its key belongs to another job.
    KeyTaken {
        /// The line, from 1.
        number: u64,
        /// The key.
        key: String,
        /// The job that has it.
        id: JobId,
        /// Where that is.
        state: JobState,
    },
}

/// A line with its number: a letter, or why it is none.
type Line = (u64, Result<DeadLetter, String>);

impl Redrive {
    /// Takes in dead letters, in one transaction, and says what became of each. Taking in the same letters again changes
    /// nothing.
    pub async fn import_dead(
        &self,
        letters: Vec<DeadLetter>,
        by: &Actor,
    ) -> Result<Vec<Result<Arrival, Unfit>>, Error> {
        let now = self.now();
        let checked: Vec<Result<(), Unfit>> = letters.iter().map(|letter| check(letter, now)).collect();
        let fit = letters.into_iter().zip(&checked).filter_map(|(letter, checked)| checked.is_ok().then_some(letter));
        let rules = self.cause_rules().await?;
        let letters = fit.filter_map(|letter| BroughtLetter::recognised(received(letter), &rules)).collect();
        let params = ImportDead { letters, by: by.clone(), now };
        let mut arrivals = self.store.import_dead(params).await?.into_iter();
        let missing = || Error::Internal("the store did not say what became of a letter".to_owned());
        let arrived = |checked: Result<(), Unfit>| match checked {
            Ok(()) => arrivals.next().map(Ok).ok_or_else(missing),
            Err(unfit) => Ok(Err(unfit)),
        };
        checked.into_iter().map(arrived).collect()
    }

    /// Takes in dead letters as JSON Lines, in batches. `note` hears of each line that is not taken in, in their order;
    /// `place` is what errors call the file.
    pub async fn import_dead_lines(
        &self,
        place: &str,
        by: &Actor,
        from: impl Read + Send + 'static,
        mut note: impl FnMut(ImportNote),
    ) -> Result<Imported, Error> {
        let (sender, mut batches) = mpsc::channel::<Vec<Line>>(2);
        let reading = tokio::task::spawn_blocking(move || read(BufReader::new(from), &sender));
        let mut imported = Imported::default();
        while let Some(batch) = batches.recv().await {
            self.import_batch(batch, by, &mut imported, &mut note).await?;
        }
        let read = reading.await.map_err(|panic| Error::Internal(format!("reading dead letters ended: {panic}")))?;
        read.map_err(|source| DeadError::Unreadable { place: place.to_owned(), source })?;
        Ok(imported)
    }

    async fn import_batch(
        &self,
        batch: Vec<Line>,
        by: &Actor,
        imported: &mut Imported,
        note: &mut impl FnMut(ImportNote),
    ) -> Result<(), Error> {
        let letters: Vec<_> = batch.iter().filter_map(|(_, line)| line.as_ref().ok().cloned()).collect();
        let mut arrivals = self.import_dead(letters, by).await?.into_iter();
        for (number, line) in batch {
            let arrival = match line {
                Ok(letter) => arrivals.next().map(|arrival| (letter.key.unwrap_or_default(), arrival)),
                Err(why) => {
                    imported.broken += 1;
                    note(ImportNote::Broken { number, why });
                    continue;
                }
            };
            match arrival {
                Some((_, Ok(Arrival::New))) => imported.new += 1,
                Some((_, Ok(Arrival::FailedAgain(_)))) => imported.failed_again += 1,
                Some((_, Ok(Arrival::Known))) => imported.known += 1,
                Some((key, Ok(Arrival::KeyTaken { id, state }))) => {
                    imported.skipped += 1;
                    note(ImportNote::KeyTaken { number, key, id, state });
                }
                Some((_, Err(unfit))) => {
                    imported.broken += 1;
                    note(ImportNote::Broken { number, why: unfit.to_string() });
                }
                None => {}
            }
        }
        Ok(())
    }
}

/// Reads lines into batches, until nobody takes them.
fn read(from: impl BufRead, batches: &mpsc::Sender<Vec<Line>>) -> std::io::Result<()> {
    let mut lines = Lines::of(from);
    let mut batch = Vec::new();
    while let Some((number, line)) = lines.next()? {
        let letter = line.and_then(letter);
        batch.extend(letter.transpose().map(|letter| (number, letter)));
        if batch.len() >= BATCH && batches.blocking_send(std::mem::take(&mut batch)).is_err() {
            return Ok(());
        }
    }
    if !batch.is_empty() {
        let _ = batches.blocking_send(batch);
    }
    Ok(())
}

/// The letter on a line; nothing for an empty line.
fn letter(line: &[u8]) -> Result<Option<DeadLetter>, String> {
    match line.trim_ascii() {
        [] => Ok(None),
        line => serde_json::from_slice(line).map(Some).map_err(|error| without_place(&error)),
    }
}
