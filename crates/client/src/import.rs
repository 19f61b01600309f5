//! Letters of a file that is here, brought to a server as they are written: it reads them as its own configuration has it.

use std::collections::BTreeSet;
use std::io::Read;

use redrive::Error;
use redrive::dead::{Batches, Foretold, ImportNote, Imported, Written, WrittenLetter, foretell_import};
use redrive_core::actors::Actor;
use redrive_core::dead::foreign::Reading;
use redrive_core::jobs::{InputLimits, count_values};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::ask::LONG;
use crate::desk::Desk;
use crate::server::Server;

/// The most that is sent at once, in bytes, unless one letter alone is more.
const BYTES_AT_ONCE: usize = 4 * 1024 * 1024;

/// A server takes about 150,000 JSON values at once: each counts for so many bytes.
const BYTES_PER_VALUE: usize = 32;

/// What became of letters, or would.
#[derive(Deserialize)]
struct Answer {
    #[serde(flatten)]
    foretold: Foretold,
    notes: Vec<ImportNote>,
}

impl Desk {
    /// See [`redrive::Redrive::import_dead_file`].
    pub async fn import_dead_file(
        &self,
        (place, from): (&str, impl Read + Send + 'static),
        (foreign, limits): (Option<Reading>, InputLimits),
        by: &Actor,
        note: impl FnMut(ImportNote),
    ) -> Result<Imported, Error> {
        match self {
            Self::Here(redrive) => redrive.import_dead_file((place, from), (foreign, limits), by, note).await,
            Self::There(server) => Ok(bring(server, (place, from), (foreign, false), note).await?.imported),
        }
    }

    /// See [`redrive::dead::foretell_import`].
    pub async fn foretell_import(
        &self,
        (place, from): (&str, impl Read + Send + 'static),
        (foreign, limits): (Option<Reading>, InputLimits),
        note: impl FnMut(ImportNote),
    ) -> Result<Foretold, Error> {
        match self {
            Self::Here(redrive) => {
                foretell_import(Some(redrive), (place, from), (foreign, limits), redrive.now(), note).await
            }
            Self::There(server) => bring(server, (place, from), (foreign, true), note).await,
        }
    }
}

/// Brings the letters of a file, some at once.
async fn bring(
    server: &Server,
    (place, from): (&str, impl Read + Send + 'static),
    (foreign, dry_run): (Option<Reading>, bool),
    mut note: impl FnMut(ImportNote),
) -> Result<Foretold, Error> {
    let mut asked = json!({ "dry_run": dry_run });
    if let Some(Reading { pipeline, named, keep_secrets, .. }) = foreign {
        let fields: Vec<_> = named.iter().map(|(what, field)| format!("{}={field}", what.as_str())).collect();
        asked["pipeline"] = json!(pipeline);
        asked["fields"] = json!(fields);
        asked["keep_secrets"] = json!(keep_secrets);
    }
    let (mut all, mut batches) = (Foretold::default(), Batches::read(place, from));
    let mut seen = BTreeSet::new();
    while let Some(batch) = batches.next().await? {
        for some in pieces(batch) {
            let mut notes = Vec::new();
            let mut lines: Vec<Value> = Vec::new();
            for (number, written) in some {
                match written {
                    Ok(Written::Text(text)) => lines.push(json!({ "line": number, "text": text })),
                    Ok(Written::Value(value)) => lines.push(json!({ "line": number, "value": value })),
                    Err(why) => notes.push(ImportNote::Broken { number, why }),
                }
            }
            all.imported.broken += notes.len() as u64;
            if !lines.is_empty() {
                asked["letters"] = Value::Array(lines);
                let ask = server.post(&["letters", "import"]).body(&asked)?.within(Some(LONG));
                let answer: Answer = ask.read().await?;
                all.add(answer.foretold, &mut seen);
                notes.extend(answer.notes);
            }
            notes.sort_by_key(ImportNote::line);
            notes.into_iter().for_each(&mut note);
        }
    }
    Ok(all)
}

/// The length of a letter in bytes, or more if it has so many values that a server takes fewer of its kind at once.
fn weight(letter: &Written) -> usize {
    let values = match letter {
        Written::Text(text) => count_values(text.as_bytes()),
        Written::Value(value) => count_values(value.to_string().as_bytes()),
    };
    letter.bytes().max(usize::try_from(values).unwrap_or(usize::MAX).saturating_mul(BYTES_PER_VALUE))
}

/// Letters in groups that are sent at once.
fn pieces(batch: Vec<WrittenLetter>) -> Vec<Vec<WrittenLetter>> {
    let (mut pieces, mut bytes) = (vec![Vec::new()], 0);
    for letter in batch {
        let length = letter.1.as_ref().map_or(0, weight);
        if bytes > 0 && bytes + length > BYTES_AT_ONCE {
            pieces.push(Vec::new());
            bytes = 0;
        }
        bytes += length;
        if let Some(last) = pieces.last_mut() {
            last.push(letter);
        }
    }
    pieces
}
