//! Dead letters for other stores and other tools: as JSON Lines, or with their payloads as a web archive.

use std::io::{self, Write};

use redrive_core::dead::DeadLetter;
use redrive_core::hidden::escape_json;
use redrive_core::payloads::Payload;
use redrive_core::time::Timestamp;
use redrive_store::contract::{DeadFilter, ListDead};

use super::{DeadError, Requests};
use crate::engine::Redrive;
use crate::error::Error;
use crate::export::Warc;
use crate::vault::{Vault, VaultError};

/// Letters that are read at once.
const PAGE: u32 = 500;

/// Letters that are read at once where their payloads are, too.
const ARCHIVED_PAGE: u32 = 100;

/// What an archive has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Archived {
    /// Letters in it.
    pub letters: u64,
    /// Payloads that are no longer in the vault.
    pub missing: u64,
}

impl Redrive {
    /// Goes through all dead letters that a filter finds, newest first, page by page.
    pub async fn each_dead<E: From<Error>>(
        &self,
        mut params: ListDead,
        mut each: impl AsyncFnMut(Vec<DeadLetter>) -> Result<(), E>,
    ) -> Result<(), E> {
        loop {
            let page = self.list_dead(params.clone()).await?;
            each(page.items).await?;
            match page.next {
                Some(next) => params.cursor = Some(next),
                None => return Ok(()),
            }
        }
    }

    /// Writes dead letters with all their failures as JSON Lines, and says how many; [`import_dead_file`] takes them in.
    ///
    /// [`import_dead_file`]: Redrive::import_dead_file
    pub async fn export_dead(&self, filter: DeadFilter, out: &mut impl Write) -> Result<u64, Error> {
        let mut exported = 0;
        let params = ListDead { with_failures: true, ..ListDead::newest(filter, PAGE) };
        self.each_dead(params, async |letters| {
            for letter in &letters {
                write_letter(out, letter).map_err(DeadError::Unwritten)?;
            }
            exported += letters.len() as u64;
            Ok::<_, Error>(())
        })
        .await?;
        out.flush().map_err(DeadError::Unwritten)?;
        Ok(exported)
    }

    /// Writes dead letters and their payloads as a web archive.
    pub async fn archive_dead(
        &self,
        filter: DeadFilter,
        vault: &Vault,
        requests: Requests<'_>,
        out: impl Write,
    ) -> Result<Archived, Error> {
        let mut archive = Archive::begin(out, requests, self.now())?;
        let params = ListDead { with_failures: true, ..ListDead::newest(filter, ARCHIVED_PAGE) };
        self.each_dead(params, async |letters| {
            for letter in &letters {
                archive.add(letter, async |payload, out| copied(vault.copy(payload.hash, out).await)).await?;
            }
            Ok::<_, Error>(())
        })
        .await?;
        archive.finish()
    }
}

/// Whether a payload was copied whole: it need not be there any more.
fn copied(copied: Result<u64, VaultError>) -> Result<bool, Error> {
    match copied {
        Ok(_) => Ok(true),
        Err(VaultError::Missing(_) | VaultError::Damaged(_) | VaultError::OnItsWay { .. }) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// A web archive of letters that is being written, wherever they come from.
pub struct Archive<'a, W: Write> {
    warc: Warc<W>,
    requests: Requests<'a>,
    archived: Archived,
}

impl<'a, W: Write> Archive<'a, W> {
    /// Begins one.
    pub fn begin(out: W, requests: Requests<'a>, now: Timestamp) -> Result<Self, Error> {
        let warc = Warc::begin(out, now).map_err(DeadError::Unwritten)?;
        Ok(Self { warc, requests, archived: Archived::default() })
    }

    /// Adds a letter. `copy` writes the bytes of a payload, and says whether they are still there.
    pub async fn add(
        &mut self,
        letter: &DeadLetter,
        copy: impl AsyncFn(&Payload, &mut tokio::fs::File) -> Result<bool, Error>,
    ) -> Result<(), Error> {
        let mut records = Vec::new();
        for failure in letter.failures.iter().flatten() {
            let Some(payload) = &failure.payload else { continue };
            let made = tempfile::tempfile().and_then(|file| Ok((file.try_clone()?, file)));
            let (into, mut body) = made.map_err(DeadError::Unwritten)?;
            if copy(payload, &mut tokio::fs::File::from_std(into)).await? {
                let request = self.requests.of(letter, Some(failure));
                let evidence = self.warc.evidence(letter.id, failure, request.as_ref(), &mut body);
                records.extend(evidence.map_err(DeadError::Unwritten)?);
            } else {
                self.archived.missing += 1;
            }
        }
        self.archived.letters += 1;
        Ok(self.warc.letter(letter, &records).map_err(DeadError::Unwritten)?)
    }

    /// Ends it, and says what it has.
    pub fn finish(self) -> Result<Archived, Error> {
        self.warc.finish().map_err(DeadError::Unwritten)?;
        Ok(self.archived)
    }
}

/// Writes a letter and the end of its line. Hidden characters in its texts are escapes: it is the same JSON, and harmless on a
/// terminal.
pub fn write_letter(out: &mut impl Write, letter: &DeadLetter) -> io::Result<()> {
    out.write_all(escape_json(&serde_json::to_string(letter)?).as_bytes())?;
    out.write_all(b"\n")
}
