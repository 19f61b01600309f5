//! Dead letters for other stores and other tools: as JSON Lines, or with their payloads as a web archive.

use std::fs::File;
use std::io::{self, Write};

use redrive_core::dead::DeadLetter;
use redrive_core::hidden::escape_json;
use redrive_core::payloads::Payload;
use redrive_store::contract::{DeadFilter, ListDead};

use super::{DeadError, Requests};
use crate::engine::Redrive;
use crate::error::Error;
use crate::export::{HttpRequest, Warc};
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
            let page = self.store.list_dead(params.clone()).await.map_err(Error::from)?;
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
        let params = ListDead { filter, limit: PAGE, cursor: None, with_failures: true };
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
        mut requests: Requests<'_>,
        out: impl Write,
    ) -> Result<Archived, Error> {
        let mut warc = Warc::begin(out, self.now()).map_err(DeadError::Unwritten)?;
        let mut archived = Archived::default();
        let params = ListDead { filter, limit: ARCHIVED_PAGE, cursor: None, with_failures: true };
        self.each_dead(params, async |letters| {
            for letter in &letters {
                archived.missing += archive(&mut warc, vault, letter, requests.of(letter).as_ref()).await?;
                archived.letters += 1;
            }
            Ok::<_, Error>(())
        })
        .await?;
        warc.finish().map_err(DeadError::Unwritten)?;
        Ok(archived)
    }
}

/// Writes a letter and the end of its line. Hidden characters in its texts are escapes: it is the same JSON, and harmless on a
/// terminal.
pub fn write_letter(out: &mut impl Write, letter: &DeadLetter) -> io::Result<()> {
    out.write_all(escape_json(&serde_json::to_string(letter)?).as_bytes())?;
    out.write_all(b"\n")
}

/// Adds a letter; says how many of its payloads are missing.
async fn archive(
    warc: &mut Warc<impl Write>,
    vault: &Vault,
    letter: &DeadLetter,
    request: Option<&HttpRequest>,
) -> Result<u64, Error> {
    let (mut records, mut missing) = (Vec::new(), 0);
    for failure in letter.failures.iter().flatten() {
        let Some(payload) = &failure.payload else { continue };
        match body(vault, payload).await? {
            Some(mut body) => {
                let evidence = warc.evidence(letter.id, failure, request, &mut body);
                records.extend(evidence.map_err(DeadError::Unwritten)?);
            }
            None => missing += 1,
        }
    }
    warc.letter(letter, &records).map_err(DeadError::Unwritten)?;
    Ok(missing)
}

/// The bytes of a payload in a temporary file, if they are still there.
async fn body(vault: &Vault, payload: &Payload) -> Result<Option<File>, Error> {
    let made = tempfile::tempfile().and_then(|file| Ok((file.try_clone()?, file)));
    let (copy, file) = made.map_err(DeadError::Unwritten)?;
    match vault.copy(payload.hash, &mut tokio::fs::File::from_std(copy)).await {
        Ok(_) => Ok(Some(file)),
        Err(VaultError::Missing(_) | VaultError::Damaged(_) | VaultError::OnItsWay { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}
