//! What would come of a file of dead letters, without taking any in.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::sync::Arc;

use redrive_core::causes::{CauseRules, Print};
use redrive_core::dead::Gate;
use redrive_core::dead::foreign::{ForeignLetter, Reading};
use redrive_core::dead::import::check;
use redrive_core::failures::Reason;
use redrive_core::ids::{JobId, PipelineName};
use redrive_core::jobs::InputLimits;
use redrive_core::time::Timestamp;
use serde::{Deserialize, Serialize};

use super::import::{Batches, ImportNote, Imported, ReadLetter, from_network, understood};
use super::read::{Reader, WrittenLetter};
use crate::engine::Redrive;
use crate::error::Error;

/// What would come of a file.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Foretold {
    /// What would become of its letters. Whether a key belongs to another job shows only when they are taken in.
    #[serde(flatten)]
    pub imported: Imported,
    /// The causes that they would have, most letters first.
    pub causes: Vec<ForetoldCause>,
    /// One of the letters, as it would be taken in.
    pub sample: Option<serde_json::Value>,
    /// The letters that would be new, one by one, of a file that comes in pieces: one that stands in two pieces is new once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub new_letters: Vec<ForetoldLetter>,
}

/// A letter that would be new.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ForetoldLetter {
    /// Which.
    pub id: JobId,
    /// The key of the cause that it would have.
    pub cause: Option<String>,
    /// Whether something in it would be masked.
    pub masked: bool,
}

/// A cause that letters of a file would have.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ForetoldCause {
    /// The key that they would be filed under.
    pub key: String,
    /// Why they died.
    pub reason: Reason,
    /// Whether they may be replayed.
    pub gate: Gate,
    /// Their message without what varies.
    pub template: String,
    /// How many.
    pub letters: u64,
}

/// Says what would come of a file of dead letters. Without a store nothing is known already.
pub async fn foretell_import(
    redrive: Option<&Redrive>,
    (place, from): (&str, impl Read + Send + 'static),
    (foreign, limits): (Option<Reading>, InputLimits),
    now: Timestamp,
    mut note: impl FnMut(ImportNote),
) -> Result<Foretold, Error> {
    let mut foretelling = Foretelling::new(redrive, now).await?;
    let (reader, mut batches) = (Reader { foreign, limits, now }, Batches::read(place, from));
    while let Some(batch) = batches.next().await? {
        let letters = batch.into_iter().map(|(line, written)| (line, understood(&reader, written))).collect();
        foretelling.add(letters, &mut note).await?;
    }
    Ok(foretelling.finish())
}

impl Redrive {
    /// The same of letters that came over the network, as far as who brings them may.
    pub async fn foretell_brought(
        &self,
        batch: Vec<WrittenLetter>,
        (foreign, limits): (Option<Reading>, InputLimits),
        (may, sees_all): (impl Fn(&PipelineName) -> bool, bool),
        mut note: impl FnMut(ImportNote),
    ) -> Result<Foretold, Error> {
        let now = self.now();
        let (reader, mut foretelling) = (Reader { foreign, limits, now }, Foretelling::new(Some(self), now).await?);
        foretelling.one_by_one = true;
        let read = |(line, written)| (line, understood(&reader, written).and_then(|it| from_network(it, &may)));
        let mut letters: Vec<_> = batch.into_iter().map(read).collect();
        if !sees_all {
            self.part_from_foreign(&mut letters).await?;
        }
        foretelling.add(letters, &mut note).await?;
        Ok(foretelling.finish())
    }
}

impl Foretold {
    /// Adds what would come of further letters of the same file: those that were seen in it before are known by then.
    pub fn add(&mut self, mut other: Self, seen: &mut BTreeSet<JobId>) {
        for letter in std::mem::take(&mut other.new_letters).into_iter().filter(|letter| !seen.insert(letter.id)) {
            other.imported.new -= 1;
            other.imported.known += 1;
            other.imported.masked -= u64::from(letter.masked);
            if let Some(cause) = other.causes.iter_mut().find(|cause| Some(&cause.key) == letter.cause.as_ref()) {
                cause.letters -= 1;
            }
        }
        other.causes.retain(|cause| cause.letters > 0);
        self.imported += other.imported;
        for cause in other.causes {
            match self.causes.iter_mut().find(|known| known.key == cause.key) {
                Some(known) => known.letters += cause.letters,
                None => self.causes.push(cause),
            }
        }
        self.causes.sort_by_key(|cause| std::cmp::Reverse(cause.letters));
        self.sample = self.sample.take().or(other.sample);
    }
}

/// Letters of which it is found out what would come of them.
struct Foretelling<'a> {
    redrive: Option<&'a Redrive>,
    now: Timestamp,
    rules: Arc<CauseRules>,
    foretold: Foretold,
    causes: BTreeMap<String, ForetoldCause>,
    seen: BTreeSet<JobId>,
    /// Whether new letters are told one by one.
    one_by_one: bool,
}

impl<'a> Foretelling<'a> {
    async fn new(redrive: Option<&'a Redrive>, now: Timestamp) -> Result<Self, Error> {
        let rules = match redrive {
            Some(redrive) => redrive.cause_rules().await?,
            None => Arc::new(CauseRules::default()),
        };
        let (foretold, causes, seen) = (Foretold::default(), BTreeMap::new(), BTreeSet::new());
        Ok(Self { redrive, now, rules, foretold, causes, seen, one_by_one: false })
    }

    async fn add(&mut self, batch: Vec<ReadLetter>, note: &mut impl FnMut(ImportNote)) -> Result<(), Error> {
        for (number, letter) in batch {
            let checked = letter.and_then(|brought| match check(&brought.letter, self.now) {
                Ok(()) => Ok(brought),
                Err(unfit) => Err(unfit.to_string()),
            });
            match checked {
                Ok(brought) if is_known(self.redrive, brought.letter.id, &mut self.seen).await? => {
                    self.foretold.imported.known += 1;
                }
                Ok(brought) => {
                    self.foretold.imported.new += 1;
                    self.foretold.imported.masked += u64::from(brought.masked);
                    let cause = add(&mut self.causes, &brought, &self.rules);
                    if self.one_by_one {
                        let (id, masked) = (brought.letter.id, brought.masked);
                        self.foretold.new_letters.push(ForetoldLetter { id, cause, masked });
                    }
                    if self.foretold.sample.is_none() {
                        self.foretold.sample = serde_json::to_value(&brought.letter).ok();
                    }
                }
                Err(why) => {
                    self.foretold.imported.broken += 1;
                    note(ImportNote::Broken { number, why });
                }
            }
        }
        Ok(())
    }

    fn finish(mut self) -> Foretold {
        self.foretold.causes = self.causes.into_values().collect();
        self.foretold.causes.sort_by_key(|cause| std::cmp::Reverse(cause.letters));
        self.foretold
    }
}

/// Whether a letter is here, or came before in the same file.
async fn is_known(redrive: Option<&Redrive>, id: JobId, seen: &mut BTreeSet<JobId>) -> Result<bool, Error> {
    if !seen.insert(id) {
        return Ok(true);
    }
    match redrive {
        Some(redrive) => Ok(redrive.store.get_job(id).await?.is_some()),
        None => Ok(false),
    }
}

/// Counts a letter for its cause; says which that is.
fn add(causes: &mut BTreeMap<String, ForetoldCause>, brought: &ForeignLetter, rules: &CauseRules) -> Option<String> {
    let letter = &brought.letter;
    let print = Print::of_letter(letter, rules)?;
    let key = print.resolved().to_owned();
    let cause = causes.entry(key.clone()).or_insert_with(|| ForetoldCause {
        key: key.clone(),
        reason: letter.reason,
        gate: letter.gate,
        template: print.template,
        letters: 0,
    });
    cause.letters += 1;
    Some(key)
}
