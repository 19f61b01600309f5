//! `redrive dead export --warc`: dead letters and their payloads as a web archive.

use std::fs::File;
use std::io::Write;

use anyhow::{Context, Result};
use redrive::config::Setting;
use redrive::export::Warc;
use redrive::vault::{Vault, VaultError};
use redrive_core::dead::DeadLetter;
use redrive_core::payloads::Payload;
use redrive_store::contract::ListDead;

use super::super::filter;
use super::output::Output;
use super::request::requests;
use crate::args::ExportArgs;
use crate::exit::{Exit, usage};
use crate::output::print::say;

const PAGE: u32 = 100;

pub async fn run(setting: &Setting, args: ExportArgs) -> Result<Exit> {
    let redrive = setting.redrive_existing().await?;
    let vault = setting.vault(&redrive)?.ok_or_else(|| usage("a store in memory has no payloads to archive"))?;
    let filter = filter::of_dead(args.filter, redrive.now())?;
    let output = Output::to(args.file);
    if output.is_terminal() {
        return Err(usage(
            "an archive has payloads as they came, and a terminal might obey them: give a file instead of -",
        ));
    }
    let unwritten = || output.unwritten();
    let warc = Warc::begin(output.open()?, redrive.now()).with_context(unwritten)?;
    let mut archive = Archive { warc, vault, letters: 0, missing: 0 };
    let mut requests = requests(setting);
    let letters = ListDead { filter, limit: PAGE, cursor: None, with_failures: true };
    filter::each_page(&redrive, letters, async |letters| {
        for letter in &letters {
            archive.add(letter, requests.of(letter).as_ref()).await.with_context(unwritten)?;
        }
        Ok(())
    })
    .await?;
    archive.warc.finish().with_context(unwritten)?;
    output.sync()?;
    say!("{} dead letters archived", archive.letters);
    if archive.missing > 0 {
        say!("{} payloads are no longer in the vault and are not in the archive", archive.missing);
    }
    Ok(Exit::Ok)
}

struct Archive {
    warc: Warc<Box<dyn Write>>,
    vault: Vault,
    letters: u64,
    missing: u64,
}

impl Archive {
    async fn add(&mut self, letter: &DeadLetter, request: Option<&redrive::export::HttpRequest>) -> Result<()> {
        let mut records = Vec::new();
        for failure in letter.failures.iter().flatten() {
            let Some(payload) = &failure.payload else { continue };
            let Some(mut body) = self.body(payload).await? else {
                self.missing += 1;
                continue;
            };
            records.extend(self.warc.evidence(letter.id, failure, request, &mut body)?);
        }
        self.warc.letter(letter, &records)?;
        self.letters += 1;
        Ok(())
    }

    /// The bytes of a payload in a temporary file, if they are still there.
    async fn body(&self, payload: &Payload) -> Result<Option<File>> {
        let file = tempfile::tempfile()?;
        let mut out = tokio::fs::File::from_std(file.try_clone()?);
        match self.vault.copy(payload.hash, &mut out).await {
            Ok(_) => Ok(Some(file)),
            Err(VaultError::Missing(_) | VaultError::Damaged(_) | VaultError::OnItsWay { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}
