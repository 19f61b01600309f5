//! What would come of a file of dead letters, without taking any in.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;

use redrive_core::causes::{CauseRules, Print};
use redrive_core::dead::Gate;
use redrive_core::dead::foreign::{ForeignLetter, Reading};
use redrive_core::dead::import::check;
use redrive_core::failures::Reason;
use redrive_core::ids::JobId;
use redrive_core::time::Timestamp;
use serde::{Deserialize, Serialize};

use super::import::{Batches, ImportNote, Imported};
use super::read::Reader;
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
    foreign: Option<Reading>,
    now: Timestamp,
    mut note: impl FnMut(ImportNote),
) -> Result<Foretold, Error> {
    let rules = match redrive {
        Some(redrive) => redrive.cause_rules().await?,
        None => std::sync::Arc::new(CauseRules::default()),
    };
    let (mut foretold, mut causes, mut seen) = (Foretold::default(), BTreeMap::new(), BTreeSet::new());
    let mut batches = Batches::read(place, from, Reader { foreign, now });
    while let Some(batch) = batches.next().await? {
        for (number, letter) in batch {
            let checked = letter.and_then(|brought| match check(&brought.letter, now) {
                Ok(()) => Ok(brought),
                Err(unfit) => Err(unfit.to_string()),
            });
            match checked {
                Ok(brought) if is_known(redrive, brought.letter.id, &mut seen).await? => foretold.imported.known += 1,
                Ok(brought) => {
                    foretold.imported.new += 1;
                    foretold.imported.masked += u64::from(brought.masked);
                    add(&mut causes, &brought, &rules);
                    if foretold.sample.is_none() {
                        foretold.sample = serde_json::to_value(&brought.letter).ok();
                    }
                }
                Err(why) => {
                    foretold.imported.broken += 1;
                    note(ImportNote::Broken { number, why });
                }
            }
        }
    }
    foretold.causes = causes.into_values().collect();
    foretold.causes.sort_by_key(|cause| std::cmp::Reverse(cause.letters));
    Ok(foretold)
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

fn add(causes: &mut BTreeMap<String, ForetoldCause>, brought: &ForeignLetter, rules: &CauseRules) {
    let letter = &brought.letter;
    let Some(print) = Print::of_letter(letter, rules) else { return };
    let key = print.resolved().to_owned();
    let cause = causes.entry(key.clone()).or_insert_with(|| ForetoldCause {
        key,
        reason: letter.reason,
        gate: letter.gate,
        template: print.template,
        letters: 0,
    });
    cause.letters += 1;
}
