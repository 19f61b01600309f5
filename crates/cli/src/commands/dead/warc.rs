//! `redrive dead export --warc`: dead letters and their payloads as a web archive.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use anyhow::{Context, Result};
use redrive::export::Warc;
use redrive::vault::{Vault, VaultError};
use redrive_core::dead::DeadLetter;
use redrive_core::payloads::Payload;
use redrive_store::contract::ListDead;

use super::super::filter;
use super::request::requests;
use crate::args::ExportArgs;
use crate::exit::{Exit, usage};
use crate::setting::Setting;

const PAGE: u32 = 100;

pub async fn run(setting: &Setting, args: ExportArgs) -> Result<Exit> {
    let redrive = setting.redrive_existing()?;
    let vault = setting.vault(&redrive)?.ok_or_else(|| usage("a store in memory has no payloads to archive"))?;
    let filter = filter::of_dead(args.filter, redrive.now())?;
    let to_stdout = args.file == Path::new("-");
    let place = args.file.display().to_string();
    let unwritten = || format!("cannot write {place}");
    let out: Box<dyn Write> = match to_stdout {
        true => Box::new(BufWriter::new(io::stdout())),
        false => Box::new(BufWriter::new(File::create(&args.file).with_context(unwritten)?)),
    };
    let mut archive =
        Archive { warc: Warc::begin(out, redrive.now()).with_context(unwritten)?, vault, letters: 0, missing: 0 };
    let mut requests = requests(setting);
    let mut cursor = None;
    loop {
        let params = ListDead { filter: filter.clone(), limit: PAGE, cursor, with_failures: true };
        let page = redrive.store().list_dead(params).await?;
        for letter in &page.items {
            archive.add(letter, requests.of(letter).as_ref()).await.with_context(unwritten)?;
        }
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    archive.warc.finish().with_context(unwritten)?;
    if !to_stdout {
        File::open(&args.file).and_then(|file| file.sync_all()).with_context(unwritten)?;
    }
    eprintln!("{} dead letters archived", archive.letters);
    if archive.missing > 0 {
        eprintln!("{} payloads are no longer in the vault and are not in the archive", archive.missing);
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
            Err(VaultError::Missing(_) | VaultError::Damaged(_)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}
