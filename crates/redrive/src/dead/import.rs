//! Taking in dead letters of another store, or of other programs: each is checked at the door, and those that are fit are handed to the store.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io::{self, BufRead, BufReader, Read};

use redrive_core::actors::Actor;
use redrive_core::dead::DeadLetter;
use redrive_core::dead::foreign::{ForeignLetter, Reading, id_within};
use redrive_core::dead::import::{Arrival, Unfit, Way, check, received};
use redrive_core::ids::{JobId, PipelineName};
use redrive_core::jobs::{InputLimits, Origin};
use redrive_core::payloads::PayloadHash;
use redrive_core::state::JobState;
use redrive_store::contract::{BroughtLetter, ImportDead};
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::DeadError;
use super::read::{Reader, Written, WrittenLetter, read};
use crate::engine::Redrive;
use crate::error::Error;

/// Letters that are taken in in one transaction.
const BATCH: usize = 200;

/// Why a letter that was brought over the network has no payload.
const NOT_THEIRS: &str = "the token that imported it is for no pipeline that has these bytes";

/// What became of a file of dead letters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
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
    /// Of the new: letters whose inputs have masks in place of what looked secret.
    pub masked: u64,
}

impl std::ops::AddAssign for Imported {
    fn add_assign(&mut self, other: Self) {
        self.new += other.new;
        self.failed_again += other.failed_again;
        self.known += other.known;
        self.skipped += other.skipped;
        self.broken += other.broken;
        self.masked += other.masked;
    }
}

/// A line that was not taken in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
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

impl ImportNote {
    /// The line that it is about.
    pub const fn line(&self) -> u64 {
        match self {
            Self::Broken { number, .. } | Self::KeyTaken { number, .. } => *number,
        }
    }
}

/// A letter with the line on which it stands, or ends; or why it is none.
pub(super) type ReadLetter = (u64, Result<ForeignLetter, String>);

/// The letter that is written, if it can be read and is one.
pub(super) fn understood(reader: &Reader, written: Result<Written, String>) -> Result<ForeignLetter, String> {
    written.and_then(|written| reader.letter_of(written))
}

/// A letter as it is taken in over the network, if who brings it may bring it.
pub(super) fn from_network(
    mut brought: ForeignLetter,
    may: &impl Fn(&PipelineName) -> bool,
) -> Result<ForeignLetter, String> {
    let letter = &mut brought.letter;
    if !may(&letter.pipeline) {
        return Err(format!("this token is not for pipeline {}", letter.pipeline));
    }
    let own = letter.origin.take().unwrap_or_else(|| Origin::over_network("import"));
    letter.origin = Some(Origin::touched(Some(own)));
    Ok(brought)
}

/// A letter on its way to the store.
pub(super) struct Brought {
    pub(super) letter: DeadLetter,
    pub(super) way: Way,
    /// Fields of its input that are counted, with their values.
    pub(super) tracked: Vec<(String, String)>,
}

impl Brought {
    const fn imported(letter: DeadLetter, dated: bool) -> Self {
        Self { letter, way: Way::Imported { dated }, tracked: Vec::new() }
    }
}

impl Redrive {
    /// Takes in dead letters, in one transaction, and says what became of each. Taking in the same letters again changes
    /// nothing.
    pub async fn import_dead(
        &self,
        letters: Vec<DeadLetter>,
        by: &Actor,
    ) -> Result<Vec<Result<Arrival, Unfit>>, Error> {
        self.import_letters(letters.into_iter().map(|letter| Brought::imported(letter, true)).collect(), by).await
    }

    /// The same of letters, however they come.
    pub(super) async fn import_letters(
        &self,
        letters: Vec<Brought>,
        by: &Actor,
    ) -> Result<Vec<Result<Arrival, Unfit>>, Error> {
        let now = self.now();
        let checked: Vec<Result<(), Unfit>> = letters.iter().map(|brought| check(&brought.letter, now)).collect();
        let fit = letters.into_iter().zip(&checked).filter_map(|(letter, checked)| checked.is_ok().then_some(letter));
        let rules = self.cause_rules().await?;
        let recognised = |Brought { letter, way, tracked }| {
            Some(BroughtLetter { way, tracked, ..BroughtLetter::recognised(received(letter), &rules)? })
        };
        let letters: Vec<_> = fit.filter_map(recognised).collect();
        let params = ImportDead { letters: letters.into(), by: by.clone(), now };
        let mut arrivals = self.store.import_dead(params).await?.into_iter();
        let missing = || Error::Internal("the store did not say what became of a letter".to_owned());
        let arrived = |checked: Result<(), Unfit>| match checked {
            Ok(()) => arrivals.next().map(Ok).ok_or_else(missing),
            Err(unfit) => Ok(Err(unfit)),
        };
        checked.into_iter().map(arrived).collect()
    }

    /// Takes in a file of dead letters, in batches: what was exported, or, if it is said how, what other programs wrote. `note`
    /// hears of each line that is not taken in, in their order; `place` is what errors call the file.
    pub async fn import_dead_file(
        &self,
        (place, from): (&str, impl Read + Send + 'static),
        (foreign, limits): (Option<Reading>, InputLimits),
        by: &Actor,
        mut note: impl FnMut(ImportNote),
    ) -> Result<Imported, Error> {
        let mut imported = Imported::default();
        let reader = Reader { foreign, limits, now: self.now() };
        let mut batches = Batches::read(place, from);
        while let Some(batch) = batches.next().await? {
            let letters = batch.into_iter().map(|(line, written)| (line, understood(&reader, written))).collect();
            self.import_batch(letters, by, &mut imported, &mut note).await?;
        }
        Ok(imported)
    }

    /// The same of letters that came over the network, as far as who brings them may: what is written to a file there is read here.
    pub async fn import_brought(
        &self,
        batch: Vec<WrittenLetter>,
        (foreign, limits): (Option<Reading>, InputLimits),
        (by, may, sees_all): (&Actor, impl Fn(&PipelineName) -> bool, bool),
        mut note: impl FnMut(ImportNote),
    ) -> Result<Imported, Error> {
        let (mut imported, reader) = (Imported::default(), Reader { foreign, limits, now: self.now() });
        let read = |(line, written)| {
            let letter = understood(&reader, written).and_then(|brought| from_network(brought, &may));
            (line, letter)
        };
        let mut letters: Vec<ReadLetter> = batch.into_iter().map(read).collect();
        if !sees_all {
            let brought = letters.iter_mut().filter_map(|(_, letter)| letter.as_mut().ok());
            self.withhold_payloads(brought.map(|brought| &mut brought.letter), &may).await?;
            self.part_from_foreign(&mut letters).await?;
        }
        self.import_batch(letters, by, &mut imported, &mut note).await?;
        Ok(imported)
    }

    /// Gives letters whose ids are those of other pipelines' jobs ids of their own: who sees some pipelines only neither learns that they
    /// are taken, nor loses the letters.
    pub(super) async fn part_from_foreign(&self, letters: &mut [ReadLetter]) -> Result<(), Error> {
        for ForeignLetter { letter, .. } in letters.iter_mut().filter_map(|(_, read)| read.as_mut().ok()) {
            let known = self.store.get_job(letter.id).await?;
            if known.is_some_and(|known| known.job.pipeline != letter.pipeline) {
                letter.id = id_within(&letter.pipeline, letter.id);
            }
        }
        Ok(())
    }

    /// Takes payloads out of letters that no pipeline refers to which their sender may see: whoever knows the hash of a payload must not
    /// get its bytes by naming it.
    async fn withhold_payloads(
        &self,
        letters: impl Iterator<Item = &mut DeadLetter>,
        may: &impl Fn(&PipelineName) -> bool,
    ) -> Result<(), Error> {
        let mut known = HashMap::new();
        for letter in letters {
            let payloads = || letter.failures.iter().flatten().filter_map(|failure| failure.payload.as_ref());
            for hash in payloads().map(|payload| payload.hash).chain(letter.payload) {
                if let Entry::Vacant(unknown) = known.entry(hash) {
                    unknown.insert(self.store.pipelines_with_payload(hash).await?.iter().any(may));
                }
            }
            let is_foreign = |hash: &PayloadHash| known.get(hash) != Some(&true);
            letter.payload.take_if(|hash| is_foreign(hash));
            let payloads = letter.failures.iter_mut().flatten().filter_map(|failure| failure.payload.as_mut());
            for payload in payloads.filter(|payload| is_foreign(&payload.hash)) {
                payload.lost.get_or_insert_with(|| NOT_THEIRS.to_owned());
            }
        }
        Ok(())
    }

    async fn import_batch(
        &self,
        batch: Vec<ReadLetter>,
        by: &Actor,
        imported: &mut Imported,
        note: &mut impl FnMut(ImportNote),
    ) -> Result<(), Error> {
        let (mut lines, mut letters) = (Vec::with_capacity(batch.len()), Vec::new());
        for (number, line) in batch {
            lines.push((
                number,
                line.map(|ForeignLetter { letter, dated, masked }| {
                    let key = letter.key.clone().unwrap_or_default();
                    letters.push(Brought::imported(letter, dated));
                    (key, masked)
                }),
            ));
        }
        let mut arrivals = self.import_letters(letters, by).await?.into_iter();
        for (number, line) in lines {
            let arrival = match line {
                Ok((key, masked)) => arrivals.next().map(|arrival| (key, masked, arrival)),
                Err(why) => {
                    imported.broken += 1;
                    note(ImportNote::Broken { number, why });
                    continue;
                }
            };
            match arrival {
                Some((_, masked, Ok(Arrival::New))) => {
                    imported.new += 1;
                    imported.masked += u64::from(masked);
                }
                Some((_, _, Ok(Arrival::FailedAgain(_) | Arrival::FailedBesides(_)))) => imported.failed_again += 1,
                Some((_, _, Ok(Arrival::Known(_)))) => imported.known += 1,
                Some((key, _, Ok(Arrival::KeyTaken { id, state }))) => {
                    imported.skipped += 1;
                    note(ImportNote::KeyTaken { number, key, id, state });
                }
                Some((_, _, Err(unfit))) => {
                    imported.broken += 1;
                    note(ImportNote::Broken { number, why: unfit.to_string() });
                }
                None => {}
            }
        }
        Ok(())
    }
}

/// Letters of a file, read ahead a little by another thread.
pub struct Batches {
    place: String,
    batches: mpsc::Receiver<Vec<WrittenLetter>>,
    reading: Option<JoinHandle<io::Result<()>>>,
}

impl Batches {
    /// Begins to read; `place` is what errors call the file.
    pub fn read(place: &str, from: impl Read + Send + 'static) -> Self {
        let (sender, batches) = mpsc::channel::<Vec<WrittenLetter>>(2);
        let reading = tokio::task::spawn_blocking(move || send(BufReader::new(from), &sender));
        Self { place: place.to_owned(), batches, reading: Some(reading) }
    }

    /// The next letters; nothing after the last.
    pub async fn next(&mut self) -> Result<Option<Vec<WrittenLetter>>, Error> {
        if let Some(batch) = self.batches.recv().await {
            return Ok(Some(batch));
        }
        let Some(reading) = self.reading.take() else { return Ok(None) };
        let read = reading.await.map_err(|panic| Error::Internal(format!("reading dead letters ended: {panic}")))?;
        read.map_err(|source| DeadError::Unreadable { place: self.place.clone(), source })?;
        Ok(None)
    }
}

/// Reads letters into batches, until nobody takes them.
fn send(from: impl BufRead, batches: &mpsc::Sender<Vec<WrittenLetter>>) -> io::Result<()> {
    let mut batch = Vec::new();
    read(from, |letter| {
        batch.push(letter);
        batch.len() < BATCH || batches.blocking_send(std::mem::take(&mut batch)).is_ok()
    })?;
    if !batch.is_empty() {
        let _ = batches.blocking_send(batch);
    }
    Ok(())
}
